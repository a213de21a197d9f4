//! Several metrics of different kinds in one document.

use super::*;

/// A cpu metric that asks for `cpu`, requests per second in the pods, an object and a queue.
fn documents() -> (HpaSpec, HpaPods, [MetricSamples; 4]) {
    let identifier = |name: &str| MetricIdentifier { name: name.into(), selector: LabelSelector::default() };
    let described = ObjectReference { api_version: "v1".into(), kind: "Service".into(), name: "shop".into() };
    let mut spec = spec_of(cpu(ResourceTarget::Utilization(50)), "min=1 max=100");
    spec.metrics.extend([
        MetricSpec::Pods { metric: identifier("rps"), target: MilliValue::new(10_000) },
        MetricSpec::Object {
            described,
            metric: identifier("hits"),
            target: TotalTarget::Value(MilliValue::new(1000)),
        },
        backlog(TotalTarget::AverageValue(MilliValue::new(2000))),
    ]);
    let list = (0..4).map(|number| HpaPod {
        requests: PodRequests { pod_level: None, containers: vec![requesting("app", Some(1000), None)] },
        ..settled_pod(number)
    });
    let each = |value: i64| {
        MetricSamples::PerPod(PodSamples::new(
            (0..4).map(|pod| sample(pod, MilliValue::new(value))).collect(),
        ))
    };
    let one = |value: i64| MetricSamples::Series(vec![MilliValue::new(value)]);
    // 5, 6, 7 and 8 pods.
    (spec, HpaPods::new(list.collect()), [each(600), each(15_000), one(1750), one(16_000)])
}

fn proposed(state: &HpaState) -> Vec<Option<u32>> {
    let count = |status: &MetricStatus| match status {
        MetricStatus::Proposed(proposal) => Some(proposal.count.value()),
        MetricStatus::Failed { .. } | MetricStatus::NotAsked => None,
    };
    state.metrics().iter().map(count).collect()
}

#[test]
fn the_largest_proposal_wins() {
    let (spec, pods, samples) = documents();
    let four = PodCount::new(4);
    let observation = HpaObservation { scale: scale(four, four), pods: &pods, samples: &samples };
    let mut state = HpaState::default();
    let outcome = evaluate(&spec, &observation, &mut state, NOW);
    assert_eq!(proposed(&state), [Some(5), Some(6), Some(7), Some(8)]);
    assert_eq!((outcome.desired, outcome.cause), (PodCount::new(8), RescaleCause::AboveTarget(3)));
    assert_linked(state.reasons());
}

#[test]
fn each_kind_fails_under_its_own_reason() {
    let (mut spec, pods, _) = documents();
    spec.metrics.push(MetricSpec::Resource {
        resource: ResourceName::Cpu,
        container: Some("app".into()),
        target: ResourceTarget::Utilization(50),
    });
    let four = PodCount::new(4);
    let observation = HpaObservation { scale: scale(four, four), pods: &pods, samples: &[] };
    let mut state = HpaState::default();
    assert_eq!(evaluate(&spec, &observation, &mut state, NOW).cause, RescaleCause::Abandoned);
    let reasons: Vec<ConditionReason> = state
        .metrics()
        .iter()
        .map(|status| match status {
            MetricStatus::Failed { reason, why: NoProposal::NotMeasured } => *reason,
            MetricStatus::Proposed(_) | MetricStatus::Failed { .. } | MetricStatus::NotAsked => {
                panic!("{status:?}")
            }
        })
        .collect();
    assert_eq!(
        reasons,
        [
            ConditionReason::FailedGetResourceMetric,
            ConditionReason::FailedGetPodsMetric,
            ConditionReason::FailedGetObjectMetric,
            ConditionReason::FailedGetExternalMetric,
            ConditionReason::FailedGetContainerResourceMetric,
        ]
    );
}

#[test]
fn one_container_is_measured_by_its_own_requests() {
    let metric = MetricSpec::Resource {
        resource: ResourceName::Cpu,
        container: Some("app".into()),
        target: ResourceTarget::Utilization(50),
    };
    let spec = spec_of(metric, "");
    let pod = HpaPod {
        requests: PodRequests {
            pod_level: None,
            containers: vec![requesting("app", Some(100), None), requesting("proxy", None, None)],
        },
        ..settled_pod(1)
    };
    let pods = HpaPods::new(vec![pod]);
    let samples = [MetricSamples::PerPod(PodSamples::new(vec![sample(1, MilliValue::new(100))]))];
    let observation =
        HpaObservation { scale: scale(PodCount::ONE, PodCount::ONE), pods: &pods, samples: &samples };
    assert_eq!(evaluate(&spec, &observation, &mut HpaState::default(), NOW).raw, Some(PodCount::new(2)));
}
