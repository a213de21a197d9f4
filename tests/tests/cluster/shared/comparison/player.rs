//! One autoscaler of Kubernetes' and one of ours, pass by pass.
//!
//! ```text
//!  controller   reads the scale ── asks metric 1 ──┐        ┌── asks 2 … n ── lists pods ── decides ── writes scale, status ── a second later ──► the next pass
//!  player                                          └─ gate ─┘
//! ```
//!
//! At the gate the former pass is over: its status and the count are read, and held against what `evaluate`
//! makes of the same. Then the script goes on.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp as WallTime};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use platform_kubernetes::ObservedTarget;
use scaling::hpa::{
    ConditionReason, CountChange, HpaObservation, HpaPods, HpaState, MetricFailure, MetricSamples,
    NoProposal, Scale, evaluate,
};
use serde_json::{Value, json};
use settings::hpa::reading::read_document;
use settings::hpa::{HpaSettings, HpaSpec};
use tests::cluster::TestNamespace;
use vocabulary::{PodCount, Timestamp};

use super::plan::{self, Plan};
use super::script::{Script, wall_now};
use super::verdict::{Verdict, conditions};
use super::writes::{WriteLog, Writes};
use crate::metrics_adapter::Answer;

/// The settings that `tests/cluster/up` gives to kube-controller-manager.
fn controller_settings() -> HpaSettings {
    HpaSettings {
        downscale_stabilization: Duration::from_secs(6),
        cpu_initialization_period: Duration::from_secs(5),
        initial_readiness_delay: Duration::from_secs(3),
        ..HpaSettings::default()
    }
}

/// How long after the last answer the controller looks at its clock at the latest, unless it is seen to take
/// longer.
const SLOWEST_PASS: SignedDuration = SignedDuration::from_millis(300);
/// Of the time in which it does, these parts are held against.
const PARTS_PERCENT: [i32; 6] = [0, 10, 25, 50, 75, 100];
/// Two instants at which a count may have been written are one if they are closer than this.
const CLOSE: SignedDuration = SignedDuration::from_millis(5);
/// How many of the histories that fit all passes so far are held against the next one.
const HISTORIES_MAX: usize = 24;
/// How many passes of a hundred see a pod change.
const CHANGES_PERCENT: usize = 18;
/// Of so many passes these are a spell, in which there is nothing to do (a lull) or too much (a rush): longer
/// than the windows of those that may go to zero. Not the first ones: Kubernetes notes the count that it
/// found when it reads the scale, we when the last answer was given, and a window that is two passes long
/// tells these apart.
const SPELL_EVERY: usize = 12;
const SPELL: Range<usize> = 7..12;
/// What is measured in a rush, divided by its target.
const RUSH_PERCENT: u64 = 400;
/// When no pass is under way, in milliseconds after the last answer: they are a second apart.
const BETWEEN_PASSES: RangeInclusive<i128> = 250..=550;
/// What came of the comparison so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) passes: usize,
    /// Passes that agree with what was seen a moment earlier or later.
    pub(crate) explained: Vec<String>,
    pub(crate) differing: Vec<String>,
    /// In how many passes each was said.
    pub(crate) reasons: BTreeMap<String, usize>,
}

/// Follows one autoscaler of the comparison with ebb's algorithm.
pub(crate) struct Player {
    plan: Plan,
    spec: HpaSpec,
    /// What it may remember, likely ones first: they differ in when counts were written.
    states: Vec<HpaState>,
    log: Arc<Mutex<WriteLog>>,
    /// How long it took from the last answer of a pass to what was written then, at most.
    slowest: SignedDuration,
    script: Script,
    autoscalers: Api<DynamicObject>,
    targets: Api<DynamicObject>,
    /// The place of the metric that is asked for next.
    next_metric: usize,
    pass: Option<Pass>,
    number: usize,
    is_paused: bool,
    pub(crate) record: Record,
}

/// A pass that is under way: what it has seen.
struct Pass {
    scale: Scale,
    answers: Vec<Answer>,
    answered: WallTime,
    /// Its first answer was given; it may have looked at its clock then, if there were several.
    first_answered: Option<WallTime>,
    /// The pods as they are; and as they were, if the script has just changed them.
    pods: Vec<Vec<Pod>>,
    /// Whether it was asked if a pod changes after it.
    is_followed: bool,
    /// The count that another client wrote since the scale was read. A count of this pass is written over it,
    /// as Kubernetes does since 1.37.
    foreign: Option<PodCount>,
}

