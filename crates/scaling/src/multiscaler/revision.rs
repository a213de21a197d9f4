//! One revision: evaluate, put the answer through bounds and scale-to-zero rules, and order what follows from it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use vocabulary::{BootId, PodCount, PodId, PresentCount, Reporter, RevisionId, Routing, Sample, Timestamp};

use super::beginning::Beginning;
use super::journal::Journal;
use super::outcome::{Outcome, Why, why_not_zero};
use super::pods::Pods;
use super::routing::{self, Route};
use super::{Command, Multiscaler, PodFact, RevisionStatus, TICK};
use crate::bounds::Initialization;
use crate::burst;
use crate::collector::Collector;
use crate::config::ScalingSpec;
use crate::decider::{Decider, Observation, Verdict};
use crate::decision::{Bound, Decision, Mode, Reason, Sentence, Stage, State, Trigger};
use crate::scale_to_zero::{self, Activity, KeptBy, Path, Plan, Situation};
use crate::surge;

/// Orders that wait to be carried out.
type Commands = VecDeque<Command>;

/// A change of activity is followed by another look, as Knative's own status write is. Three looks reach a rest from anywhere: activating,
/// active, inactive.
const LOOKS_MAX: u32 = 4;

/// Everything known of one revision.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    id: RevisionId,
    spec: Arc<ScalingSpec>,
    collector: Collector,
    decider: Decider,
    pods: Pods,
    /// The platform's replica count: what we asked for last, or what somebody else wrote since.
    wanted: PodCount,
    /// Somebody else said `wanted`, perhaps before they heard our last order: the next count is ordered even if it is the same.
    is_wanted_hearsay: bool,
    activity: Activity,
    /// Whether it ever had as many ready pods as it should start with.
    initialization: Initialization,
    route: Route,
    acknowledged_since: Option<Timestamp>,
    /// The last valid evaluation.
    verdict: Option<Verdict>,
    /// Whether the last evaluation had data.
    has_data: bool,
    activators: Option<PodCount>,
    surge_threshold: Option<u32>,
    journal: Journal,
    outcome: Option<Outcome>,
    last_reason: Option<Sentence>,
    why_not_zero: Option<Sentence>,
    next_tick: Timestamp,
    wake: Option<Timestamp>,
}

impl Revision {
    pub(super) fn new(id: RevisionId, spec: Arc<ScalingSpec>, beginning: Beginning) -> Self {
        let now = beginning.now;
        let (activity, initialization) = beginning.stands(&spec);
        Self {
            id,
            collector: Collector::new(&spec),
            decider: Decider::new(&spec, beginning.held(), now),
            pods: Pods::default(),
            wanted: beginning.wanted,
            is_wanted_hearsay: false,
            activity,
            initialization,
            route: Route::default(),
            acknowledged_since: None,
            verdict: None,
            has_data: false,
            activators: None,
            surge_threshold: None,
            journal: Journal::default(),
            outcome: None,
            last_reason: None,
            why_not_zero: None,
            next_tick: now + TICK,
            wake: None,
            spec,
        }
    }

    pub(super) fn id(&self) -> RevisionId {
        self.id
    }

    /// The first look, once the reporters that are already there are known.
    pub(super) fn created(&mut self, now: Timestamp, commands: &mut Commands) {
        self.reconcile(Trigger::Change, now, commands);
    }

