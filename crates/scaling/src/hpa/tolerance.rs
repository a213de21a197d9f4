//! How far a metric may be from its target before the count moves.

use settings::hpa::HpaSpec;

/// The tolerated distance of a ratio from 1, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerances {
    pub(super) up: f64,
    pub(super) down: f64,
}

impl Tolerances {
    pub(super) fn of(spec: &HpaSpec) -> Self {
        let general = spec.settings.tolerance;
        let behavior = spec.behavior.as_ref();
        Self {
            up: behavior.and_then(|behavior| behavior.scale_up.tolerance).unwrap_or(general),
            down: behavior.and_then(|behavior| behavior.scale_down.tolerance).unwrap_or(general),
        }
    }

    /// Not of a ratio that is no number, as with no load on no pods.
    pub(super) fn hold(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}
