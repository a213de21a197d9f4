//! Who decides when our own measurements stand among other metrics: the mixed rule, in twelve points, each of
//! which has a test of its name.
//!
//! Requests are seen every second and by every pod, CPU and queues every 15 seconds and late. So the two have
//! different clocks: each own metric has a KPA decider that looks every two seconds and whenever requests
//! surge, and all of them together are only *asked* at a sync, where windows, policies and every other metric
//! have their say. The count may rise whenever requests need it; it falls at a sync alone.
//!
//! ```text
//!   every 2 s, and at a surge:  deciders ──► K        K > current: rise at once (4, 6)
//!   at a sync:                  all metrics ──► raw ──► windows ──► limits ──► D        (2, 3, 7, 9)
//!   at every change:            an event, and for a rise a recommendation (5)
//! ```

use serde::{Deserialize, Serialize};
use settings::ScalingSpec;
use settings::hpa::{HpaSpec, MetricSpec, RulesOrigin};
use vocabulary::{ExcessBurstCapacity, MilliValue, PodCount, Routing, Timestamp};

use super::conditions::{self, ConditionReason};
use super::history::{CountChange, Recommendation};
use super::limits::Limiter;
use super::proposal::NoProposal;
use super::samples::{MetricFailure, MetricSamples};
use super::sentence::{HpaSentence, MixedText, UnmeasuredText};
use super::stabilize::{self, Windows};
use super::state::{HpaState, MetricStatus, RescaleMemory};
use super::steps::Steps;
use super::{HpaObservation, HpaOutcome, HpaPods, Scale, measure};
use crate::decider::{Decider, Observation, Verdict};
use crate::decision::{Inputs, Mode, Reason, Stage};

/// One workload of this class: a decider for each own metric, and everything else that is remembered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MixedDecider {
    own: Vec<OwnMetric>,
    state: HpaState,
    rise: Steps,
    activation_scale: PodCount,
}

/// One of our own metrics.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OwnMetric {
    /// Its place in the spec.
    index: usize,
    scaling: ScalingSpec,
    decider: Decider,
    /// The last answer of the decider; `None` without data.
    verdict: Option<Verdict>,
}

/// The input of one sync.
#[derive(Debug)]
pub struct MixedObservation<'a> {
    /// The replica counts of the target, and whether its pods are its own.
    pub scale: Scale,
    /// The pods that its selector matches.
    pub pods: &'a HpaPods,
    /// For each metric of the spec, in its order, what is known of it. Those of our own metrics are written
    /// here, and at zero those of metrics that only pods could answer.
    pub samples: &'a mut [MetricSamples],
}

impl MixedDecider {
    /// Begins with the count that the platform was asked for. `scaling` are the settings of class kpa that
    /// apply: windows, rates, panic.
    pub fn new(spec: &HpaSpec, scaling: &ScalingSpec, count: PodCount, now: Timestamp) -> Self {
        let own = spec.metrics.iter().enumerate().filter_map(|(index, metric)| {
            let scaling = scaling.for_own_metric(metric)?;
            let decider = Decider::new(&scaling, count, now);
            Some(OwnMetric { index, scaling, decider, verdict: None })
        });
        Self {
            own: own.collect(),
            state: HpaState::default(),
            rise: Steps::default(),
            activation_scale: scaling.activation_scale,
        }
    }

    /// Follows changed settings: what is remembered stays, and a decider whose metric stays goes on. The
    /// count is the one that there is now.
    pub fn update(&mut self, spec: &HpaSpec, scaling: &ScalingSpec, count: PodCount, now: Timestamp) {
        let fresh = Self::new(spec, scaling, count, now);
        let mut former = std::mem::take(&mut self.own);
        self.own = fresh.own;
        for own in &mut self.own {
            // By what it measures and not by its place, which may be another in the new document.
            let Some(place) = former.iter().position(|one| one.scaling.metric == own.scaling.metric) else {
                continue;
            };
            let known = former.swap_remove(place);
            (own.decider, own.verdict) = (known.decider, known.verdict);
            own.decider.update(&own.scaling, now);
        }
        self.activation_scale = fresh.activation_scale;
        // Their places are those of the former document.
        self.state.metrics.clear();
    }