    /// New settings, or a replica count that somebody wrote. The count is taken as it is; the next evaluation goes on from it.
    pub(super) fn changed(
        &mut self,
        spec: Arc<ScalingSpec>,
        wanted: PodCount,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        self.is_wanted_hearsay |= wanted != self.wanted;
        self.wanted = wanted;
        if spec != self.spec {
            self.collector.update(&spec, now);
            self.decider.update(&spec, now);
            self.spec = spec;
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    pub(super) fn pods_changed(&mut self, facts: &[PodFact], now: Timestamp, commands: &mut Commands) {
        for gone in self.pods.replace(facts) {
            self.collector.remove(Reporter::Pod(gone));
        }
        self.reconcile(Trigger::Change, now, commands);
    }

    pub(super) fn pod_changed(&mut self, fact: PodFact, now: Timestamp, commands: &mut Commands) {
        if self.pods.change(fact) {
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    pub(super) fn pod_ids(&self) -> Vec<PodId> {
        self.pods.ids().collect()
    }

    pub(super) fn reporter_started(&mut self, reporter: Reporter, boot: BootId, second: u64, now: Timestamp) {
        self.collector.start_reporter(reporter, boot, second, now);
    }

    pub(super) fn history(&mut self, reporter: Reporter, sample: Sample, now: Timestamp) {
        self.collector.record(reporter, sample, now);
    }

    pub(super) fn reporter_heard(&mut self, reporter: Reporter, second: u64, now: Timestamp) {
        match reporter {
            // Knative asks ready pods only. One that starts for a minute must not dilute the first load that it gets.
            Reporter::Pod(pod) if self.pods.is_ready(pod) => self.collector.idle(pod, second, now),
            Reporter::Pod(_) | Reporter::Activator(_) => self.collector.heard(reporter, second, now),
        }
    }

    pub(super) fn reporter_lost(&mut self, reporter: Reporter, now: Timestamp) {
        self.collector.lost(reporter, now);
    }

    pub(super) fn reporter_removed(&mut self, reporter: Reporter) {
        self.collector.remove(reporter);
    }

    /// A reporter's second. It is acted upon at once if it shows demand where none was seen (Knative's poke), or a growing queue.
    pub(super) fn load_reported(
        &mut self,
        reporter: Reporter,
        sample: Sample,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        let waiting = self.collector.waiting();
        self.collector.record(reporter, sample, now);
        let queue_grew = self.spec.surge_evaluation && self.collector.waiting() > waiting;
        if queue_grew || self.is_poked_by(reporter, sample.load.concurrency.value() > 0.0) {
            self.evaluate(Trigger::Surge, now, commands);
        }
    }

    /// What a reporter holds at this instant. It is acted upon at once if it grew beyond what the present count is for.
    pub(super) fn present_reported(
        &mut self,
        reporter: Reporter,
        count: PresentCount,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        let before = self.collector.present_total().unwrap_or(0.0);
        self.collector.present(reporter, count, now);
        let present = self.collector.present_total().unwrap_or(0.0);
        let needs_more = || {
            // Evaluating for a need that is already met could change nothing, and bursts are reported up to fifty times a second.
            let provided =
                self.verdict.as_ref().map_or(PodCount::ZERO, |verdict| verdict.desired.min(self.wanted));
            surge::need(&self.spec, present, self.pods.counts().ready) > provided
        };
        let surges = self.spec.surge_evaluation && present > before && needs_more();
        if surges || self.is_poked_by(reporter, count.in_flight > 0) {
            self.evaluate(Trigger::Surge, now, commands);
        }
    }

    /// Knative's poke: an activator saw demand, and the last answer was exactly zero.
    fn is_poked_by(&self, reporter: Reporter, sees_demand: bool) -> bool {
        sees_demand
            && matches!(reporter, Reporter::Activator(_))
            && self.verdict.as_ref().is_some_and(|verdict| verdict.desired == PodCount::ZERO)
    }

    pub(super) fn path_acknowledged(&mut self, acknowledged: bool, now: Timestamp, commands: &mut Commands) {
        if acknowledged == self.acknowledged_since.is_some() {
            return;
        }
        self.acknowledged_since = acknowledged.then_some(now);
        self.reconcile(Trigger::Change, now, commands);
    }

    pub(super) fn routing_observed(&mut self, routing: Routing, now: Timestamp) {
        self.route.observe(routing, now);
    }

    /// The next time at which something is due.
    pub(super) fn deadline(&self) -> Timestamp {
        self.wake.map_or(self.next_tick, |wake| wake.min(self.next_tick))
    }

    /// Does what is due. Ticks that were missed are not made up for; the phase stays.
    pub(super) fn advance(&mut self, now: Timestamp, commands: &mut Commands) {
        if self.next_tick <= now {
            while self.next_tick <= now {
                self.next_tick += TICK;
            }
            self.evaluate(Trigger::Tick, now, commands);
        }
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    /// Asks the decider. Without data nothing changes: no state, no count, no route.
    fn evaluate(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        let ready = self.pods.ready();
        let Some(averages) = self.collector.observe(ready, now) else {
            return self.note_silence(trigger, now, commands);
        };
        let present_count = (trigger == Trigger::Surge && self.spec.surge_evaluation)
            .then(|| self.collector.present_total().unwrap_or(0.0));
        let observation =
            Observation { ready: PodCount::of(ready.len()), wanted: self.wanted, averages, present_count };
        self.verdict = Some(self.decider.decide(&self.spec, &observation, now));
        self.has_data = true;
        self.reconcile(trigger, now, commands);
    }

    /// Neither panic mode nor a look between ticks lowers the count, whoever raised it: pods left over from a given-up activation or
    /// a foreign write stay as well, within the upper bound. (Knative's panic holds only what it asked for itself.)
    fn held(&self, mut plan: Plan, trigger: Trigger) -> Plan {
        let present = self.wanted.min(self.spec.max_scale.unwrap_or(PodCount::MAX));
        let (stage, rule) = if matches!(self.decider.mode(), Mode::Panic { .. }) {
            (Stage::Panic, Bound::Panic { present })
        } else if trigger == Trigger::Surge && self.spec.surge_evaluation {
            (Stage::Surge, Bound::BetweenTicks { present })
        } else {
            return plan;
        };
        if let Some(count) = plan.applied().filter(|&count| count > PodCount::ZERO && count < present) {
            plan.want = Some(present);
            let (before, after) = (Some(count), Some(present));
            plan.reasons.push(Reason { stage, before, after, text: rule.into() });
        }
        plan
    }

    /// Knative's reconcile: the last answer, the bounds, the rules around zero, who serves.
    fn reconcile(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        let settled = self.settle(now);
        let plan = self.held(settled, trigger);
        let ordered = plan.applied().filter(|&count| count != self.wanted || self.is_wanted_hearsay);
        if let Some(count) = ordered {
            self.wanted = count;
            self.is_wanted_hearsay = false;
            // An order is always news: the same count is ordered again only because somebody else wrote another.
            self.outcome = None;
        }
        self.choose_route(&plan, now, commands);
        self.set_surge_threshold(commands);
        self.plan_wake(&plan, now);
        let Some(decision) = self.publish(trigger, &plan, now) else { return };
        if let Some(count) = ordered {
            let because = Arc::clone(&decision);
            commands.push_back(Command::ScaleTo { revision: self.id, count, because });
        }
        commands.push_back(Command::Publish { revision: self.id, decision });
    }

    /// Looks until the activity rests. A look that asks for a count outlives a later one that asks for the same or leaves it alone: it
    /// is the one that says why.
    fn settle(&mut self, now: Timestamp) -> Plan {
        let desired = self.verdict.as_ref().map(|verdict| verdict.desired);
        let ready = self.pods.counts().ready;
        let mut settled: Option<Plan> = None;
        for _ in 0..LOOKS_MAX {
            let plan = scale_to_zero::apply_scale(desired, &self.situation(now));
            let needed = scale_to_zero::needed_pods(&self.spec, self.initialization);
            let before = (self.activity, self.initialization);
            if ready >= needed {
                self.initialization = Initialization::Done;
            }
            self.activity = self.activity.next(plan.want, ready, needed, now);
            settled = Some(match settled {
                Some(former) if former.apply && (!plan.apply || plan.want == former.want) => former,
                Some(_) | None => plan,
            });
            if (self.activity, self.initialization) == before {
                break;
            }
        }
        settled.expect("at least one look was taken")
    }

    fn situation(&self, now: Timestamp) -> Situation<'_> {
        let path = match (self.route.current(), self.acknowledged_since) {
            (Some(Routing::Direct), _) => Path::Direct,
            (Some(Routing::ThroughActivator) | None, None) => Path::Unacknowledged,
            (Some(Routing::ThroughActivator) | None, Some(since)) => {
                Path::Acknowledged(now.saturating_since(since.max(self.route.since())))
            }
        };
        Situation {
            spec: &self.spec,
            present: self.wanted,
            activity: self.activity,
            activity_age: self.activity.age(now),
            initialization: self.initialization,
            path,
        }
    }

    /// Who serves, and how many activators. Before the first valid decision both stay as they are.
    fn choose_route(&mut self, plan: &Plan, now: Timestamp, commands: &mut Commands) {
        let Some(verdict) = &self.verdict else { return };
        let next = routing::without_dwell(plan.want, verdict.excess_burst_capacity);
        let before = self.route.current();
        if let Some(routing) = self.route.follow(next, self.spec.routing_dwell, now) {
            if before.is_some() {
                // The acknowledgement was for the former assignment.
                self.acknowledged_since = None;
            }
            commands.push_back(Command::SetRouting { revision: self.id, routing });
        }
        let count = burst::activator_count(&self.spec, self.pods.counts().ready);
        if self.activators != Some(count) {
            self.activators = Some(count);
            commands.push_back(Command::SetActivatorCount { revision: self.id, count });
        }
    }

    fn set_surge_threshold(&mut self, commands: &mut Commands) {
        let threshold = surge::pod_threshold(&self.spec, self.pods.counts().ready);
        if threshold != self.surge_threshold {
            self.surge_threshold = threshold;
            commands.push_back(Command::SetSurgeThreshold { revision: self.id, threshold });
        }
    }

    fn plan_wake(&mut self, plan: &Plan, now: Timestamp) {
        let recheck = plan.recheck.map(|after| now + after);
        let dwell = self.route.deadline(self.spec.routing_dwell);
        // "Longer than the timeout" is strict, so the look is taken just after it.
        let timeout = match (self.activity, &plan.kept) {
            (Activity::Activating { since }, Some(kept)) if kept.rule == KeptBy::Activating => {
                Some(since + self.spec.activation_timeout + Duration::from_nanos(1))
            }
            (Activity::Activating { .. } | Activity::Active { .. } | Activity::Inactive { .. }, _) => None,
        };
        self.wake = [recheck, dwell, timeout].into_iter().flatten().filter(|&at| at > now).min();
    }

    /// The windows are silent: said once, and shown as the present state.
    fn note_silence(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        self.has_data = false;
        let desired = self.verdict.as_ref().map(|verdict| verdict.desired);
        let text = State::NoData.into();
        let mut reasons = self.journal.empty_list();
        reasons.push(Reason { stage: Stage::NoData, before: desired, after: desired, text });
        let decision = Decision { inputs: None, reasons, wanted: None, ..self.decision(trigger, now) };
        let outcome = Outcome { has_data: false, ..self.outcome.unwrap_or(self.outcome(Why::Undecided)) };
        if let Some(decision) = self.record(decision, outcome) {
            commands.push_back(Command::Publish { revision: self.id, decision });
        }
    }

    /// What was decided, if that is news.
    fn publish(&mut self, trigger: Trigger, plan: &Plan, now: Timestamp) -> Option<Arc<Decision>> {
        let (why, sentence) = why_not_zero(&self.spec, self.wanted, plan, self.verdict.as_ref(), now);
        self.why_not_zero = sentence;
        let wanted = plan.applied();
        if self.verdict.is_none() && wanted.is_none() {
            return None;
        }
        let mut reasons = self.journal.empty_list();
        let decided = self.verdict.as_ref().map_or(&[][..], Verdict::reasons);
        reasons.extend(decided.iter().chain(&plan.reasons));
        let decision = Decision { reasons, wanted, ..self.decision(trigger, now) };
        self.record(decision, self.outcome(why))
    }

    /// What the last evaluation said, with the present state around it; the reasons are the caller's.
    fn decision(&self, trigger: Trigger, now: Timestamp) -> Decision {
        let verdict = self.verdict.as_ref();
        Decision {
            at: now,
            trigger,
            inputs: verdict.map(|verdict| verdict.inputs),
            reasons: Vec::new(),
            mode: self.decider.mode(),
            desired: verdict.map(|verdict| verdict.desired),
            wanted: None,
            excess_burst_capacity: verdict.map_or_else(
                || burst::first_excess_burst_capacity(&self.spec),
                |verdict| verdict.excess_burst_capacity,
            ),
            routing: self.routing(),
            activators: self
                .activators
                .unwrap_or_else(|| burst::activator_count(&self.spec, self.pods.counts().ready)),
            why_not_zero: self.why_not_zero,
        }
    }

    fn outcome(&self, why: Why) -> Outcome {
        Outcome {
            has_data: self.has_data,
            desired: self.verdict.as_ref().map(|verdict| verdict.desired),
            wanted: self.wanted,
            panicking: matches!(self.decider.mode(), Mode::Panic { .. }),
            routing: self.route.current(),
            activators: self.activators,
            activity: self.activity.name(),
            why,
        }
    }

    /// Remembers a decision, and returns it if it is news.
    fn record(&mut self, mut decision: Decision, outcome: Outcome) -> Option<Arc<Decision>> {
        if self.outcome == Some(outcome) {
            self.journal.note_unchanged(decision, Multiscaler::DECISIONS_KEPT);
            return None;
        }
        self.outcome = Some(outcome);
        if let Some(reason) = decision.reasons.last() {
            self.last_reason = Some(reason.text);
        }
        // Kept for long, unlike those that change nothing.
        decision.reasons.shrink_to_fit();
        let decision = Arc::new(decision);
        self.journal.note_change(Arc::clone(&decision), Multiscaler::DECISIONS_KEPT);
        Some(decision)
    }

    /// Unknown routes are shown as the safe one.
    fn routing(&self) -> Routing {
        self.route.current().unwrap_or_default()
    }

    pub(super) fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.journal.iter()
    }

    pub(super) fn status(&self, now: Timestamp) -> RevisionStatus {
        let counts = self.pods.counts();
        let averages = self.collector.observe(self.pods.ready(), now);
        RevisionStatus {
            wanted: self.wanted,
            desired: self.verdict.as_ref().map(|verdict| verdict.desired),
            ready_pods: counts.ready,
            not_ready_pods: counts.not_ready,
            pending_pods: counts.pending,
            terminating_pods: counts.terminating,
            panicking: matches!(self.decider.mode(), Mode::Panic { .. }),
            stable_value: averages.map(|averages| averages.stable),
            panic_value: averages.map(|averages| averages.panic),
            target_per_pod: self.spec.target_per_pod,
            routing: self.routing(),
            waiting: self.collector.waiting(),
            activity: self.activity.name(),
            last_reason: self.last_reason,
            why_not_zero: self.why_not_zero,
        }
    }
}
