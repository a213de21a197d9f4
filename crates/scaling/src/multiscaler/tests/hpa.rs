//! A revision of class hpa among its reporters, pods and activators: when it asks, and what it orders.

mod edges;
mod shadow;

use std::sync::Arc;
use std::time::Duration;

use settings::hpa::reading::HpaDocument;
use settings::hpa::{
    Behavior, ContainerRequests, HpaScaling, LabelSelector, MetricIdentifier, MetricSpec, PodRequests,
    PolicyAmount, ResourceName, ResourceRequests, ResourceTarget, ScalingPolicy, ScalingRules, TotalTarget,
    UsageSource,
};
use settings::{ClusterConfig, RevisionSettings};
use vocabulary::{MilliValue, ResourceUsage};

use super::*;
use crate::hpa::{
    HpaPod, HpaPodPhase, HpaPods, MetricAnswers, MetricSamples, PodSample, PodSamples, ReadyCondition,
    ReadyStatus, Selection, TargetPods,
};

/// The settings that a document means, on pods that request a core each.
pub(super) fn settings(min: u32, max: u32, metrics: Vec<MetricSpec>) -> ScalingSpec {
    let document = HpaDocument { min: PodCount::new(min), max: PodCount::new(max), metrics, behavior: None };
    let requests = ResourceRequests { cpu: Some(MilliValue::new(1000)), ..ResourceRequests::default() };
    let container = ContainerRequests { name: "app".into(), requests };
    let settings = RevisionSettings {
        document: Some(Box::new(document)),
        requests: PodRequests { pod_level: None, containers: vec![container] },
        ..RevisionSettings::default()
    };
    let cluster = ClusterConfig {
        hpa_downscale_stabilization: Duration::from_secs(30),
        hpa_cpu_initialization_period: Duration::ZERO,
        ..ClusterConfig::default()
    };
    settings.resolve(&cluster, 0, Duration::from_secs(600))
}

pub(super) fn cpu() -> MetricSpec {
    let target = ResourceTarget::Utilization(50);
    MetricSpec::Resource { resource: ResourceName::Cpu, container: None, target }
}

fn concurrency() -> MetricSpec {
    MetricSpec::Own { metric: settings::Metric::Concurrency, target: MilliValue::new(10_000) }
}

fn queue() -> MetricSpec {
    let metric = MetricIdentifier { name: "jobs".into(), selector: LabelSelector::default() };
    MetricSpec::External { metric, target: TotalTarget::AverageValue(MilliValue::new(10_000)) }
}

fn milli(value: i64) -> ResourceUsage {
    ResourceUsage { cpu: MilliValue::new(value), memory: MilliValue::ZERO, window: Duration::from_secs(15) }
}

impl World {
    /// All of these pods together use so many thousandths of a core, and each says its part.
    pub(super) fn share_cores(&mut self, pods: u32, milli_cores: u32) {
        for pod in 0..pods {
            let part = milli_cores / pods + u32::from(pod < milli_cores % pods);
            self.handle(Event::UsageReported { pod: PodId(pod), usage: milli(part.into()) });
        }
    }

    /// Lets seconds pass in which each pod uses this much of a core, and holds this many requests; orders are
    /// carried out at once.
    fn busy(&mut self, seconds: u32, milli_cores: i64, in_each: u32) {
        for _ in 0..seconds {
            let count = self.status().wanted.value();
            self.ready(count);
            self.in_pods = (0..count).map(|pod| (PodId(pod), in_each)).collect();
            for pod in 0..count {
                self.handle(Event::UsageReported { pod: PodId(pod), usage: milli(milli_cores) });
            }
            self.for_seconds(1);
        }
    }

    pub(super) fn for_seconds(&mut self, seconds: u32) {
        let passed = self.now.saturating_since(Timestamp::from_secs(1000)).as_secs_f64();
        self.run_until(passed + f64::from(seconds));
    }

    /// Which metrics were asked for, by their places in the document, in which rounds.
    fn questions(&self) -> Vec<(u64, Vec<usize>)> {
        let questions = self.log.iter().filter_map(|(_, command)| match command {
            Command::AskMetrics { round, metrics, .. } => Some((*round, metrics.clone())),
            Command::ScaleTo { .. }
            | Command::SetRouting { .. }
            | Command::SetActivatorCount { .. }
            | Command::SetSurgeThreshold { .. }
            | Command::Warn { .. }
            | Command::ReportConnectionHold { .. }
            | Command::Publish { .. } => None,
        });
        questions.collect()
    }

