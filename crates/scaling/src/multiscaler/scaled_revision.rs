//! One revision: evaluate, put the answer through bounds and scale-to-zero rules, and order what follows from
//! it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use vocabulary::{PodCount, PodId, Reporter, RevisionId, Routing, Timestamp};

use super::adopted::AdoptedConnectionBook;
use super::algorithm::Algorithm;
use super::beginning::RevisionBeginning;
use super::collectors::Collectors;
use super::count_forecast::CountForecast;
use super::journal::DecisionJournal;
use super::outcome::DecisionOutcome;
use super::pod_starts::PodStarts;
use super::pods::RevisionPods;
use super::routing::Route;
use super::shadow::{ShadowDifference, ShadowStatus};
use super::zone_book::ZoneBook;
use super::{Command, PodFact};
use crate::bounds::Initialization;
use crate::decider::Observation;
use crate::decision::{BoundText, Mode, Reason, Sentence, Stage, Trigger};
use crate::history::{RevisionHistory, WallClock};
use crate::hpa::CountChange;
use crate::scale_to_zero::{KeptBy, Plan, RevisionActivity};

mod adopted;
mod forecast;
mod hpa;
mod measures;
mod report;
mod reporters;
mod route;
mod settling;

/// Orders that wait to be carried out.
type Commands = VecDeque<Command>;

/// Everything known of one revision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ScaledRevision {
    id: RevisionId,
    #[serde(with = "settings::whole_form")]
    spec: Arc<ScalingSpec>,
    collectors: Collectors,
    algorithm: Algorithm,
    pods: RevisionPods,
    pod_starts: PodStarts,
    /// The platform's replica count: our last order, or a count that another client wrote since.
    wanted: PodCount,
    /// Another client wrote `wanted`, perhaps before our last order reached the platform: the next count is
    /// ordered even if it is the same.
    wanted_set_externally: bool,
    activity: RevisionActivity,
    /// Whether the revision ever had as many ready pods as its initial scale asks for.
    initialization: Initialization,
    route: Route,
    acknowledged_since: Option<Timestamp>,
    /// Whether the last evaluation had data.
    has_data: bool,
    activators: Option<PodCount>,
    surge_threshold: Option<u32>,
    /// `None` where neither prediction nor a schedule is asked for.
    forecast: Option<Box<CountForecast>>,
    /// Those of the multiscaler, which puts them here.
    #[serde(skip)]
    zones: Arc<ZoneBook>,
    adopted: AdoptedConnectionBook,
    /// Whether connections from before an adoption hold the count.
    is_held_by_connections: bool,
    /// `None` while what is decided is done.
    shadow: Option<ShadowStatus>,
    /// For readers alone, and so in no keyframe.
    #[serde(skip)]
    journal: DecisionJournal,
    /// What the last decisions have changed for readers, until that is taken.
    news: DecisionNews,
    outcome: Option<DecisionOutcome>,
    last_reason: Option<Sentence>,
    why_not_zero: Option<Sentence>,
    /// When requests are looked at next; `None` if they decide nothing.
    next_tick: Option<Timestamp>,
    wake: Option<Timestamp>,
    clock: WallClock,
    /// `None` for a revision that was never used. Readers share it until it is changed.
    history: Option<Arc<RevisionHistory>>,
    history_feed: HistoryFeed,
}

/// Which seconds the history is told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum HistoryFeed {
    /// The history is told of each second that ends.
    #[default]
    EachSecond,
    /// The history knows that nothing is asked for, and readers add the time that passes.
    Resting,
}

/// How far a revision is another one to readers than when that was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DecisionNews {
    /// No decision was made since.
    Nothing,
    /// Decisions were made, all of them with the same end from the same numbers; the last one at that time.
    LaterAlone { at: Timestamp },
    /// A decision changed something, or went by other numbers; or the history goes on.
    Changed,
}

/// Revisions that sleep are looked at together, on the full half second: a tick of one has nothing to decide,
/// since a request wakes it at once, and each time at which something is due wakes the whole process. A
/// thousand that sleep would do that five hundred times a second.
const IDLE_TICK_STEP: Duration = Duration::from_millis(500);

