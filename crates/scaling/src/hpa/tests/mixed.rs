//! The mixed rule of our own measurements among other metrics: its twelve points, each under its number.

use settings::hpa::reading;
use settings::{Metric, ScalingSpec};
use vocabulary::{BurstCapacity, Concurrency, Routing};

use super::*;
use crate::collector::Averages;
use crate::decider::{Decider, Observation};
use crate::decision::Mode;
use crate::hpa::mixed::{MixedDecider, MixedObservation, routing_without_own};

fn own(metric: Metric, target: i64) -> MetricSpec {
    MetricSpec::Own { metric, target: MilliValue::new(target * 1000) }
}

fn concurrency() -> MetricSpec {
    own(Metric::Concurrency, 10)
}

/// Of requests in flight, in both windows.
fn present(load: f64, ready: PodCount) -> Observation {
    Observation {
        ready,
        reachable: ready,
        wanted: ready,
        averages: Averages::complete(load, load),
        present_count: None,
    }
}

/// A workload whose orders are carried out at once.
struct Workload {
    spec: HpaSpec,
    decider: MixedDecider,
    count: PodCount,
    now: Timestamp,
    pods: HpaPods,
}

impl Workload {
    /// Begun long ago with this count; no tolerance, so that the backlog asks for exactly what a test says.
    fn of(metrics: Vec<MetricSpec>, words: &str, count: u32) -> Self {
        // Falls as far as it is meant to at once: how fast is not what these tests are about.
        let scaling = ScalingSpec { max_scale_down_rate: 1000.0, ..ScalingSpec::default() };
        Self::under(&scaling, metrics, words, count)
    }

    fn under(scaling: &ScalingSpec, metrics: Vec<MetricSpec>, words: &str, count: u32) -> Self {
        let mut spec = spec_of(concurrency(), words);
        spec.metrics = metrics;
        spec.settings.tolerance = 0.0;
        let count = PodCount::new(count);
        let decider = MixedDecider::new(&spec, scaling, count, ago("4000"));
        Self { spec, decider, count, now: NOW, pods: HpaPods::default() }
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// A look of the own metrics, each with its load. What it orders is done.
    fn look(&mut self, loads: &[Option<f64>]) -> u32 {
        let observations: Vec<_> =
            loads.iter().map(|load| load.map(|load| present(load, self.count))).collect();
        if let Some(to) = self.decider.evaluate_own(&self.spec, &observations, self.count, self.now) {
            assert!(to > self.count, "between two syncs the count only rises");
            assert_linked(self.decider.rise_reasons());
            self.write(to);
        }
        self.count.value()
    }

    fn ask(&mut self, samples: &mut [MetricSamples]) -> HpaOutcome {
        let scale = scale(self.count, self.count);
        let observation = MixedObservation { scale, pods: &self.pods, samples };
        let outcome = self.decider.sync(&self.spec, observation, self.now);
        assert_linked(self.decider.state().reasons());
        outcome
    }

    /// A sync. What it orders is done.
    fn sync(&mut self, samples: &mut [MetricSamples]) -> u32 {
        let outcome = self.ask(samples);
        self.write(outcome.desired);
        self.count.value()
    }

    fn write(&mut self, to: PodCount) {
        if to != self.count {
            self.decider.note_rescale(&self.spec, CountChange { from: self.count, to }, self.now);
            self.count = to;
        }
    }
}

/// For the place of an own metric: it is filled in.
const OWN: MetricSamples = MetricSamples::NotAsked;

fn fails() -> MetricSamples {
    MetricSamples::Failed(MetricFailure {
        reason: ConditionReason::FailedGetExternalMetric,
        why: NoProposal::Refused,
    })
}

/// Pods of which a metric of pods asks for exactly `count`, at its target of 1000.
fn packets(workload: &mut Workload, count: i64) -> MetricSamples {
    let number = workload.count.value();
    workload.pods = HpaPods::new((0..number).map(settled_pod).collect());
    let each = MilliValue::new(count * 1000 / i64::from(number));
    MetricSamples::PerPod(PodSamples::new((0..number).map(|pod| sample(pod, each)).collect()))
}

fn per_packet() -> MetricSpec {
    let metric = MetricIdentifier { name: "packets".into(), selector: LabelSelector::default() };
    MetricSpec::Pods { metric, target: MilliValue::new(1000) }
}

#[test]
fn point_1_each_own_metric_has_a_decider_that_aims_at_its_whole_target() {
    let metrics = vec![concurrency(), own(Metric::Rps, 100)];
    let mut workload = Workload::of(metrics, "min=1 max=99", 1);
    // Neither 0.7 of the target, nor a tolerance of a tenth: 10 needs one pod, 10.5 needs two.
    assert_eq!(workload.look(&[Some(10.0), Some(100.0)]), 1);
    assert_eq!(workload.after(2).look(&[Some(10.5), Some(100.0)]), 2);
    assert_eq!(workload.after(2).look(&[Some(10.0), Some(201.0)]), 3, "the largest answer counts");
    assert_eq!(workload.after(2).look(&[None, Some(301.0)]), 4, "whatever the other does not know");
}

#[test]
fn point_2_at_a_sync_all_metrics_propose_and_own_ones_without_data_fail() {
    let mut workload = Workload::of(vec![concurrency(), per_thousand()], "min=1 max=99 stabilization=0", 4);
    workload.look(&[Some(25.0)]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(2)]), 3, "requests need three");
    workload.after(15).look(&[Some(15.0)]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(5)]), 5, "the queue needs five");
    workload.after(15).look(&[None]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(2)]), 5, "nothing is taken away");
    let metrics = workload.decider.state().metrics();
    assert!(matches!(metrics[0], MetricStatus::Failed { reason: ConditionReason::FailedGetPodsMetric, .. }));
    assert_eq!(workload.sync(&mut [OWN, asking_for(6)]), 6);
    // In panic, history takes the present count where the metrics ask for less.
    assert_eq!(workload.after(15).look(&[Some(200.0)]), 20);
    assert_eq!(workload.sync(&mut [OWN, asking_for(30)]), 30);
    workload.after(2).look(&[Some(10.0)]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(1)]), 30);
    let latest =
        workload.decider.state().history().recommendations().iter().max_by_key(|one| one.at).unwrap();
    assert_eq!((latest.count, latest.at), (PodCount::new(30), workload.now));
}

