//! What prediction costs: a fleet of class ahpa beside one of class kpa that is the same else.

use tests::bench::{Goal, Report};

use crate::fleet::shape::{FleetClass, Shape};

const CORES_MORE_MAX: f64 = 0.02;
const MEGABYTES_MORE_MAX: f64 = 100.0;

/// What the autoscaler of a fleet used of the machine.
pub(crate) struct FleetCost {
    pub(crate) shape: Shape,
    pub(crate) cores: f64,
    pub(crate) megabytes: f64,
}

/// Judges each fleet of class ahpa beside which one of class kpa was measured.
pub(crate) fn judge(report: &mut Report, costs: &[FleetCost]) {
    for with in costs.iter().filter(|cost| cost.shape.class == FleetClass::Ahpa) {
        let without = Shape { class: FleetClass::Kpa, ..with.shape };
        let Some(without) = costs.iter().find(|cost| cost.shape == without) else { continue };
        let name = with.shape.to_string();
        let goal = |what: &str, more, limit| {
            Goal::at_most(&format!("{name}: {what} beyond class kpa's"), more, limit)
        };
        report.goal(goal("cores", with.cores - without.cores, CORES_MORE_MAX));
        report.goal(goal("RSS in MB", with.megabytes - without.megabytes, MEGABYTES_MORE_MAX));
    }
}