    /// Zero pods were found where the document allows them: only this class takes the last pod away, so it
    /// may bring the first one back.
    pub fn note_found_at_zero(&mut self, spec: &HpaSpec, now: Timestamp) {
        if spec.min == PodCount::ZERO {
            let condition = &mut self.state.conditions.scaled_to_zero;
            conditions::set(condition, ConditionReason::ScaledToZero, now);
        }
    }

    /// The history and the status of the workload.
    pub fn state(&self) -> &HpaState {
        &self.state
    }

    /// How the own metrics came to what they last said, and what was made of it between two syncs.
    pub fn rise_reasons(&self) -> &[Reason] {
        self.rise.as_slice()
    }

    /// The count stays as it is until the next sync, though own metrics ask for another: why, from what they
    /// last said on.
    pub fn hold_until_sync(&mut self, count: PodCount) -> &[Reason] {
        self.rise.lead_to(count, Stage::Surge, HpaSentence::Mixed(MixedText::NotToZero { present: count }));
        self.rise.as_slice()
    }

    /// The room beyond the target burst capacity, by the first own metric; it decides the route, as for class
    /// kpa. `None` without an own metric, or without data.
    pub fn excess_burst_capacity(&self) -> Option<ExcessBurstCapacity> {
        self.own.first()?.verdict.as_ref().map(|verdict| verdict.excess_burst_capacity)
    }

    /// Lets the own metrics decide, every two seconds or off the tick. For each of them, in the order of the
    /// spec, what its windows say, or `None` without data. The answer is the count to go to at once, if that
    /// is more than there is.
    pub fn evaluate_own(
        &mut self,
        spec: &HpaSpec,
        observations: &[Option<Observation>],
        current: PodCount,
        now: Timestamp,
    ) -> Option<PodCount> {
        debug_assert_eq!(observations.len(), self.own.len());
        for (own, observation) in self.own.iter_mut().zip(observations) {
            own.verdict =
                observation.as_ref().map(|observation| own.decider.decide(&own.scaling, observation, now));
        }
        self.rise.restart();
        let leader =
            self.own.iter().filter_map(|own| own.verdict.as_ref()).max_by_key(|verdict| verdict.desired);
        self.rise.go_on_from(leader.map_or(&[], Verdict::reasons));
        self.rise(spec, current, now)
    }

    /// One sync: every metric, the windows, the limits. Without an own metric it is [`super::evaluate`], and
    /// nothing more.
    pub fn sync(&mut self, spec: &HpaSpec, observation: MixedObservation<'_>, now: Timestamp) -> HpaOutcome {
        let MixedObservation { scale, pods, samples } = observation;
        if self.own.is_empty() {
            return super::evaluate(spec, &HpaObservation { scale, pods, samples }, &mut self.state, now);
        }
        super::begin(scale, &mut self.state, now);
        let current = scale.replicas;
        // No look for a pause (9): with an own metric zero is a count like others.
        let early = super::correct_bounds(spec, current, &mut self.state)
            .or_else(|| super::check_selection(scale, &mut self.state, now));
        if let Some(outcome) = early {
            return outcome;
        }
        self.fill_in(spec, samples, current);
        let observation = HpaObservation { scale, pods, samples };
        let HpaState { metrics, steps, .. } = &mut self.state;
        let measured = measure::measure(spec, &observation, now, metrics, steps);
        let Some(mut raw) = super::report(&measured, spec, current, &mut self.state, now) else {
            return super::abandon(current, &mut self.state);
        };
        // The cause follows from the metrics' own count, before our rules change it.
        let cause = super::cause(&measured, raw, current);
        raw = self.zero_if_idle(spec, raw);
        // Before it is remembered (2): so the window towards fewer pods begins when panic ends, not when the
        // load fell.
        if self.panics() && raw < current {
            raw = current;
            let text = HpaSentence::Mixed(MixedText::Panic { present: current });
            self.state.steps.lead_to(raw, Stage::Panic, text);
        }
        let (stabilized, limited) = super::normalize(spec, current, raw, &mut self.state, now);
        let desired = self.settle(spec, limited.count, current, now);
        self.state.desired = Some(desired);
        HpaOutcome { desired, raw: Some(raw), stabilized: Some(stabilized), cause }
    }