#[test]
fn point_3_the_count_falls_at_a_sync_alone_and_only_if_everything_agrees() {
    let mut workload = Workload::of(vec![concurrency(), per_thousand()], "min=1 max=99 stabilization=0", 8);
    assert_eq!(workload.look(&[Some(25.0)]), 8, "not between two syncs");
    assert_eq!(workload.sync(&mut [OWN, fails()]), 8, "not while a metric fails");
    assert_eq!(workload.sync(&mut [OWN, asking_for(2)]), 3);
    workload.after(15).look(&[Some(70.0)]);
    assert_eq!(workload.count, PodCount::new(7), "a panic begins");
    workload.after(15).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(2)]), 7, "not while one panics");
    workload.after(61).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(2)]), 2, "panic is over");
}

#[test]
fn point_4_requests_raise_the_count_at_once_within_the_rules_of_the_document() {
    for (words, expected) in [
        ("min=1 max=99", 30),
        ("min=1 max=20", 20),
        // Neither the doubling of documents without behavior, nor the defaults of those that speak of the way
        // down only.
        ("min=1 max=99 down=1/60", 30),
        ("min=1 max=99 up=4/15", 6),
        ("min=1 max=99 up=4/15 up=100%/15 up-select=min", 4),
        ("min=1 max=99 up=90/15 up-select=disabled", 2),
    ] {
        let mut off_sync = Workload::of(vec![concurrency()], words, 2);
        assert_eq!(off_sync.look(&[Some(300.0)]), expected, "{words}");
        let mut at_sync = Workload::of(vec![concurrency()], words, 2);
        let observation = present(300.0, at_sync.count);
        // What a look orders may not have been carried out when the sync comes.
        at_sync.decider.evaluate_own(&at_sync.spec, &[Some(observation)], at_sync.count, at_sync.now);
        assert_eq!(at_sync.sync(&mut [OWN]), expected, "{words}");
    }
    let scaling = ScalingSpec { max_scale_up_rate: 3.0, ..ScalingSpec::default() };
    let mut workload = Workload::under(&scaling, vec![concurrency()], "min=1 max=99", 2);
    assert_eq!(workload.look(&[Some(300.0)]), 6, "max-scale-up-rate");
    // The window that the document writes holds as well.
    let mut workload = Workload::of(vec![concurrency()], "min=1 max=99 up=90/15 up-window=60", 2);
    workload.look(&[Some(15.0)]);
    workload.sync(&mut [OWN]);
    assert_eq!(workload.after(30).look(&[Some(300.0)]), 2);
    assert_eq!(workload.after(30).look(&[Some(300.0)]), 30);
}