    fn asked(&self) -> Vec<u64> {
        self.questions().into_iter().map(|(round, _)| round).collect()
    }

    fn answer(&mut self, round: u64, backlog: i64) -> Vec<Command> {
        let answers = vec![(0, MetricSamples::Series(vec![MilliValue::new(backlog * 1000)]))];
        let answers = MetricAnswers { samples: answers, target: None };
        self.handle(Event::MetricsAnswered { revision: REVISION, round, answers })
    }
}

#[test]
fn cpu_alone_scales_out_at_a_sync_and_back_after_the_window() {
    let mut world = World::new(settings(1, 10, vec![cpu()]));
    world.create(1);
    world.activator_starts();
    // 900 m of a core where 500 are aimed at: two pods, which then each use as much as one did.
    world.busy(16, 900, 0);
    assert_eq!(world.scale_orders(), [(15.0, 2)]);
    world.forget();
    world.busy(15, 900, 0);
    assert_eq!(world.scale_orders(), [(30.0, 4)]);
    world.forget();
    world.busy(60, 100, 0);
    assert_eq!(
        world.scale_orders(),
        [(75.0, 1)],
        "at the first sync at which nothing in 30 s asked for more"
    );
    assert_eq!(world.multiscaler.metrics_beside_targets(REVISION).as_deref(), Some("cpu 10%/50%"));
    let decisions: Vec<&Decision> = world.multiscaler.decisions(REVISION).collect();
    let fell = decisions
        .iter()
        .find(|decision| decision.trigger == Trigger::Sync && decision.wanted == Some(PodCount::ONE));
    let fell = fell.unwrap_or_else(|| panic!("a sync took them away: {decisions:?}"));
    assert!(fell.reasons.iter().any(|reason| reason.stage == Stage::Metric), "{:?}", fell.reasons);
}

#[test]
fn without_an_own_metric_pods_serve_as_soon_as_one_is_ready_and_it_never_reaches_zero() {
    let mut world = World::new(settings(1, 10, vec![cpu()]));
    world.create(1);
    world.activator_starts();
    world.busy(200, 0, 0);
    assert_eq!(world.route_orders().last().map(|(_, routing)| *routing), Some(Routing::Direct));
    assert_eq!(world.scale_orders(), []);
    world.forget();
    world.pod_is(PodId(0), PodState::Unready);
    world.for_seconds(1);
    assert_eq!(world.route_orders().last().map(|(_, routing)| *routing), Some(Routing::ThroughActivator));
}

#[test]
fn requests_raise_the_count_between_two_syncs() {
    let mut world = World::new(settings(1, 10, vec![cpu(), concurrency()]));
    world.create(1);
    world.activator_starts();
    world.busy(1, 100, 35);
    world.busy(5, 100, 35);
    let orders = world.scale_orders();
    assert!(orders.iter().any(|(second, count)| *second < 15.0 && *count >= 4), "{orders:?}");
    assert!(orders.windows(2).all(|pair| pair[0].1 < pair[1].1), "it only rises: {orders:?}");
}

/// Requests end, and with them the CPU use: after the window the last pod goes by the rules of zero, and the
/// first request brings one back.
#[test]
fn requests_and_cpu_together_go_to_zero_and_back() {
    let mut world = World::new(settings(0, 10, vec![cpu(), concurrency()]));
    world.create(1);
    world.activator_starts();
    world.busy(20, 400, 5);
    assert_eq!(world.status().wanted, PodCount::ONE);
    world.forget();
    for _ in 0..200 {
        world.busy(1, 10, 0);
        if world.status().routing == Routing::ThroughActivator {
            world.acknowledged(true);
        }
        if world.status().wanted == PodCount::ZERO {
            break;
        }
    }
    assert_eq!(world.scale_orders().last().map(|(_, count)| *count), Some(0), "{:?}", last_decision(&world));
    world.pods(0);
    world.for_seconds(40);
    world.forget();
    assert_eq!(counts(&world.present(3, 3)), [1], "at once");
    assert_eq!(
        world.multiscaler.metrics_beside_targets(REVISION).as_deref(),
        Some("cpu <unknown>/50%, concurrency 0/10")
    );
}

