//! What came of one variant, how tables call the variant, and how waits are shown.

use std::time::Duration;

use simulator::SimulationReport;

/// The outcome of one variant.
pub(super) struct VariantOutcome {
    pub(super) title: String,
    pub(super) report: SimulationReport,
}

/// A wait in the unit that suits it.
pub(super) fn wait_text(wait: Duration) -> String {
    if wait < Duration::from_secs(1) {
        format!("{} ms", wait.as_millis())
    } else {
        format!("{:.1} s", wait.as_secs_f64())
    }
}