#[test]
fn point_5_every_change_is_an_event_and_every_rise_a_recommendation() {
    let mut workload = Workload::of(vec![concurrency()], "min=1 max=99 up=4/60 down-window=100", 2);
    assert_eq!(workload.look(&[Some(300.0)]), 6);
    assert_eq!(workload.after(10).look(&[Some(300.0)]), 6, "the policy holds over any window");
    assert_eq!(workload.sync(&mut [OWN]), 6, "whoever asks");
    assert_eq!(workload.after(50).look(&[Some(300.0)]), 10);
    let (ups, downs) = workload.decider.state().history().events();
    assert_eq!((ups.len(), downs.len()), (1, 0), "older ones no policy looks back on");
    // No sync saw the need of ten, and yet the window towards fewer pods knows of it.
    workload.after(61).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN]), 10);
    workload.after(60).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN]), 1);
    assert_eq!(workload.decider.state().history().events().1.len(), 1);
}

/// Were it remembered, the next sync would order again what is not needed any more.
#[test]
fn point_5_a_rise_that_failed_leaves_no_recommendation() {
    // No panic, which would keep asking for what it asked for, as class kpa does.
    let scaling = ScalingSpec { panic_threshold: 10.0, ..ScalingSpec::default() };
    for (is_written, expected) in [(false, 4), (true, 8)] {
        let mut workload =
            Workload::under(&scaling, vec![concurrency()], "min=1 max=99 stabilization=300", 4);
        let (before, now) = (workload.count, workload.now);
        let memory = workload.decider.state().rescale_memory(now);
        assert_eq!(workload.look(&[Some(76.0)]), 8);
        if !is_written {
            let change = CountChange { from: before, to: workload.count };
            workload.decider.revert_rescale(change, &memory, now);
            workload.count = before;
        }
        workload.after(10).look(&[Some(35.0)]);
        assert_eq!(workload.sync(&mut [OWN]), expected);
    }
}

#[test]
fn a_remembered_rise_replaces_an_expired_recommendation() {
    let mut workload = Workload::of(vec![concurrency()], "min=1 max=99 stabilization=60", 1);
    workload.look(&[Some(5.0)]);
    workload.sync(&mut [OWN]);
    for _ in 0..20 {
        workload.after(200).look(&[Some(300.0)]);
        assert_eq!(workload.count, PodCount::new(30));
        workload.after(200).look(&[Some(5.0)]);
        assert_eq!(workload.sync(&mut [OWN]), 1);
    }
    assert!(workload.decider.state().history().recommendations().len() <= 3);
}

#[test]
fn an_own_metric_is_shown_per_pod() {
    let mut workload = Workload::of(vec![concurrency(), per_thousand()], "min=1 max=99", 4);
    workload.look(&[Some(28.4)]);
    workload.sync(&mut [OWN, fails()]);
    let told: Vec<String> =
        workload.decider.state().reasons().iter().map(|reason| reason.text.to_string()).collect();
    assert_eq!(
        told[..2],
        [
            "ebb.concurrency is 7.1 per pod, target 10: 0.71 times",
            "ebb.concurrency asks for 3, by its own windows"
        ]
    );
    let shown = metrics_beside_targets(&workload.spec, workload.decider.state());
    assert_eq!(shown, "concurrency 7.1/10, backlog <unknown>/1");
}

#[test]
fn a_rise_between_two_syncs_says_why() {
    let mut workload = Workload::of(vec![concurrency()], "min=1 max=99 up=4/60", 2);
    workload.look(&[Some(300.0)]);
    let reasons = workload.decider.rise_reasons();
    let told: Vec<String> = reasons.iter().map(|reason| reason.text.to_string()).collect();
    assert_eq!(told[0], "300 requests in flight over 1m, 10 per pod");
    assert_eq!(
        told[told.len() - 2..],
        ["4 pods more in 1m, from 2 on: at most 6", "requests need 30 at once"]
    );
    assert_eq!(reasons.last().and_then(|reason| reason.after), Some(PodCount::new(6)));
}