/// What a pass may have seen.
#[derive(Clone, Copy)]
struct Seen<'a> {
    pass: &'a Pass,
    pods: &'a [Pod],
    clock: WallTime,
    /// When a count was written, if one was.
    written: WallTime,
}

impl Player {
    pub(crate) async fn new(plan: Plan, namespace: &TestNamespace, log: Arc<Mutex<WriteLog>>) -> Self {
        let targets = plan::targets(namespace);
        let spec = read_spec(&plan);
        let script = Script::begin(namespace, &plan, spec.metrics.len() == 1).await;
        let count = plan.pods.max(1);
        let target = json!({
            "apiVersion": plan::target_api_version(), "kind": "Target",
            "metadata": {"name": plan.name}, "spec": {"replicas": count},
        });
        super::create(&targets, target).await;
        let status = json!({"status": {"replicas": count, "selector": format!("app={}", plan.name)}});
        let written = targets.patch_status(&plan.name, &PatchParams::default(), &Patch::Merge(status)).await;
        written.expect("the status of a target can be written");
        let autoscalers = plan::autoscalers(namespace);
        Self {
            plan,
            spec,
            states: vec![HpaState::default()],
            log,
            slowest: SLOWEST_PASS,
            script,
            autoscalers,
            targets,
            next_metric: 0,
            pass: None,
            number: 0,
            is_paused: false,
            record: Record::default(),
        }
    }

    /// The name by which requests for its metrics are known.
    pub(crate) fn name(&self) -> &str {
        &self.plan.name
    }

    /// Kubernetes' autoscaler is there from now on.
    pub(crate) async fn begin(&mut self) {
        super::create(&self.autoscalers, document(&self.plan)).await;
    }

    /// Nothing is held any more, so that the namespace can go.
    pub(crate) async fn end(&mut self) {
        self.script.free_pods().await;
    }

    /// The controller asks for the next metric.
    pub(crate) async fn answer(&mut self) -> Answer {
        let metric = self.next_metric;
        self.next_metric = (metric + 1) % self.spec.metrics.len();
        if metric == 0 {
            self.pass_gate().await;
        }
        let ratio = self.ratio_of_spell();
        let answer = self.script.answer(&self.plan.spec["metrics"][metric], ratio);
        if let Some(pass) = &mut self.pass {
            pass.answers.push(answer.clone());
            pass.answered = wall_now();
            pass.first_answered.get_or_insert(pass.answered);
        }
        answer
    }

    /// Nothing to do for those that may go to zero, and too much for those that may ask for more pods than
    /// can be written: by chance they would hardly ever come to that.
    fn ratio_of_spell(&self) -> Option<u64> {
        let extreme = if self.spec.min == PodCount::ZERO {
            Some(0)
        } else {
            (self.spec.max > plan::COUNT_MAX).then_some(RUSH_PERCENT)
        };
        extreme.filter(|_| SPELL.contains(&(self.number % SPELL_EVERY)))
    }

    async fn pass_gate(&mut self) {
        let (status, scale) = self.read().await;
        // Kubernetes' garbage collector has its own thoughts about pods that are deleted.
        self.script.read_pods().await;
        self.judge(&status, scale.replicas);
        self.number += 1;
        self.is_paused = false;
        let pods = vec![self.script.pods.clone()];
        let mut pass = Pass {
            scale,
            answers: Vec::new(),
            answered: wall_now(),
            first_answered: None,
            pods,
            is_followed: false,
            foreign: None,
        };
        // Each of several metrics would see the pods at another moment.
        if self.spec.metrics.len() == 1 && self.script.dice().percent(CHANGES_PERCENT) {
            self.script.change_a_pod().await;
            pass.pods.insert(0, self.script.pods.clone());
        }
        self.disturb(&mut pass).await;
        self.pass = Some(pass);
    }

