//! What is left of pods and their values, once those above the class's own count are left out.

use std::time::Duration;

use settings::hpa::{HpaSettings, LabelSelector, MetricIdentifier, PodRequests, ResourceTarget};

use super::*;
use crate::hpa::{ReadyCondition, ReadyStatus, Selection};

const NOW: Timestamp = Timestamp::from_secs(10_000);
const WINDOW: Duration = Duration::from_secs(15);

/// A pod that runs and is ready since so many seconds.
fn ready(pod: u32, seconds: u64) -> HpaPod {
    let since = NOW - Duration::from_secs(seconds);
    HpaPod {
        pod: PodId(pod),
        phase: HpaPodPhase::Running,
        is_deleted: false,
        started: Some(since),
        ready: Some(ReadyCondition { status: ReadyStatus::True, since }),
        requests: PodRequests::default(),
    }
}

fn per_pod(values: &[(u32, i64)]) -> MetricSamples {
    let sample = |&(pod, value): &(u32, i64)| PodSample {
        pod: PodId(pod),
        value: MilliValue::new(value),
        at: NOW,
        window: WINDOW,
    };
    MetricSamples::PerPod(PodSamples::new(values.iter().map(sample).collect()))
}

fn resource(resource: ResourceName) -> MetricSpec {
    let target = ResourceTarget::AverageValue(MilliValue::new(500));
    MetricSpec::Resource { resource, container: None, target }
}

fn of_pods() -> MetricSpec {
    let metric = MetricIdentifier { name: "jobs".into(), selector: LabelSelector::default() };
    MetricSpec::Pods { metric, target: MilliValue::new(500) }
}

/// The pods that are shown of these, how many count as present, and their values by this metric.
fn shown(
    metric: MetricSpec,
    pods: &[HpaPod],
    values: &[(u32, i64)],
    own: u32,
) -> (Vec<u32>, u32, Vec<(u32, i64)>) {
    let settings =
        HpaSettings { cpu_initialization_period: Duration::from_secs(120), ..HpaSettings::default() };
    let (min, max) = (PodCount::ONE, PodCount::new(10));
    let spec = HpaSpec { min, max, metrics: vec![metric], behavior: None, settings };
    let present = PodCount::of(pods.iter().filter(|pod| !pod.is_deleted).count());
    let mut target = TargetPods { pods: HpaPods::new(pods.to_vec()), present, selection: Selection::Unique };
    let mut samples = [per_pod(values)];
    leave_out_early_pods(&mut target, &mut samples, &spec, PodCount::new(own), NOW);
    let [MetricSamples::PerPod(left)] = samples else { panic!("it stays a metric of pods") };
    let pods = target.pods.iter().map(|pod| pod.pod.0).collect();
    let values = left.iter().map(|sample| (sample.pod.0, sample.value.value())).collect();
    (pods, target.present.value(), values)
}

#[test]
fn the_load_of_early_pods_is_that_of_the_others() {
    let pods = [ready(1, 900), ready(2, 800), ready(3, 700), ready(4, 600)];
    let values = [(1, 300), (2, 310), (3, 290), (4, 301)];
    let divided = (vec![1, 2], 2, vec![(1, 596), (2, 605)]);
    assert_eq!(shown(resource(ResourceName::Cpu), &pods, &values, 2), divided);
    assert_eq!(shown(of_pods(), &pods, &values, 2), divided);
    let all = (vec![1, 2, 3, 4], 4, values.to_vec());
    assert_eq!(shown(of_pods(), &pods, &values, 4), all);
    assert_eq!(shown(of_pods(), &pods, &values, 9), all);
    assert_eq!(shown(of_pods(), &pods, &values, 0), (Vec::new(), 0, Vec::new()));
}

#[test]
fn processors_in_use_are_those_of_all_pods_that_count() {
    let pods = HpaPods::new(vec![ready(1, 900), ready(2, 800), ready(3, 5)]);
    let used = |metrics: Vec<MetricSpec>, values: &[(u32, i64)]| {
        let settings =
            HpaSettings { cpu_initialization_period: Duration::from_secs(120), ..HpaSettings::default() };
        let samples = vec![per_pod(values); metrics.len()];
        let (min, max) = (PodCount::ONE, PodCount::new(10));
        let spec = HpaSpec { min, max, metrics, behavior: None, settings };
        cpu_in_use(&pods, &samples, &spec, NOW).map(MilliValue::value)
    };
    let cpu = || resource(ResourceName::Cpu);
    assert_eq!(used(vec![of_pods(), cpu()], &[(1, 300), (2, 310), (3, 900)]), Some(610));
    assert_eq!(used(vec![cpu()], &[(3, 900)]), None, "it has just begun");
    assert_eq!(used(vec![resource(ResourceName::Memory)], &[(1, 300)]), None);
}

#[test]
fn memory_is_no_load_that_pods_divide() {
    let pods = [ready(1, 900), ready(2, 800), ready(3, 700)];
    let values = [(1, 300), (2, 310), (3, 290)];
    let memory = shown(resource(ResourceName::Memory), &pods, &values, 2);
    assert_eq!(memory, (vec![1, 2], 2, vec![(1, 300), (2, 310)]));
}

#[test]
fn pods_that_are_ready_for_longest_are_shown_and_those_that_leave_last() {
    let starting = HpaPod { phase: HpaPodPhase::Pending, ready: None, ..ready(1, 0) };
    let leaving = HpaPod { is_deleted: true, ..ready(2, 900) };
    let pods = [starting, leaving, ready(3, 5), ready(4, 600)];
    let values = [(2, 100), (3, 200), (4, 300)];
    assert_eq!(shown(of_pods(), &pods, &values, 1), (vec![4], 1, vec![(4, 500)]));
    assert_eq!(shown(of_pods(), &pods, &values, 3), (vec![1, 3, 4], 3, vec![(3, 200), (4, 300)]));
}

#[test]
fn an_early_pod_that_starts_adds_no_load() {
    // Its sample reaches back into its start, so Kubernetes counts it for no load either.
    let pods = [ready(1, 900), ready(2, 5)];
    let values = [(1, 300), (2, 1000)];
    assert_eq!(shown(resource(ResourceName::Cpu), &pods, &values, 1), (vec![1], 1, vec![(1, 300)]));
}

#[test]
fn a_sample_of_an_unknown_pod_stays_as_it_is() {
    let pods = [ready(1, 900), ready(2, 800)];
    let values = [(1, 300), (2, 300), (7, 50)];
    assert_eq!(shown(of_pods(), &pods, &values, 1), (vec![1], 1, vec![(1, 600), (7, 50)]));
}