#[test]
fn point_6_requests_wake_at_once_and_nothing_keeps_them_without_a_pod() {
    let activation = ScalingSpec { activation_scale: PodCount::new(5), ..ScalingSpec::default() };
    for (scaling, words, load, expected) in [
        (ScalingSpec::default(), "min=0 max=99", 1.0, 1),
        (ScalingSpec::default(), "min=3 max=99", 1.0, 3),
        (ScalingSpec::default(), "min=0 max=99", 45.0, 5),
        (ScalingSpec::default(), "min=0 max=4", 45.0, 4),
        (activation.clone(), "min=0 max=99", 1.0, 5),
        (activation, "min=0 max=3", 1.0, 3),
        // Policies, windows and even Disabled hold back the rest, but not the first ones.
        (ScalingSpec::default(), "min=0 max=99 up=2/60", 45.0, 2),
        (ScalingSpec::default(), "min=0 max=99 up=100%/60", 45.0, 1),
        (ScalingSpec::default(), "min=0 max=99 up=9/60 up-select=disabled", 45.0, 1),
        (ScalingSpec::default(), "min=3 max=99 up=9/60 up-select=disabled", 45.0, 3),
    ] {
        let mut workload = Workload::under(&scaling, vec![concurrency()], words, 0);
        assert_eq!(workload.look(&[Some(load)]), expected, "{words}, {load}");
    }
    // A window holds back as little: what was asked for in it is nothing.
    for (words, expected) in
        [("min=0 max=99 up=9/60 up-window=600", 1), ("min=3 max=99 up=9/60 up-window=600", 3)]
    {
        let mut workload = Workload::of(vec![concurrency()], words, 0);
        workload.look(&[Some(0.0)]);
        workload.ask(&mut [OWN]);
        assert_eq!(workload.after(2).look(&[Some(45.0)]), expected, "{words}");
    }
    // Other metrics wake at a sync.
    let mut workload = Workload::of(vec![concurrency(), per_thousand()], "min=0 max=99", 0);
    assert_eq!(workload.look(&[Some(0.0)]), 0);
    assert_eq!(workload.sync(&mut [OWN, asking_for(3)]), 3);
}

#[test]
fn point_7_zero_needs_that_nothing_asks_for_more_than_one_pod() {
    let metrics = || vec![concurrency(), per_packet(), per_thousand()];
    for (words, load, packet_count, backlog, expected) in [
        ("min=0 max=99 stabilization=0", 0.0, 1, Some(0), 0),
        ("min=0 max=99 stabilization=0", 0.0, 0, Some(0), 0),
        ("min=0 max=99 stabilization=0", 0.0, 2, Some(0), 2),
        ("min=0 max=99 stabilization=0", 0.0, 1, Some(1), 1),
        ("min=0 max=99 stabilization=0", 0.5, 1, Some(0), 1),
        ("min=0 max=99 stabilization=0", 0.0, 1, None, 4),
        ("min=1 max=99 stabilization=0", 0.0, 1, Some(0), 1),
    ] {
        let mut workload = Workload::of(metrics(), words, 4);
        workload.look(&[Some(load)]);
        let used = packets(&mut workload, packet_count);
        let asked = backlog.map_or_else(fails, asking_for);
        assert_eq!(
            workload.sync(&mut [OWN, used, asked]),
            expected,
            "{words}, {load}, {packet_count}, {backlog:?}"
        );
    }
}

/// The kinds that the table above has not: an object's number, what pods use, and an own metric without data.
#[test]
fn point_7_every_kind_of_metric_can_keep_a_pod() {
    let object = || MetricSpec::Object {
        described: ObjectReference { api_version: "v1".into(), kind: "Service".into(), name: "web".into() },
        metric: MetricIdentifier { name: "hits".into(), selector: LabelSelector::default() },
        target: TotalTarget::Value(MilliValue::new(1000)),
    };
    for (hits, expected) in [(0, 0), (1000, 4), (250, 1)] {
        let mut workload = Workload::of(vec![concurrency(), object()], "min=0 max=99 stabilization=0", 4);
        workload.pods = HpaPods::new((0..4).map(settled_pod).collect());
        workload.look(&[Some(0.0)]);
        let series = MetricSamples::Series(vec![MilliValue::new(hits)]);
        assert_eq!(workload.sync(&mut [OWN, series]), expected, "{hits}");
    }
    for (milli_cores, expected) in [(10, 0), (400, 4)] {
        let metrics = vec![concurrency(), cpu(ResourceTarget::Utilization(40))];
        let mut workload = Workload::of(metrics, "min=0 max=99 stabilization=0", 4);
        let requests = PodRequests { pod_level: None, containers: vec![requesting("app", Some(1000), None)] };
        let pod = |number| HpaPod { requests: requests.clone(), ..settled_pod(number) };
        workload.pods = HpaPods::new((0..4).map(pod).collect());
        workload.look(&[Some(0.0)]);
        let used = (0..4).map(|pod| sample(pod, MilliValue::new(milli_cores))).collect();
        let used = MetricSamples::PerPod(PodSamples::new(used));
        assert_eq!(workload.sync(&mut [OWN, used]), expected, "{milli_cores}");
    }
    let mut workload = Workload::of(vec![concurrency(), per_thousand()], "min=0 max=99 stabilization=0", 4);
    workload.look(&[None]);
    assert_eq!(workload.sync(&mut [OWN, asking_for(0)]), 4, "nobody says that there are no requests");
}