    /// Another client writes the count, or how many pods there are.
    async fn disturb(&mut self, pass: &mut Pass) {
        if self.plan.is_disturbed && self.number.is_multiple_of(9) {
            // Above and below the bounds, within them, and zero, which pauses.
            let max = self.spec.max.value();
            let counts = [max + 1, 1, max - 2, 0];
            let count = PodCount::new(counts[(self.number / 9) % counts.len()]);
            self.write_count(count).await;
            self.is_paused = count == PodCount::ZERO;
            pass.foreign = Some(count);
        } else if self.script.dice().percent(6) {
            let present = self.script.dice().below(9);
            let status = Patch::Merge(json!({"status": {"replicas": present}}));
            let written = self.targets.patch_status(&self.plan.name, &PatchParams::default(), &status).await;
            written.expect("the status of a target can be written");
        }
    }

    /// Where there are several metrics, pods change while no pass is under way: long after the last one, and
    /// before the next.
    pub(crate) async fn change_between_passes(&mut self) {
        let Some(pass) = self.pass.as_mut().filter(|pass| !pass.is_followed) else { return };
        let is_over = pass.answers.len() == self.spec.metrics.len();
        let ago = wall_now().duration_since(pass.answered);
        if self.spec.metrics.len() > 1 && is_over && BETWEEN_PASSES.contains(&ago.as_millis()) {
            pass.is_followed = true;
            if self.script.dice().percent(CHANGES_PERCENT) {
                self.script.change_a_pod().await;
            }
        }
    }

    async fn write_count(&self, count: PodCount) {
        let spec = Patch::Merge(json!({"spec": {"replicas": count.value()}}));
        let written = self.targets.patch(&self.plan.name, &PatchParams::default(), &spec).await;
        written.expect("a count can be written");
    }

    /// What the former pass has left: no other pass is under way.
    async fn read(&self) -> (Value, Scale) {
        let autoscaler = self.autoscalers.get(&self.plan.name).await.expect("the autoscaler is there");
        let target = self.targets.get(&self.plan.name).await.expect("its target is there");
        let count = |value: &Value| {
            PodCount::new(u32::try_from(value.as_u64().unwrap_or_default()).unwrap_or_default())
        };
        let scale = Scale {
            replicas: count(&target.data["spec"]["replicas"]),
            status_replicas: count(&target.data["status"]["replicas"]),
            selection: scaling::hpa::Selection::Unique,
        };
        (autoscaler.data["status"].clone(), scale)
    }

    /// A target at zero that another client put there asks no metrics, so there is no gate: once it is seen
    /// to rest, it is ended.
    pub(crate) async fn resume_if_paused(&mut self) {
        if !self.is_paused || self.next_metric != 0 {
            return;
        }
        let (status, scale) = self.read().await;
        let rests = conditions(&status).iter().any(|line| line == "ScalingActive False/ScalingDisabled")
            && status["currentReplicas"].as_u64().unwrap_or_default() == 0
            && scale.replicas == PodCount::ZERO;
        if rests {
            self.script.read_pods().await;
            self.judge(&status, scale.replicas);
            self.is_paused = false;
            self.write_count(PodCount::new(3)).await;
        }
    }

