//! Counts keep their bounds, their rates and their decision; none falls in panic or because of silence.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{ControlCommand, Order};
use scaling::{Decision, Mode, Stage};
use settings::ScalingSpec;
use vocabulary::{PodCount, RevisionName, Timestamp};

use crate::proof::check_failure::{CheckFailure, Checked};
use crate::proof::fault::{OWNERS, OwnerNumber};
use crate::proof::plan::WorldPlan;
use crate::proof::reached_state::{ReachedState, ReachedStates};

const WITHIN_BOUNDS: &str = "a count lies within its bounds";
const AS_DECIDED: &str = "a count is the one that was decided";
const GROWTH: &str = "a count grows no faster than max-scale-up-rate allows";
const SHRINKING: &str = "a count shrinks no faster than max-scale-down-rate allows";
const IN_PANIC: &str = "no count falls in panic mode";
const SILENCE: &str = "no count falls because of silence";

/// A reporter says something every second, and an owner goes by what it heard for three seconds. The rest is
/// for an owner whose events waited, and for one whose clock drifts.
const SILENT_AFTER: Duration = Duration::from_secs(10);

/// What is known of each Service.
#[derive(Debug)]
pub(super) struct CountChecks {
    services: BTreeMap<RevisionName, CountedService>,
}

#[derive(Debug)]
struct CountedService {
    spec: ScalingSpec,
    mode: Option<Mode>,
    /// The count that was ordered last, by either owner.
    ordered: Option<PodCount>,
    /// When each owner heard a reporter of the Service last.
    heard: [Option<Timestamp>; OWNERS],
}

/// An order of a count.
struct OrderedCount<'a> {
    from: PodCount,
    to: PodCount,
    because: &'a Decision,
    spec: &'a ScalingSpec,
}

impl CountChecks {
    pub(super) fn new(plan: &WorldPlan) -> Self {
        let services = plan.revisions.iter().map(|revision| {
            let (spec, heard) = (revision.spec.clone(), [None; OWNERS]);
            let counted = CountedService { spec, mode: None, ordered: None, heard };
            (revision.scenario.facts.name.clone(), counted)
        });
        Self { services: services.collect() }
    }

    pub(super) fn heard(&mut self, owner: OwnerNumber, revision: &RevisionName, now: Timestamp) {
        if let Some(service) = self.services.get_mut(revision) {
            service.heard[owner.0] = Some(now);
        }
    }

    pub(super) fn heard_of_all(&mut self, owner: OwnerNumber, now: Timestamp) {
        for service in self.services.values_mut() {
            service.heard[owner.0] = Some(now);
        }
    }

    pub(super) fn owner_gone(&mut self, owner: OwnerNumber) {
        for service in self.services.values_mut() {
            service.heard[owner.0] = None;
        }
    }

    pub(super) fn commanded(
        &mut self,
        owner: OwnerNumber,
        command: &ControlCommand,
        now: Timestamp,
        reached: &mut ReachedStates,
    ) -> Checked {
        if let ControlCommand::Publish { revision, decision } = command {
            self.note_mode(revision, decision.mode, reached);
        }
        let ControlCommand::Order(order) = command else { return Ok(()) };
        let Order::ScaleTo { revision, from, to, because, .. } = &order.what else { return Ok(()) };
        let Some(service) = self.services.get_mut(revision) else {
            return Err(CheckFailure::new(WITHIN_BOUNDS, format!("{revision} does not exist")));
        };
        let ordered = OrderedCount { from: *from, to: *to, because, spec: &service.spec };
        ordered.note(reached);
        let heard = service.heard[owner.0];
        let is_silent = heard.is_none_or(|heard| heard + SILENT_AFTER < now);
        // What was ordered before may be ordered again over a count that another client wrote.
        let before = service.ordered.replace(*to);
        let is_lower = to < from && before.is_none_or(|before| *to < before);
        if is_lower && is_silent {
            let text = format!("{revision} from {from} to {to}, heard last at {heard:?}");
            return Err(CheckFailure::new(SILENCE, text));
        }
        match ordered.broken_rule() {
            Some(rule) => {
                let text = format!("{revision} from {from} to {to}: {because:?}");
                Err(CheckFailure::new(rule, text))
            }
            None => Ok(()),
        }
    }

    fn note_mode(&mut self, revision: &RevisionName, mode: Mode, reached: &mut ReachedStates) {
        let Some(service) = self.services.get_mut(revision) else { return };
        match (service.mode, mode) {
            (None | Some(Mode::Stable), Mode::Panic { .. }) => reached.note(ReachedState::PanicEntered),
            (Some(Mode::Panic { .. }), Mode::Stable) => reached.note(ReachedState::PanicLeft),
            (None | Some(Mode::Stable), Mode::Stable) | (Some(Mode::Panic { .. }), Mode::Panic { .. }) => {}
        }
        service.mode = Some(mode);
    }
}