#[test]
fn point_8_zero_waits_out_the_window_and_is_asked_for_until_it_is_written() {
    let mut workload = Workload::of(vec![concurrency()], "min=0 max=99 stabilization=60", 1);
    workload.look(&[Some(0.0)]);
    assert_eq!(workload.ask(&mut [OWN]).desired, PodCount::ONE);
    for _ in 0..3 {
        // The guard of the last pod has not let it be written yet.
        workload.after(61).look(&[Some(0.0)]);
        let outcome = workload.ask(&mut [OWN]);
        assert_eq!((outcome.raw, outcome.desired), (Some(PodCount::ZERO), PodCount::ZERO));
        assert_eq!(workload.decider.state().history().events(), (&[][..], &[][..]));
    }
}

#[test]
fn point_9_at_zero_metrics_of_pods_are_not_asked_and_the_target_is_not_paused() {
    let mut workload = Workload::of(vec![concurrency(), per_packet()], "min=2 max=99", 0);
    workload.look(&[Some(0.0)]);
    let outcome = workload.ask(&mut [OWN, fails()]);
    assert_ne!(outcome.cause, RescaleCause::Paused);
    assert_eq!(outcome.desired, PodCount::new(2), "the minimum was raised");
    assert_eq!(workload.decider.state().metrics()[1], MetricStatus::NotAsked);
    assert!(workload.decider.state().warnings().is_empty());
    // Without an own metric, another client's zero is a pause.
    let mut workload = Workload::of(vec![per_packet()], "min=2 max=99", 0);
    assert_eq!(workload.ask(&mut [fails()]).cause, RescaleCause::Paused);
}

#[test]
fn point_10_the_first_own_metric_says_who_serves() {
    let scaling = ScalingSpec {
        target_burst_capacity: BurstCapacity::Requests(Concurrency::new(30.0).unwrap()),
        ..ScalingSpec::default()
    };
    let metrics = vec![per_thousand(), own(Metric::Rps, 100), concurrency()];
    let mut workload = Workload::under(&scaling, metrics, "min=0 max=99", 2);
    assert_eq!(workload.decider.excess_burst_capacity(), None);
    workload.look(&[Some(120.0), Some(19.0)]);
    // Two pods of 100 each, less 120 and less the 30 that are wanted free.
    assert_eq!(workload.decider.excess_burst_capacity().unwrap().value(), 50);
    assert_eq!(Workload::of(vec![per_thousand()], "min=0 max=9", 2).decider.excess_burst_capacity(), None);
    assert_eq!(routing_without_own(PodCount::ONE), Routing::Direct);
    assert_eq!(routing_without_own(PodCount::ZERO), Routing::ThroughActivator);
}

#[test]
fn point_11_bounds_and_metrics_are_the_documents_alone() {
    let annotations = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), "1".to_owned())).collect();
    let beside = |keys: &[&str]| -> Vec<String> {
        let problems = reading::annotations_beside_document(&annotations(keys), "annotation ebb.dev/hpa");
        problems.iter().map(ToString::to_string).collect()
    };
    let document = "ebb.dev/hpa";
    assert_eq!(
        beside(&[document, "autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/maxScale"]),
        [
            "annotation autoscaling.knative.dev/maxScale is \"1\", which annotation ebb.dev/hpa says too (maxReplicas); remove one of them",
            "annotation autoscaling.knative.dev/min-scale is \"1\", which annotation ebb.dev/hpa says too (minReplicas); remove one of them",
        ]
    );
    assert_eq!(
        beside(&[document, "autoscaling.knative.dev/metric", "autoscaling.knative.dev/target"]).len(),
        2
    );
    assert_eq!(
        beside(&[document, "autoscaling.knative.dev/scale-down-delay"]),
        [""; 0],
        "this acts within K"
    );
    // What acts within K: the delay of an own decider holds the count through a sync.
    let scaling = ScalingSpec { scale_down_delay: Duration::from_secs(60), ..ScalingSpec::default() };
    let mut workload = Workload::under(&scaling, vec![concurrency()], "min=1 max=99 stabilization=0", 2);
    workload.look(&[Some(20.0)]);
    workload.after(30).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN]), 2);
    workload.after(31).look(&[Some(5.0)]);
    assert_eq!(workload.sync(&mut [OWN]), 1);
}