/// Between the sync that asked for zero and the rules that let the last pod go a request comes.
#[test]
fn a_way_to_zero_ends_when_requests_come() {
    let mut world = World::new(settings(0, 10, vec![concurrency()]));
    world.create(1);
    world.activator_starts();
    world.busy(10, 0, 5);
    for _ in 0..300 {
        world.busy(1, 0, 0);
        if world.status().desired == Some(PodCount::ZERO) {
            break;
        }
    }
    assert_eq!(world.status().desired, Some(PodCount::ZERO));
    assert_eq!(world.status().wanted, PodCount::ONE);
    world.acknowledged(true);
    world.busy(3, 0, 5);
    assert_eq!(world.status().desired, Some(PodCount::ONE), "before the next sync");
}

#[test]
fn a_sync_waits_for_answers_but_not_for_long() {
    let mut world = World::new(settings(1, 10, vec![queue()]));
    world.create(1);
    world.activator_starts();
    world.busy(15, 0, 0);
    assert_eq!(world.asked(), [1]);
    world.busy(2, 0, 0);
    assert_eq!(world.scale_orders(), [], "nobody has answered");
    assert_eq!(counts(&world.answer(1, 25)), [3]);
    assert_eq!(counts(&world.answer(1, 99)), [0; 0], "once is enough");
    world.busy(13, 0, 0);
    assert_eq!(world.asked(), [1, 2], "the phase stays");
    assert_eq!(counts(&world.answer(1, 99)), [0; 0], "of the round before");
    world.busy(11, 0, 0);
    let metrics = world.multiscaler.metrics_beside_targets(REVISION);
    assert_eq!(metrics.as_deref(), Some("jobs <unknown>/10"));
    assert_eq!(world.status().wanted, PodCount::new(3), "what is not known takes nothing away");
    assert_eq!(counts(&world.answer(2, 99)), [0; 0], "too late");
    world.busy(4, 0, 0);
    assert_eq!(world.asked(), [1, 2, 3]);
}

#[test]
fn the_next_sync_starts_from_a_count_written_by_another_client() {
    let mut world = World::new(settings(1, 10, vec![cpu()]));
    world.create(2);
    world.activator_starts();
    world.busy(20, 500, 0);
    world.forget();
    world.create(5);
    world.busy(9, 500, 0);
    assert_eq!(world.scale_orders(), [], "left alone until then");
    world.busy(2, 500, 0);
    assert_eq!(world.status().wanted, PodCount::new(5));
}

/// Zero pods that another client asks for are a pause, as in Kubernetes; with an own metric no person can
/// mean that.
#[test]
fn a_lower_bound_brings_a_revision_back_from_zero_unless_it_is_paused() {
    let after_foreign_zero = |metrics| {
        let mut world = World::new(settings(2, 10, metrics));
        world.create(2);
        world.activator_starts();
        world.busy(20, 450, 4);
        world.forget();
        world.create(0);
        world.pods(0);
        world.for_seconds(20);
        world.scale_orders().iter().map(|(_, count)| *count).collect::<Vec<_>>()
    };
    assert_eq!(after_foreign_zero(vec![concurrency()]), [2]);
    assert_eq!(after_foreign_zero(vec![cpu()]), [0; 0]);
}

/// Class kpa took the last pod away; class hpa, which could not have, does not take that for a pause.
#[test]
fn a_change_of_class_wakes_a_revision_at_zero() {
    let mut world = at_zero(spec());
    let hpa = settings(1, 10, vec![cpu()]);
    assert_eq!(counts(&world.edit(|spec| *spec = hpa)), [1]);
}

#[test]
fn another_class_begins_with_the_count_that_there_is() {
    let kpa = ScalingSpec { target_per_pod: 10.0, total_per_pod: 10.0, ..spec() };
    let mut world = World::new(kpa.clone());
    world.create(4);
    world.activator_starts();
    world.busy(10, 500, 10);
    world.forget();
    let hpa = settings(1, 10, vec![cpu()]);
    world.edit(|spec| *spec = hpa);
    world.busy(40, 500, 0);
    assert_eq!(world.scale_orders(), [], "four pods on target stay four");
    world.edit(|spec| *spec = kpa);
    world.busy(10, 0, 10);
    assert_eq!(world.status().wanted, PodCount::new(4));
}

/// On a cluster the platform is asked for what pods use, and says which pods there are.
fn asked_of_the_platform(mut spec: ScalingSpec) -> ScalingSpec {
    let hpa = HpaScaling { usage: UsageSource::Questions, ..(*spec.hpa.expect("it is class hpa")).clone() };
    spec.hpa = Some(Arc::new(hpa));
    spec
}

