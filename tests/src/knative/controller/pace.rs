//! When is a write done that a test delays?

use std::collections::BTreeMap;
use std::time::Duration;

use super::planned_write::{ControllerStep, PlannedWrite};
use crate::knative::objects::{KnownObjects, ObjectId};

/// The ConfigMap by which tests speak to the controller.
const CONFIG_MAP: &str = "stand-in-controller";

/// What a test asks of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepPace {
    /// Each write comes so long after it is first missing.
    After(Duration),
    /// No write of the step is done.
    Still,
}

/// Since when each write is missing.
#[derive(Debug, Default)]
pub(super) struct ControllerPace {
    missing_since: BTreeMap<(ControllerStep, ObjectId), Duration>,
}

/// The writes to do now, and when to look again without any event.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DueWrites {
    pub(super) writes: Vec<PlannedWrite>,
    pub(super) next: Option<Duration>,
}

impl ControllerPace {
    /// Of all writes that are missing, those that are due. `now` is any monotonic time.
    pub(super) fn due(
        &mut self,
        missing: Vec<PlannedWrite>,
        known: &KnownObjects,
        system: &str,
        now: Duration,
    ) -> DueWrites {
        let mut former = std::mem::take(&mut self.missing_since);
        let mut due = DueWrites::default();
        for write in missing {
            let key = (write.step, write.id.clone());
            let since = former.remove(&key).unwrap_or(now);
            self.missing_since.insert(key, since);
            match pace_of(known, system, write.step) {
                StepPace::After(wait) if now >= since + wait => due.writes.push(write),
                StepPace::After(wait) => {
                    due.next = Some(due.next.map_or(since + wait, |next| next.min(since + wait)));
                }
                StepPace::Still => {}
            }
        }
        due
    }
}

fn pace_of(known: &KnownObjects, system: &str, step: ControllerStep) -> StepPace {
    match known.setting(system, CONFIG_MAP, step.key()) {
        None => StepPace::After(Duration::ZERO),
        Some("still") => StepPace::Still,
        Some(text) => {
            let milliseconds = text.strip_suffix("ms").and_then(|number| number.parse().ok());
            let Some(milliseconds) = milliseconds else {
                let keys = ControllerStep::ALL.map(ControllerStep::key);
                panic!(
                    "{CONFIG_MAP}: {} is {text:?}; write \"still\" or \"500ms\" for one of {keys:?}",
                    step.key()
                );
            };
            StepPace::After(Duration::from_millis(milliseconds))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::knative::controller::planned_write::WriteForm;
    use crate::knative::objects::PlayedKind;

    fn write(step: ControllerStep) -> PlannedWrite {
        let id = ObjectId::new(PlayedKind::Endpoints, "default", "hello-00001");
        PlannedWrite { step, id, form: WriteForm::Patch(json!({})) }
    }

    #[test]
    fn steps_wait_as_a_test_asks_and_others_do_not() {
        let mut known = KnownObjects::default();
        let map = json!({
            "metadata": {"namespace": "system", "name": CONFIG_MAP},
            "data": {"endpoints": "500ms", "services": "still"},
        });
        known.put(ObjectId::of(PlayedKind::ConfigMap, &map), map);
        let mut pace = ControllerPace::default();
        let mut at = |milliseconds| {
            let missing =
                [ControllerStep::Endpoints, ControllerStep::Services, ControllerStep::Statuses].map(write);
            pace.due(missing.into(), &known, "system", Duration::from_millis(milliseconds))
        };
        let first = at(1_000);
        assert_eq!(first.writes, [write(ControllerStep::Statuses)]);
        assert_eq!(first.next, Some(Duration::from_millis(1_500)));
        assert_eq!(at(1_499).writes.len(), 1);
        assert_eq!(at(1_500).writes, [ControllerStep::Endpoints, ControllerStep::Statuses].map(write));
    }

    #[test]
    fn a_write_that_was_not_missing_meanwhile_waits_anew() {
        let mut known = KnownObjects::default();
        let map =
            json!({"metadata": {"namespace": "system", "name": CONFIG_MAP}, "data": {"endpoints": "500ms"}});
        known.put(ObjectId::of(PlayedKind::ConfigMap, &map), map);
        let mut pace = ControllerPace::default();
        let missing = || vec![write(ControllerStep::Endpoints)];
        let at = Duration::from_millis;
        pace.due(missing(), &known, "system", at(0));
        pace.due(Vec::new(), &known, "system", at(400));
        assert!(pace.due(missing(), &known, "system", at(600)).writes.is_empty());
    }
}
