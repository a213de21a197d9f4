//! What came of one variant, and how tables call the variant.

use simulator::SimulationReport;

/// The outcome of one variant.
pub(super) struct VariantOutcome {
    pub(super) title: String,
    pub(super) report: SimulationReport,
}