impl World {
    /// These pods use so much of the core that each requests; of others nothing is known.
    fn answer_usage(&mut self, round: u64, pods: u32, selection: Selection) -> Vec<Command> {
        let at = self.now;
        let pod = |number| HpaPod {
            pod: PodId(number),
            phase: HpaPodPhase::Running,
            is_deleted: false,
            started: Some(Timestamp::ZERO),
            ready: Some(ReadyCondition { status: ReadyStatus::True, since: Timestamp::ZERO }),
            requests: PodRequests {
                pod_level: None,
                containers: vec![ContainerRequests {
                    name: "app".into(),
                    requests: ResourceRequests {
                        cpu: Some(MilliValue::new(1000)),
                        ..ResourceRequests::default()
                    },
                }],
            },
        };
        let sample = |number| PodSample {
            pod: PodId(number),
            value: MilliValue::new(900),
            at,
            window: Duration::from_secs(15),
        };
        let samples = MetricSamples::PerPod(PodSamples::new((0..pods).map(sample).collect()));
        let pods = HpaPods::new((0..pods).map(pod).collect());
        let target = TargetPods { pods, present: PodCount::new(2), selection };
        let answers = MetricAnswers { samples: vec![(0, samples)], target: Some(target) };
        self.handle(Event::MetricsAnswered { revision: REVISION, round, answers })
    }
}

#[test]
fn with_usage_from_the_platform_only_its_pods_and_samples_count() {
    let mut world = World::new(asked_of_the_platform(settings(1, 10, vec![cpu()])));
    world.create(2);
    world.activator_starts();
    world.busy(16, 10, 0);
    assert_eq!(world.asked(), [1]);
    assert_eq!(world.scale_orders(), [], "what pods report does not count");
    world.answer_usage(1, 2, Selection::Unique);
    assert_eq!(world.scale_orders().last().map(|(_, count)| *count), Some(4), "90 % of 50 % on two pods");
}

#[test]
fn pods_shared_with_another_autoscaler_change_nothing() {
    let mut world = World::new(asked_of_the_platform(settings(1, 10, vec![cpu()])));
    world.create(2);
    world.activator_starts();
    world.busy(16, 10, 0);
    world.answer_usage(1, 2, Selection::Ambiguous);
    assert_eq!(world.scale_orders(), []);
}

fn allow_one_pod_in_ten_minutes(spec: &mut ScalingSpec) {
    let policy = ScalingPolicy { amount: PolicyAmount::Pods(1), period: Duration::from_secs(600) };
    let scale_up = ScalingRules { policies: vec![policy], ..ScalingRules::default_up() };
    let behavior = Behavior { scale_up, scale_down: ScalingRules::default_down() };
    let mut hpa = (*spec.hpa.clone().expect("it is class hpa")).clone();
    hpa.spec.behavior = Some(behavior);
    spec.hpa = Some(Arc::new(hpa));
}

/// Whether a change counts for a policy is seen in the next one.
#[test]
fn policies_look_back_on_changes_that_were_carried_out_and_on_no_others() {
    for (endings, expected) in [
        (&[][..], None),
        (&[ScaleEnding::Failed][..], Some(3)),
        (&[ScaleEnding::Failed, ScaleEnding::Failed, ScaleEnding::WrittenAfterAll][..], None),
    ] {
        let mut spec = asked_of_the_platform(settings(1, 10, vec![cpu()]));
        allow_one_pod_in_ten_minutes(&mut spec);
        let mut world = World::new(spec);
        world.create(2);
        world.activator_starts();
        world.busy(16, 0, 0);
        world.answer_usage(1, 2, Selection::Unique);
        assert_eq!(world.scale_orders().last().map(|(_, count)| *count), Some(3));
        for &ending in endings {
            world.handle(Event::ScaleEnded { revision: REVISION, ending });
        }
        if endings.last() == Some(&ScaleEnding::Failed) {
            // As a client that reads the count again says it.
            world.create(2);
        }
        world.forget();
        world.for_seconds(15);
        let round = *world.asked().last().expect("the next sync asks");
        world.answer_usage(round, 2, Selection::Unique);
        assert_eq!(world.scale_orders().last().map(|(_, count)| *count), expected, "{endings:?}");
    }
}