/// How fast K itself moves, and when it panics, is what annotations of class kpa say.
#[test]
fn point_11_rates_and_panic_keys_act_within_an_own_metric() {
    let one_step = |scaling: &ScalingSpec| {
        let mut workload = Workload::under(scaling, vec![concurrency()], "min=1 max=99 stabilization=0", 8);
        workload.after(2).look(&[Some(5.0)]);
        workload.sync(&mut [OWN])
    };
    assert_eq!(one_step(&ScalingSpec::default()), 4, "max-scale-down-rate is 2");
    assert_eq!(one_step(&ScalingSpec { max_scale_down_rate: 4.0, ..ScalingSpec::default() }), 2);
    // A surge to five times what there is, which is over at the next sync.
    let after_a_surge = |scaling: ScalingSpec| {
        let scaling = ScalingSpec { max_scale_down_rate: 1000.0, ..scaling };
        let mut workload = Workload::under(&scaling, vec![concurrency()], "min=1 max=99 stabilization=0", 2);
        assert_eq!(workload.look(&[Some(100.0)]), 10);
        workload.after(15).look(&[Some(5.0)]);
        workload.sync(&mut [OWN])
    };
    assert_eq!(after_a_surge(ScalingSpec::default()), 10, "it is panic for a stable window");
    assert_eq!(after_a_surge(ScalingSpec { panic_threshold: 10.0, ..ScalingSpec::default() }), 1);
    let short = ScalingSpec { stable_window: Duration::from_secs(10), ..ScalingSpec::default() };
    assert_eq!(after_a_surge(short), 1, "a shorter window, a shorter panic");
}

mod edges {
    use proptest::prelude::*;

    use super::*;

    fn loads() -> impl Strategy<Value = Vec<Option<f64>>> {
        let load = prop_oneof![Just(0.0), 0.0..30.0_f64, 0.0..3000.0_f64];
        prop::collection::vec(prop::option::weighted(0.9, load), 1..60)
    }

    /// Something that happens to a workload after so many seconds.
    #[derive(Clone, Debug)]
    struct Happening {
        seconds: u64,
        load: Option<f64>,
        backlog: Option<u32>,
        is_sync: bool,
        is_written: bool,
    }

    fn happenings() -> impl Strategy<Value = Vec<Happening>> {
        let load = prop::option::weighted(0.9, prop_oneof![Just(0.0), 0.0..30.0_f64, 0.0..400.0_f64]);
        let backlog = prop::option::weighted(0.8, 0_u32..40);
        let one = (1_u64..40, load, backlog, any::<bool>(), prop::bool::weighted(0.8)).prop_map(
            |(seconds, load, backlog, is_sync, is_written)| Happening {
                seconds,
                load,
                backlog,
                is_sync,
                is_written,
            },
        );
        prop::collection::vec(one, 1..60)
    }

    /// Of changes that were carried out, how far they went up in the 15 seconds that end with the last one.
    fn risen_in_15_seconds(changes: &[(Timestamp, CountChange)]) -> i64 {
        let Some((last, _)) = changes.last() else { return 0 };
        let of_window = changes.iter().filter(|(at, _)| *at + Duration::from_secs(15) > *last);
        of_window.map(|(_, change)| i64::from(change.to.value()) - i64::from(change.from.value())).sum()
    }