    /// Holds the former pass against ours.
    fn judge(&mut self, status: &Value, count: PodCount) {
        let Some(pass) = self.pass.take() else { return };
        let mut theirs = Verdict::of_status(status, count.value());
        if pass.scale.status_replicas == PodCount::ZERO {
            let said = theirs.clone();
            theirs = theirs.with_quotients_of_no_pods_as_ours();
            if said != theirs {
                println!(
                    "{} pass {}: a value divided by no pods is shown differently",
                    self.plan.name, self.number
                );
            }
        }
        for reason in theirs.reasons() {
            *self.record.reasons.entry(reason).or_default() += 1;
        }
        self.record.passes += 1;
        let writes = self.writes_since(&pass);
        let instants = written(&pass, &writes);
        let mut first = None;
        for (seen, ended, pods) in self.views(&pass) {
            for clock in clocks(&pass, &writes, self.slowest) {
                let seen_then = Seen { pass: &pass, pods: &pods, clock, written: instants[0] };
                let evaluated: Vec<(HpaState, Verdict)> =
                    self.states.iter().map(|state| self.evaluate(state, &seen_then)).collect();
                // How many likelier ones do not agree.
                let Some(likelier) = evaluated.iter().position(|(_, ours)| *ours == theirs) else {
                    first = first.or_else(|| evaluated.into_iter().next());
                    continue;
                };
                if seen + ended + likelier > 0 || clock != pass.answered {
                    let pods = match (seen, ended, likelier) {
                        (0, 0, 0) => "its clock was read",
                        (0, 0, _) => "a count was written later",
                        (0, _, _) => "a deleted pod was said to have failed meanwhile",
                        _ => "the change of a pod was not seen yet",
                    };
                    let (name, number) = (&self.plan.name, self.number);
                    let around = clock.duration_since(pass.answered).as_millis();
                    let cause = format!("{pods}, {around} ms beside the last answer");
                    self.record.explained.push(format!("{name} pass {number}: {cause}"));
                }
                let mut fitting: Vec<HpaState> = Vec::new();
                for written in &instants {
                    for (state, (_, ours)) in self.states.iter().zip(&evaluated) {
                        if *ours != theirs {
                            continue;
                        }
                        let (state, _) = self.evaluate(state, &Seen { written: *written, ..seen_then });
                        if fitting.len() < HISTORIES_MAX && !fitting.contains(&state) {
                            fitting.push(state);
                        }
                    }
                }
                self.states = fitting;
                return;
            }
        }
        let Some((state, ours)) = first else { return };
        let answers: Vec<&str> = pass.answers.iter().map(|answer| answer.body.as_str()).collect();
        let histories: Vec<_> = self.states.iter().map(HpaState::history).collect();
        self.record.differing.push(format!(
            "{} pass {} from {:?} at {} {writes:?}\n  theirs {theirs:?}\n  ours   {ours:?}\n  steps  {:?}\n  histories {histories:?}\n  answers {}\n  pods {}",
            self.plan.name,
            self.number,
            pass.scale,
            pass.answered,
            state.reasons(),
            answers.join("\n          "),
            shown(&pass.pods[0]),
        ));
        self.states = vec![state];
    }

    /// What this pass wrote, and those after it that asked no metric.
    fn writes_since(&mut self, pass: &Pass) -> Writes {
        let mut log = self.log.lock().expect("nobody fails at reading it");
        let writes = log.take(&self.plan.name, pass.answered);
        // What a pass after it writes says nothing of how long this one took.
        if let Some(first) = writes.first().filter(|_| pass.foreign.is_none()) {
            self.slowest = self.slowest.max(first.duration_since(pass.answered));
        }
        writes
    }

    /// The pods as a pass may have seen them, likely ones first: whether a change of the script was missed,
    /// and which choice of those that the garbage collector came to meanwhile.
    fn views(&self, pass: &Pass) -> Vec<(usize, usize, Vec<Pod>)> {
        let mut views = Vec::new();
        for (seen, pods) in pass.pods.iter().enumerate() {
            let lists = self.script.as_ended_since(pods).into_iter().enumerate();
            views.extend(lists.map(|(ended, pods)| (seen, ended, pods)));
        }
        views.sort_by_key(|(seen, ended, _)| (*ended, *seen));
        views
    }

    /// Our pass over what theirs saw, and those that ask no metric and so come unseen before the next one.
    fn evaluate(&self, before: &HpaState, seen: &Seen<'_>) -> (HpaState, Verdict) {
        let Seen { pass, pods, clock: wall, written } = *seen;
        let (now, written) = (axis(wall), axis(written));
        let selector = LabelSelector {
            match_labels: Some([("app".to_owned(), self.plan.name.clone())].into()),
            ..LabelSelector::default()
        };
        let observed = ObservedTarget::new(selector, pods, pass.scale.status_replicas);
        let samples = self.spec.metrics.iter().zip(&pass.answers).map(|(metric, answer)| {
            let read = if answer.status == 200 {
                observed.samples(metric, &answer.body, wall, now)
            } else {
                Err(answer.body.clone())
            };
            read.unwrap_or_else(|_| {
                let reason = ConditionReason::of_unmeasured(metric);
                MetricSamples::Failed(MetricFailure { reason, why: NoProposal::Refused })
            })
        });
        let samples: Vec<MetricSamples> = samples.collect();
        let target = observed.pods(wall, now);
        let mut state = before.clone();
        let mut count = pass.scale.replicas;
        let observation = HpaObservation { scale: pass.scale, pods: &target.pods, samples: &samples };
        let desired_before = state.desired();
        let desired = evaluate(&self.spec, &observation, &mut state, now).desired;
        if desired == count {
            count = pass.foreign.unwrap_or(count);
            let asks_nothing = count > self.spec.max || count < self.spec.min || count == PodCount::ZERO;
            if pass.foreign.is_some() && asks_nothing {
                let scale = Scale { replicas: count, ..pass.scale };
                count = self.correct(&mut state, scale, written);
            }
        } else if desired > plan::COUNT_MAX {
            state.note_failed_rescale(desired_before, written);
            count = pass.foreign.unwrap_or(count);
        } else {
            state.note_rescale(&self.spec, CountChange { from: count, to: desired }, written);
            count = desired;
        }
        let verdict = Verdict::of_state(&self.spec, &state, count);
        (state, verdict)
    }