impl ScaledRevision {
    pub(super) fn new(id: RevisionId, spec: Arc<ScalingSpec>, beginning: RevisionBeginning) -> Self {
        let now = beginning.now;
        let (activity, initialization) = beginning.initial_state(&spec);
        let algorithm = Algorithm::new(&spec, beginning);
        Self {
            id,
            collectors: Collectors::new(&spec),
            next_tick: algorithm.tick().map(|tick| now + tick),
            algorithm,
            pods: RevisionPods::default(),
            pod_starts: PodStarts::of(beginning),
            wanted: beginning.wanted,
            wanted_set_externally: false,
            activity,
            initialization,
            route: Route::default(),
            acknowledged_since: None,
            has_data: false,
            activators: None,
            surge_threshold: None,
            forecast: CountForecast::following(None, &spec, beginning.wanted, now),
            zones: Arc::default(),
            adopted: AdoptedConnectionBook::default(),
            is_held_by_connections: false,
            shadow: spec.shadow.then(|| ShadowStatus::since(now)),
            journal: DecisionJournal::default(),
            news: DecisionNews::Nothing,
            outcome: None,
            last_reason: None,
            why_not_zero: None,
            wake: None,
            clock: WallClock::default(),
            history: None,
            history_feed: HistoryFeed::EachSecond,
            spec,
        }
    }

    pub(super) fn id(&self) -> RevisionId {
        self.id
    }

    pub(super) fn wanted(&self) -> PodCount {
        self.wanted
    }

    /// What decisions have changed for readers since this was last asked.
    pub(super) fn take_news(&mut self) -> DecisionNews {
        std::mem::replace(&mut self.news, DecisionNews::Nothing)
    }

    /// The first look, once the reporters that are already there are known.
    pub(super) fn created(&mut self, now: Timestamp, commands: &mut Commands) {
        self.reconcile(Trigger::Change, now, commands);
    }