    /// A count was written, by whichever clock: policies look back on it, and a rise counts as recommended.
    pub fn note_rescale(&mut self, spec: &HpaSpec, change: CountChange, now: Timestamp) {
        self.state.note_rescale(spec, change, now);
        // Between two syncs no metric recommended it: unless it is remembered, the next sync knows of no
        // reason to keep it.
        if change.to > change.from && !self.own.is_empty() {
            let place = stabilize::expired(&self.state.history, spec, now);
            self.state.history.record(Recommendation { count: change.to, at: now }, place);
        }
    }

    /// A change that was noted was not carried out; see [`HpaState::revert_rescale`].
    pub fn revert_rescale(&mut self, change: CountChange, before: &RescaleMemory, now: Timestamp) {
        // Found by the time of the order: a sync may have recommended the same count since.
        if change.to > change.from && !self.own.is_empty() {
            self.state.history.remove_recommendation(Recommendation { count: change.to, at: before.at });
        }
        self.state.revert_rescale(change, before, now);
    }

    /// A count could not be written; see [`HpaState::note_failed_rescale`].
    pub fn note_failed_rescale(&mut self, before: Option<PodCount>, now: Timestamp) {
        self.state.note_failed_rescale(before, now);
    }

    /// Whether requests need pods, or may: an own metric without data does not say no.
    pub fn may_need_pods(&self) -> bool {
        let needs =
            |own: &OwnMetric| own.verdict.as_ref().is_none_or(|verdict| verdict.desired > PodCount::ZERO);
        self.own.iter().any(needs)
    }

    /// The mode of the own metrics: panic if one of them panics.
    pub fn mode(&self) -> Mode {
        let verdicts = self.own.iter().filter_map(|own| own.verdict.as_ref());
        let mut modes = verdicts.map(|verdict| verdict.mode);
        modes.find(|mode| matches!(mode, Mode::Panic { .. })).unwrap_or(Mode::Stable)
    }

    /// The inputs of the first own metric that has data.
    pub fn inputs(&self) -> Option<Inputs> {
        self.own.iter().find_map(|own| own.verdict.as_ref()).map(|verdict| verdict.inputs)
    }

    /// The largest answer of the own metrics that have data.
    fn need(&self) -> Option<PodCount> {
        self.own.iter().filter_map(|own| own.verdict.as_ref()).map(|verdict| verdict.desired).max()
    }

    fn panics(&self) -> bool {
        matches!(self.mode(), Mode::Panic { .. })
    }

    /// The own metrics' entries; and at zero nothing is asked that only pods could answer.
    fn fill_in(&self, spec: &HpaSpec, samples: &mut [MetricSamples], current: PodCount) {
        for own in &self.own {
            if let Some(entry) = samples.get_mut(own.index) {
                *entry = match &own.verdict {
                    Some(verdict) => decided(verdict),
                    None => MetricSamples::Failed(MetricFailure {
                        reason: ConditionReason::FailedGetPodsMetric,
                        why: NoProposal::NoReporter,
                    }),
                };
            }
        }
        if current == PodCount::ZERO {
            for (entry, _) in samples.iter_mut().zip(&spec.metrics).filter(|(_, metric)| metric.is_per_pod())
            {
                *entry = MetricSamples::NotAsked;
            }
        }
    }

    /// Without requests and without anything to do outside of the pods, a metric of pods that asks for one
    /// says nothing: its ceiling cannot say less while one is left.
    fn zero_if_idle(&mut self, spec: &HpaSpec, raw: PodCount) -> PodCount {
        let is_idle = |(status, metric): (&MetricStatus, &MetricSpec)| match status {
            MetricStatus::Proposed(proposal) if metric.is_per_pod() => proposal.count <= PodCount::ONE,
            MetricStatus::Proposed(proposal) => proposal.count == PodCount::ZERO,
            MetricStatus::NotAsked => true,
            MetricStatus::Failed { .. } => false,
        };
        if raw > PodCount::ZERO
            && spec.min == PodCount::ZERO
            && self.state.metrics.iter().zip(&spec.metrics).all(is_idle)
        {
            self.state.steps.lead_to(
                PodCount::ZERO,
                Stage::ScaleToZero,
                HpaSentence::Mixed(MixedText::OneIsNone),
            );
            return PodCount::ZERO;
        }
        raw
    }