    /// A pass that asks no metric, and writes a count then.
    fn correct(&self, state: &mut HpaState, scale: Scale, written: Timestamp) -> PodCount {
        let nothing = HpaObservation { scale, pods: &HpaPods::default(), samples: &[] };
        let desired = evaluate(&self.spec, &nothing, state, written).desired;
        if desired != scale.replicas {
            let change = CountChange { from: scale.replicas, to: desired };
            state.note_rescale(&self.spec, change, written);
        }
        desired
    }
}

/// When the controller may have looked at its clock, likely instants first: right after the last answer, or
/// later, until it wrote something; or after the first of several. Ages count from when it looked in a pass
/// before, which is remembered as the answer then: what was later then is as if it were earlier now.
fn clocks(pass: &Pass, writes: &Writes, slowest: SignedDuration) -> Vec<WallTime> {
    let latest = writes.first().unwrap_or(pass.answered + slowest).duration_since(pass.answered);
    let first_answered = pass.first_answered.unwrap_or(pass.answered);
    let earliest = first_answered.duration_since(pass.answered) - slowest;
    let mut clocks: Vec<WallTime> = Vec::new();
    for percent in PARTS_PERCENT {
        for far in [latest, earliest] {
            // Also those that are very close to each other: a window may end between them.
            let clock = pass.answered + far * percent / 100;
            if !clocks.contains(&clock) {
                clocks.push(clock);
            }
        }
    }
    clocks
}

/// When it may have noted that it wrote a count, likely instants first: after the answer to that, and before
/// it wrote its status.
fn written(pass: &Pass, writes: &Writes) -> Vec<WallTime> {
    let Some(count) = writes.counts.iter().find(|write| write.is_carried_out) else {
        return vec![pass.answered];
    };
    let status = writes.statuses.iter().find(|status| status.received >= count.answered);
    let latest = status.map(|status| status.received);
    let apart = latest.filter(|latest| latest.duration_since(count.answered) >= CLOSE);
    [Some(count.answered), apart].into_iter().flatten().collect()
}

/// The wall clock is our axis here.
fn axis(wall: WallTime) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(wall.as_nanosecond()).unwrap_or_default())
}

fn document(plan: &Plan) -> Value {
    let mut spec = plan.spec.clone();
    spec["scaleTargetRef"] =
        json!({"apiVersion": plan::target_api_version(), "kind": "Target", "name": plan.name});
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": plan.name}, "spec": spec})
}

fn read_spec(plan: &Plan) -> HpaSpec {
    let node = serde_json::from_value(document(plan)).expect("a document");
    let json = |text: &str| serde_json::from_str(text).map_err(|error| error.to_string());
    let read = read_document(&node, json).unwrap_or_else(|problems| panic!("{}: {problems:?}", plan.name));
    read.value.1.with_settings(controller_settings())
}

fn shown(pods: &[Pod]) -> String {
    let pods = pods.iter().map(|pod| {
        let status = pod.status.clone().unwrap_or_default();
        let ready = status.conditions.unwrap_or_default();
        let ready: Vec<String> = ready
            .iter()
            .map(|one| format!("{} {} {:?}", one.type_, one.status, one.last_transition_time))
            .collect();
        let name = pod.metadata.name.clone().unwrap_or_default();
        let deleted = pod.metadata.deletion_timestamp.is_some();
        format!("{name} {:?} started {:?} deleted {deleted} {ready:?}", status.phase, status.start_time)
    });
    pods.collect::<Vec<_>>().join("\n       ")
}