impl OrderedCount<'_> {
    fn note(&self, reached: &mut ReachedStates) {
        if self.to == PodCount::ZERO {
            reached.note(ReachedState::ScaledToZero);
        } else if self.from == PodCount::ZERO {
            reached.note(ReachedState::ScaledFromZero);
        }
        if Some(self.to) == self.spec.max_scale {
            reached.note(ReachedState::ReachedMaxScale);
        }
    }

    /// The first rule that the order breaks.
    fn broken_rule(&self) -> Option<&'static str> {
        let max = self.spec.max_scale.unwrap_or(PodCount::MAX);
        if self.to < self.spec.min_scale || self.to > max {
            return Some(WITHIN_BOUNDS);
        }
        if self.because.wanted != Some(self.to) {
            return Some(AS_DECIDED);
        }
        match self.because.mode {
            // To zero leads nothing but the rules around zero, which have waited long enough.
            Mode::Panic { .. } if self.to < self.from.min(max) && self.to > PodCount::ZERO => Some(IN_PANIC),
            Mode::Panic { .. } => None,
            Mode::Stable => self.broken_rate(),
        }
    }

    /// Rates are about the pods that were ready. A count is no growth that the settings ask for, or that is
    /// held from before.
    fn broken_rate(&self) -> Option<&'static str> {
        let ready = self.because.inputs?.ready_pods.as_f64().max(1.0);
        let most = PodCount::ceil_from(ready * self.spec.max_scale_up_rate)
            .max(self.spec.min_scale)
            .max(self.spec.initial_scale)
            .max(self.spec.activation_scale);
        let holds = |stage: Stage| stage == Stage::Panic || stage == Stage::ScaleDownDelay;
        let is_held = self.because.reasons.iter().any(|reason| holds(reason.stage));
        if self.to > self.from && self.to > most && !is_held {
            return Some(GROWTH);
        }
        let least = PodCount::floor_from(ready / self.spec.max_scale_down_rate);
        let is_at_max = Some(self.to) == self.spec.max_scale;
        (self.to < self.from && self.to < least && !is_at_max).then_some(SHRINKING)
    }
}

#[cfg(test)]
mod tests {
    use scaling::{Inputs, Trigger};

    use super::*;

    fn decision(mode: Mode, ready: u32, wanted: u32) -> Decision {
        let inputs = Inputs {
            ready_pods: PodCount::new(ready),
            unheard_pods: PodCount::ZERO,
            stable_value: 1.0,
            panic_value: 1.0,
            target_per_pod: 1.0,
            total_per_pod: 1.0,
            present_count: None,
        };
        Decision {
            inputs: Some(inputs),
            mode,
            wanted: Some(PodCount::new(wanted)),
            ..Decision::empty(Trigger::Tick, Timestamp::ZERO)
        }
    }

    #[test]
    fn each_rule_finds_the_order_that_breaks_it_alone() {
        let spec = ScalingSpec {
            min_scale: PodCount::new(1),
            max_scale: Some(PodCount::new(9)),
            max_scale_up_rate: 2.0,
            max_scale_down_rate: 2.0,
            ..ScalingSpec::default()
        };
        let panic = Mode::Panic { since: Timestamp::ZERO };
        for (mode, ready, from, decided, to, rule) in [
            (Mode::Stable, 4, 4, 3, 3, None),
            (Mode::Stable, 4, 4, 8, 8, None),
            (Mode::Stable, 4, 4, 9, 9, Some(GROWTH)),
            (Mode::Stable, 4, 4, 1, 1, Some(SHRINKING)),
            (Mode::Stable, 4, 4, 5, 6, Some(AS_DECIDED)),
            (Mode::Stable, 4, 4, 10, 10, Some(WITHIN_BOUNDS)),
            (Mode::Stable, 1, 1, 0, 0, Some(WITHIN_BOUNDS)),
            (panic, 4, 4, 3, 3, Some(IN_PANIC)),
            (panic, 4, 4, 7, 7, None),
        ] {
            let because = decision(mode, ready, decided);
            let (from, to) = (PodCount::new(from), PodCount::new(to));
            let ordered = OrderedCount { from, to, because: &because, spec: &spec };
            assert_eq!(ordered.broken_rule(), rule, "{mode:?} {ready} ready, {from} to {to}");
        }
    }
}