    /// The count after windows and limits, raised to the immediate need of requests; it falls only if no
    /// metric failed, none panics and none needs more.
    fn settle(&mut self, spec: &HpaSpec, limited: PodCount, current: PodCount, now: Timestamp) -> PodCount {
        let mut steps = std::mem::take(&mut self.state.steps);
        let mut desired = limited;
        // Only from zero: elsewhere the bounds were corrected before anything was measured.
        if current == PodCount::ZERO && desired < spec.min {
            desired = spec.min;
            let text = UnmeasuredText::RaisedFromZero { min: spec.min };
            steps.lead_to(desired, Stage::MinScale, HpaSentence::Unmeasured(text));
        }
        // The limits of a sync are narrower than those of a look (4): without this a sync would delay what a
        // look may do at once.
        if let Some((count, text)) = self.wanted_rise(spec, current, now, &mut Steps::default())
            && count > desired
        {
            desired = count;
            steps.lead_to(count, Stage::Surge, HpaSentence::Mixed(text));
        }
        let fails = self.state.metrics.iter().any(|status| matches!(status, MetricStatus::Failed { .. }));
        if desired < current && (fails || self.panics() || self.need().is_some_and(|need| desired < need)) {
            desired = current;
            steps.lead_to(current, Stage::Panic, HpaSentence::Mixed(MixedText::Panic { present: current }));
        }
        self.state.steps = steps;
        desired
    }

    fn rise(&mut self, spec: &HpaSpec, current: PodCount, now: Timestamp) -> Option<PodCount> {
        let mut steps = std::mem::take(&mut self.rise);
        let rise = self.wanted_rise(spec, current, now, &mut steps);
        if let Some((count, text)) = rise {
            steps.lead_to(count, Stage::Surge, HpaSentence::Mixed(text));
        }
        self.rise = steps;
        rise.map(|(count, _)| count)
    }

    /// Where requests alone would take the count, if that is up.
    fn wanted_rise(
        &self,
        spec: &HpaSpec,
        current: PodCount,
        now: Timestamp,
        steps: &mut Steps,
    ) -> Option<(PodCount, MixedText)> {
        let need = self.need().filter(|&need| need > current)?;
        let least = spec.min.max(PodCount::ONE);
        let wants = if current == PodCount::ZERO { need.max(least).max(self.activation_scale) } else { need };
        let wanted = CountChange { from: current, to: wants.min(spec.max) };
        let mut count = self.rise_within_limits(spec, wanted, now, steps);
        if current == PodCount::ZERO {
            // Requests wait: no window and no policy leaves them without a pod.
            count = count.max(least.min(spec.max));
            return Some((count, MixedText::Wake { count }));
        }
        (count > current).then_some((count, MixedText::OwnNeed { count: need }))
    }

    /// A rise within the window and the policies towards more pods, if the document itself wrote them.
    fn rise_within_limits(
        &self,
        spec: &HpaSpec,
        wanted: CountChange,
        now: Timestamp,
        steps: &mut Steps,
    ) -> PodCount {
        let written = spec.behavior.as_ref().filter(|one| one.scale_up.origin == RulesOrigin::Document);
        let Some(behavior) = written else { return wanted.to };
        let history = &self.state.history;
        let windows = Windows::of(behavior, &spec.settings);
        let recommended =
            windows.envelope(history, wanted.to, now).force(wanted.from, steps).max(wanted.from);
        let limiter = Limiter::of(spec, wanted.from, &history.events, now);
        limiter.up_bound(&behavior.scale_up, steps).min(recommended)
    }
}

/// The route of a workload without an own metric, whose requests are not measured.
pub fn routing_without_own(ready: PodCount) -> Routing {
    if ready > PodCount::ZERO { Routing::Direct } else { Routing::ThroughActivator }
}

/// The samples of an own metric: the count that its decider wants, and the average load per pod.
fn decided(verdict: &Verdict) -> MetricSamples {
    let pods = verdict.inputs.ready_pods.as_f64().max(1.0);
    let average = MilliValue::ceil_from((verdict.inputs.stable_value * 1000.0 / pods).round());
    MetricSamples::Decided { count: verdict.desired, average }
}