    proptest! {
        /// Looks, syncs and writes that fail, in any order.
        #[test]
        fn no_order_of_looks_and_syncs_breaks_a_bound_or_a_policy(
            happenings in happenings(), start in 0_u32..20, min in 0_u32..4, max in 4_u32..40,
        ) {
            let words = format!("min={min} max={max} up=4/15 down=100%/15 down-window=30");
            let start = if start == 0 { 0 } else { start.clamp(min, max) };
            let metrics = vec![concurrency(), per_thousand()];
            let mut workload = Workload::under(&ScalingSpec::default(), metrics, &words, start);
            let mut changes = Vec::new();
            for happening in happenings {
                let Happening { seconds, load, backlog, is_sync, is_written } = happening;
                workload.after(seconds);
                let (before, now) = (workload.count, workload.now);
                let memory = workload.decider.state().rescale_memory(now);
                let observation = load.map(|load| present(load, before));
                let rise = workload.decider.evaluate_own(&workload.spec, &[observation], before, now);
                assert_linked(workload.decider.rise_reasons());
                let mut wanted = rise.unwrap_or(before);
                prop_assert!(wanted >= before, "a look never lowers");
                if is_sync && rise.is_none() {
                    let outcome = workload.ask(&mut [OWN, backlog.map_or_else(fails, asking_for)]);
                    wanted = outcome.desired;
                    // Zero that another client asked for is no pause here, so the lower bound holds as far as
                    // anything is known; where nothing is, the code that carries the answer out sees to it.
                    prop_assert!(wanted >= workload.spec.min || outcome.raw.is_none());
                }
                prop_assert!(wanted <= workload.spec.max);
                if wanted < before {
                    let (Some(load), Some(_)) = (load, backlog) else {
                        return Err(TestCaseError::fail("it fell while a metric failed"));
                    };
                    prop_assert_eq!(workload.decider.mode(), Mode::Stable);
                    let need = PodCount::ceil_from(load / 10.0).min(workload.spec.max);
                    prop_assert!(wanted >= need, "below what requests need: {} of {}", wanted, need);
                }
                if wanted == before {
                    continue;
                }
                let change = CountChange { from: before, to: wanted };
                workload.decider.note_rescale(&workload.spec, change, now);
                if !is_written {
                    workload.decider.revert_rescale(change, &memory, now);
                    continue;
                }
                workload.count = wanted;
                changes.push((now, change));
                if wanted > before && before > PodCount::ZERO {
                    prop_assert!(risen_in_15_seconds(&changes) <= 4, "{:?}", changes);
                }
            }
        }

        #[test]
        fn point_12_without_an_own_metric_it_is_class_hpa(
            backlogs in prop::collection::vec(prop::option::weighted(0.8, 0_u32..60), 1..30), with_behavior in any::<bool>(),
        ) {
            let words = if with_behavior { "min=1 max=40 behavior" } else { "min=1 max=40" };
            let mut workload = Workload::of(vec![per_thousand()], words, 3);
            let (mut state, mut count) = (HpaState::default(), PodCount::new(3));
            for backlog in backlogs {
                let samples = backlog.map_or_else(fails, asking_for);
                workload.after(15);
                let none = HpaPods::default();
                let observation = HpaObservation { scale: scale(count, count), pods: &none, samples: std::slice::from_ref(&samples) };
                let plain = evaluate(&workload.spec, &observation, &mut state, workload.now);
                let mixed = workload.ask(&mut [samples.clone()]);
                prop_assert_eq!(plain, mixed);
                prop_assert_eq!(&state, workload.decider.state());
                if plain.desired != count {
                    state.note_rescale(&workload.spec, CountChange { from: count, to: plain.desired }, workload.now);
                    count = plain.desired;
                }
                workload.write(mixed.desired);
                prop_assert_eq!(&state, workload.decider.state());
            }
        }

        #[test]
        fn point_12_own_metrics_alone_are_class_kpa_count_for_count(
            loads in loads(), start in 0_u32..20, max in 1_u32..200,
        ) {
            let words = format!("min=0 max={max} stabilization=0");
            let start = start.min(max);
            let mut workload = Workload::under(&ScalingSpec::default(), vec![concurrency()], &words, start);
            let kpa = ScalingSpec { target_per_pod: 10.0, total_per_pod: 10.0, ..ScalingSpec::default() };
            let mut decider = Decider::new(&kpa, PodCount::new(start), ago("4000"));
            let (mut count, most) = (PodCount::new(start), PodCount::new(max));
            for load in loads {
                workload.after(2);
                if let Some(load) = load {
                    count = decider.decide(&kpa, &present(load, count), workload.now).desired.min(most);
                }
                workload.look(&[load]);
                prop_assert_eq!(workload.sync(&mut [OWN]), count.value());
            }
        }
    }
}