/// Zero pods say nothing to any source; what is not theirs is asked for all the same.
#[test]
fn at_zero_metrics_of_pods_are_not_asked_for() {
    let packets = MetricSpec::Pods {
        metric: MetricIdentifier { name: "packets".into(), selector: LabelSelector::default() },
        target: MilliValue::new(1000),
    };
    let places = |world: &World| world.questions().pop().map(|(_, metrics)| metrics);
    let of = |metrics, count| {
        let mut world = World::new(settings(0, 10, metrics));
        world.create(count);
        world.activator_starts();
        world.for_seconds(16);
        world
    };
    let own = || vec![queue(), packets.clone(), concurrency()];
    assert_eq!(places(&of(own(), 2)), Some(vec![0, 1]));
    let mut world = of(own(), 0);
    assert_eq!(places(&world), Some(vec![0]));
    // A pod that comes before the answer does was not asked, and does not fail.
    assert_eq!(counts(&world.present(3, 3)), [1]);
    world.answer(1, 0);
    assert_eq!(world.status().wanted, PodCount::ONE);
    let failures = last_decision(&world).reasons.iter().filter(|one| one.stage == Stage::MetricFailure);
    assert_eq!(failures.count(), 0, "{:?}", last_decision(&world));
    assert_eq!(places(&of(vec![packets.clone(), concurrency()], 0)), None, "there is nothing to ask");
    let spec = asked_of_the_platform(settings(0, 10, vec![cpu(), concurrency()]));
    let mut world = World::new(spec);
    world.create(0);
    world.activator_starts();
    world.for_seconds(16);
    assert_eq!(places(&world), Some(vec![]), "only which pods there are");
}

#[test]
fn a_resource_that_pods_do_not_report_fails_with_its_reason() {
    let of = |resource: &str, container: Option<&str>| MetricSpec::Resource {
        resource: ResourceName::new(resource),
        container: container.map(Into::into),
        target: ResourceTarget::AverageValue(MilliValue::new(1000)),
    };
    for (metric, expected) in [
        (of("cpu", Some("app")), None),
        (of("memory", Some("app")), None),
        (of("memory", None), None),
        (of("cpu", Some("sidecar")), Some("cpu failed: the pods have no container of that name")),
        (
            of("nvidia.com/gpu", None),
            Some("nvidia.com/gpu failed: pods report their use of cpu and memory only"),
        ),
    ] {
        let mut world = World::new(settings(1, 10, vec![metric]));
        world.create(1);
        world.activator_starts();
        world.busy(16, 900, 0);
        let mut reasons = world.multiscaler.decisions(REVISION).flat_map(|decision| &decision.reasons);
        let failure = reasons.find(|reason| reason.stage == Stage::MetricFailure);
        assert_eq!(failure.map(|reason| reason.text.to_string()).as_deref(), expected);
    }
}

/// A server that is down is told of once, and again after it was there in between.
#[test]
fn a_warning_is_issued_once_when_its_cause_begins() {
    let mut world = World::new(settings(1, 10, vec![queue()]));
    world.create(1);
    world.activator_starts();
    let mut told = Vec::new();
    for backlog in [None, None, Some(5), None] {
        world.for_seconds(15);
        let round = *world.asked().last().expect("every sync asks");
        match backlog {
            Some(backlog) => drop(world.answer(round, backlog)),
            None => world.for_seconds(10),
        }
        told.push(world.log.drain(..).filter_map(|(_, command)| warning(command)).collect::<Vec<_>>());
    }
    let why = "jobs failed: the source of the metric did not answer in time; 1 of 1 metrics failed, so no pod is taken away";
    let both =
        vec![("FailedGetExternalMetric", why.to_owned()), ("FailedComputeMetricsReplicas", why.to_owned())];
    assert_eq!(told, [both.clone(), vec![], vec![], both]);
    let report = world.multiscaler.hpa_report(REVISION).expect("it is class hpa");
    let conditions: Vec<(&str, &str)> =
        report.conditions.iter().map(|(kind, condition)| (kind, condition.reason.word())).collect();
    assert_eq!(
        conditions,
        [
            ("AbleToScale", "SucceededGetScale"),
            ("ScalingActive", "FailedGetExternalMetric"),
            ("ScalingLimited", "DesiredWithinRange"),
        ]
    );
    let [jobs] = report.metrics.as_slice() else { panic!("one metric: {report:?}") };
    assert_eq!((jobs.name.as_str(), jobs.target.as_str(), &jobs.current), ("jobs", "10", &None));
    assert!(jobs.failure.is_some());
}

fn warning(command: Command) -> Option<(&'static str, String)> {
    match command {
        Command::Warn { warning, text, .. } => Some((warning.word(), text)),
        Command::ScaleTo { .. }
        | Command::SetRouting { .. }
        | Command::SetActivatorCount { .. }
        | Command::SetSurgeThreshold { .. }
        | Command::AskMetrics { .. }
        | Command::ReportConnectionHold { .. }
        | Command::Publish { .. } => None,
    }
}