    /// New settings, or a replica count that another client wrote. The count is taken as it is; the next
    /// evaluation goes on from it.
    pub(super) fn changed(
        &mut self,
        spec: Arc<ScalingSpec>,
        wanted: PodCount,
        now: Timestamp,
        commands: &mut Commands,
    ) {
        if wanted != self.wanted {
            // Class hpa takes it for the count to go on from, so there is nothing to order again.
            self.wanted_set_externally |= self.algorithm.kpa().is_some() && self.shadow.is_none();
            if self.shadow.is_some() {
                // Policies look back on changes of the count, also on those of another client.
                self.algorithm.note_ordered(CountChange { from: self.wanted, to: wanted }, now);
            }
            self.note_count(wanted, now);
            self.wanted = wanted;
            self.note_foreign_count_of_forecast(wanted);
            self.algorithm.note_foreign_count(wanted);
        }
        if spec != self.spec {
            self.collectors.update(&spec, now);
            let reactive = self.reactive();
            self.algorithm.update(&spec, reactive, &self.pods, now);
            self.follow_forecast(&spec, now);
            let is_of_other_class = spec.hpa.is_some() != self.spec.hpa.is_some();
            let asks_for_first = spec.min_scale > PodCount::ZERO && self.spec.min_scale == PodCount::ZERO;
            if wanted == PodCount::ZERO && (is_of_other_class || asks_for_first) {
                // A revision at rest by the rules of the other class need not rest by those of this class.
                // Nor does a revision that must have pods now, though no load of it was ever measured.
                (self.activity, self.initialization) =
                    RevisionBeginning::found_with(wanted, now).initial_state(&spec);
            }
            // A tick that goes on keeps its phase; one that requests have only now begins with the change.
            let tick = self.algorithm.tick();
            self.next_tick = tick.map(|tick| self.next_tick.unwrap_or(now + tick));
            self.shadow = spec.shadow.then(|| self.shadow.unwrap_or_else(|| ShadowStatus::since(now)));
            self.spec = spec;
            self.keep_demand();
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    pub(super) fn pods_changed(&mut self, facts: &[PodFact], now: Timestamp, commands: &mut Commands) {
        self.keep_history(now);
        self.note_started_pods(facts);
        for gone in self.pods.replace(facts) {
            self.collectors.remove(Reporter::Pod(gone));
            self.adopted.remove(gone);
        }
        self.note_ready_pods(now);
        self.note_starts(now);
        self.algorithm.pods_changed(&self.pods, now);
        self.reconcile(Trigger::Change, now, commands);
    }

    pub(super) fn pod_changed(&mut self, fact: PodFact, now: Timestamp, commands: &mut Commands) {
        self.keep_history(now);
        if self.pods.change(fact) {
            self.note_ready_pods(now);
            self.note_starts(now);
            self.algorithm.pods_changed(&self.pods, now);
            self.reconcile(Trigger::Change, now, commands);
        }
    }

    pub(super) fn pod_ids(&self) -> Vec<PodId> {
        self.pods.ids().collect()
    }

    pub(super) fn path_acknowledged(&mut self, acknowledged: bool, now: Timestamp, commands: &mut Commands) {
        // A repeat must not begin the time anew from which the grace period counts.
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
        let next_tick =
            self.next_tick.map(|at| if self.is_idle_at_zero() { at.rounded_up(IDLE_TICK_STEP) } else { at });
        let due = [self.wake, next_tick, self.algorithm.deadline(), self.forecast_deadline()];
        due.into_iter().flatten().min().unwrap_or(Timestamp::MAX)
    }

    /// Whether there is no pod, nor should there be one.
    fn is_idle_at_zero(&self) -> bool {
        self.wanted == PodCount::ZERO && self.pods.is_empty()
    }

    /// Runs the evaluations that are due. Ticks that were missed are not made up for; the phase stays.
    pub(super) fn advance(&mut self, now: Timestamp, commands: &mut Commands) {
        let is_metric_due = self.algorithm.deadline().is_some_and(|at| at <= now);
        let is_tick_due = self.next_tick.is_some_and(|at| at <= now);
        if let (true, Some(tick), Some(next)) = (is_tick_due, self.algorithm.tick(), &mut self.next_tick) {
            while *next <= now {
                *next += tick;
            }
        }
        if is_tick_due || is_metric_due {
            self.evaluate(Trigger::Tick, now, commands);
        }
        // Asked after the evaluation, which has put the wake off if it came to a look of its own.
        if self.wake.is_some_and(|wake| wake <= now) {
            self.wake = None;
            self.reconcile(Trigger::Change, now, commands);
        }
        self.keep_forecast(now, commands);
    }

    /// Decides anew. Without data nothing changes: no state, no count, no route.
    fn evaluate(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        self.keep_history_at_evaluation(now);
        self.watch_demand(now);
        let (seen, wanted) = (self.reactive_ready(), self.reactive());
        let Some(kpa) = self.algorithm.kpa_mut() else {
            return self.evaluate_hpa(trigger, now, commands);
        };
        let ready = self.pods.ready();
        let Some(averages) = self.collectors.observe(ready, now) else {
            return self.note_silence(trigger, now, commands);
        };
        // `Some`, even if no request is present: a present count forbids the decider to lower the count.
        let present_count = (trigger == Trigger::Surge && self.spec.surge_evaluation)
            .then(|| self.collectors.first().surge_total(now).unwrap_or(0.0));
        let observation =
            Observation { ready: seen, reachable: self.pods.reachable(), wanted, averages, present_count };
        kpa.decide(&self.spec, &observation, now);
        self.note_data(now);
        self.reconcile(trigger, now, commands);
    }

    /// Neither panic mode nor an evaluation between ticks lowers the count: pods left over from a given-up
    /// activation or from the write of another client stay as well, within the upper bound. (Knative's panic
    /// holds only what it asked for itself.)
    fn held(&self, mut plan: Plan, trigger: Trigger) -> Plan {
        // The mixed rule of class hpa says when the count may fall.
        if self.algorithm.hpa().is_some() {
            return self.held_at_zero(plan);
        }
        let present = self.reactive().min(self.spec.max_scale.unwrap_or(PodCount::MAX));
        let (stage, rule) = if matches!(self.algorithm.mode(), Mode::Panic { .. }) {
            (Stage::Panic, BoundText::Panic { present })
        } else if trigger == Trigger::Surge && self.spec.surge_evaluation {
            (Stage::Surge, BoundText::BetweenTicks { present })
        } else {
            return plan;
        };
        // Zero is not held: it comes only from the rules around zero, which have waited long enough.
        if let Some(count) = plan.applied().filter(|&count| count > PodCount::ZERO && count < present) {
            plan.want = Some(present);
            let (before, after) = (Some(count), Some(present));
            plan.reasons.push(Reason { stage, before, after, text: rule.into() });
        }
        plan
    }

    /// Knative's reconcile: the last answer goes through the bounds and the rules around zero, and the route
    /// follows.
    fn reconcile(&mut self, trigger: Trigger, now: Timestamp, commands: &mut Commands) {
        let Some(settled) = self.settle(now) else { return self.note_silence(trigger, now, commands) };
        let plan = self.held(settled, trigger);
        // The route follows what the load needs: connections past ebb follow no route, and pods that are
        // there early serve behind the activators until the load needs one.
        let routed = plan.want;
        let plan = self.raised(plan, now);
        let plan = self.held_by_connections(plan, now, commands);
        self.compare_in_shadow(&plan, trigger, now);
        let ordered = plan
            .applied()
            .filter(|&count| count != self.wanted || self.wanted_set_externally)
            .filter(|_| self.shadow.is_none())
            .map(|to| CountChange { from: self.wanted, to });
        if let Some(CountChange { to, .. }) = ordered {
            self.note_order(to, now);
            self.note_count(to, now);
            self.wanted = to;
            self.wanted_set_externally = false;
            // An order is always published: the same count is ordered again only after another client wrote a
            // different one.
            self.outcome = None;
        }
        self.choose_route(routed, now, commands);
        self.set_surge_threshold(commands);
        // After the route, whose dwell may end first.
        self.plan_wake(&plan, now);
        // The order above has reset the outcome, so a decision with an order is always published.
        let Some(decision) = self.publish(trigger, &plan, now) else { return };
        if let Some(CountChange { from, to: count }) = ordered {
            let because = Arc::clone(&decision);
            commands.push_back(Command::ScaleTo { revision: self.id, from, count, because });
        }
        commands.push_back(Command::Publish { revision: self.id, decision });
    }

    /// Regular decisions alone: in between the count follows facts that the next of them knows too.
    fn compare_in_shadow(&mut self, plan: &Plan, trigger: Trigger, now: Timestamp) {
        let (Some(shadow), Trigger::Tick | Trigger::Sync) = (&mut self.shadow, trigger) else { return };
        let theirs = self.wanted;
        let reasons = self.algorithm.reasons().iter().chain(&plan.reasons);
        let why = reasons.last().map(|reason| reason.text);
        self.news = DecisionNews::Changed;
        shadow.compare(ShadowDifference { at: now, ours: plan.applied().unwrap_or(theirs), theirs, why });
    }

    fn plan_wake(&mut self, plan: &Plan, now: Timestamp) {
        let recheck = plan.recheck.map(|after| now + after);
        let dwell = self.route.deadline(self.routing_dwell());
        // "Longer than the timeout" is strict, so the look is taken just after it.
        let timeout = match (self.activity, &plan.kept) {
            (RevisionActivity::Activating { since }, Some(kept)) if kept.rule == KeptBy::Activating => {
                Some(since + self.spec.activation_timeout + Duration::from_nanos(1))
            }
            (
                RevisionActivity::Activating { .. }
                | RevisionActivity::Active { .. }
                | RevisionActivity::Inactive { .. },
                _,
            ) => None,
        };
        // A time in the past was evaluated just now, and would ask for the same evaluation without end.
        self.wake = [recheck, dwell, timeout].into_iter().flatten().filter(|&at| at > now).min();
    }
}
