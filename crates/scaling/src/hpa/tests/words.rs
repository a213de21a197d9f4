//! What people read of a pass, and that it is told in the order in which it happened.

use super::*;

fn sentences(state: &HpaState) -> Vec<String> {
    let shown = |count: Option<PodCount>| count.map_or("–".to_owned(), |count| count.to_string());
    let line =
        |reason: &Reason| format!("{} → {}: {}", shown(reason.before), shown(reason.after), reason.text);
    state.reasons().iter().map(line).collect()
}

fn pass(spec: &HpaSpec, current: u32, pods: &HpaPods, samples: &[MetricSamples]) -> Vec<String> {
    let former = Recommendation { count: PodCount::new(9), at: ago("60") };
    let mut state = remembering(vec![former]);
    let current = PodCount::new(current);
    let observation = HpaObservation { scale: scale(current, current), pods, samples };
    evaluate(spec, &observation, &mut state, NOW);
    sentences(&state)
}

#[test]
fn the_reasons_of_a_pass_stand_in_the_order_of_its_steps() {
    let mut spec =
        spec_of(cpu(ResourceTarget::Utilization(50)), "min=2 max=30 up=4/60 up=10%/120 up-window=120");
    spec.metrics.push(per_thousand());
    spec.metrics.push(backlog(TotalTarget::Value(MilliValue::new(1500))));
    let requests = PodRequests { pod_level: None, containers: vec![requesting("app", Some(1000), None)] };
    let pod = |number| HpaPod { requests: requests.clone(), ..settled_pod(number) };
    let leaving = HpaPod { is_deleted: true, ..pod(4) };
    let starting = HpaPod { phase: HpaPodPhase::Pending, ..pod(5) };
    let pods = HpaPods::new(vec![pod(1), pod(2), pod(3), leaving, starting]);
    let used = (1..3).map(|number| sample(number, MilliValue::new(2000))).collect();
    let failure =
        MetricFailure { reason: ConditionReason::FailedGetExternalMetric, why: NoProposal::Refused };
    let samples =
        [MetricSamples::PerPod(PodSamples::new(used)), asking_for(12), MetricSamples::Failed(failure)];
    assert_eq!(
        pass(&spec, 3, &pods, &samples),
        [
            "– → –: cpu is 200% of what is requested, target 50%: 4 times",
            "– → –: cpu counts 2 pods; left out: 1 not ready yet, 1 without a sample, 1 ending or failed",
            "– → –: cpu is 2 times its target with the values assumed for these pods",
            "– → 8: cpu asks for 8",
            "8 → 8: backlog is 4 per pod, target 1: 4 times",
            "8 → 12: backlog asks for 12",
            "12 → 12: backlog failed: the source of the metric gave no value, and \"asked\" shows its answer",
            "12 → 9: recommendations within the windows lie between 9 and 12",
            "9 → 9: 4 pods more in 1m, from 3 on: at most 7",
            "9 → 9: 10% more in 2m, from 3 on: at most 4",
            "9 → 7: the policy with the largest change rules: at most 7",
        ]
    );
}

#[test]
fn a_pass_without_behavior_tells_of_peaks_and_bounds() {
    let none = HpaPods::default();
    let spec = |words: &str| {
        let mut spec = spec_of(per_thousand(), words);
        spec.settings.tolerance = 0.0;
        spec
    };
    for (words, current, raw, last) in [
        ("min=1 max=30", 6, 2, "2 → 9: 9 is the largest recommendation of the last 5m"),
        ("min=1 max=30 stabilization=0", 3, 20, "20 → 6: no more than a doubling, or 4: at most 6"),
        ("min=1 max=5 stabilization=0", 3, 20, "20 → 5: never above the maximum of 5"),
        ("min=3 max=5 stabilization=0", 3, 1, "1 → 3: never below the minimum of 3"),
        ("min=1 max=5", 6, 1, "– → 5: more than the maximum of 5"),
        ("min=4 max=5", 2, 1, "– → 4: fewer than the minimum of 4"),
        ("min=1 max=5", 0, 1, "– → 0: another client set the count to 0, so the count stays at 0"),
        (
            "min=1 max=30 down-window=0 down-select=disabled",
            6,
            2,
            "2 → 6: this direction is turned off (selectPolicy Disabled): at least 6",
        ),
        (
            "min=1 max=30 down-window=0 down-select=min down=1/60",
            6,
            2,
            "2 → 5: the policy with the smallest change rules (selectPolicy Min): at least 5",
        ),
    ] {
        let told = pass(&spec(words), current, &none, &[asking_for(raw)]);
        assert_eq!(told.last().map(String::as_str), Some(last), "{words}: {told:?}");
    }
}

#[test]
fn each_metric_is_shown_beside_its_target() {
    let mut spec = spec_of(cpu(ResourceTarget::Utilization(80)), "min=1 max=30");
    let memory = ResourceTarget::AverageValue(MilliValue::new(134_217_728_000));
    spec.metrics.push(MetricSpec::Resource {
        resource: ResourceName::Memory,
        container: None,
        target: memory,
    });
    spec.metrics.push(backlog(TotalTarget::Value(MilliValue::new(1500))));
    let requests = PodRequests { pod_level: None, containers: vec![requesting("app", Some(1000), None)] };
    let pods = HpaPods::new(vec![HpaPod { requests, ..settled_pod(1) }]);
    let each = |value| MetricSamples::PerPod(PodSamples::new(vec![sample(1, MilliValue::new(value))]));
    let samples = [each(450), each(104_857_600_000), MetricSamples::Series(vec![])];
    let observation =
        HpaObservation { scale: scale(PodCount::ONE, PodCount::ONE), pods: &pods, samples: &samples };
    let mut state = HpaState::default();
    assert_eq!(
        metrics_beside_targets(&spec, &state),
        "cpu <unknown>/80%, memory <unknown>/128Mi, backlog <unknown>/1.5"
    );
    evaluate(&spec, &observation, &mut state, NOW);
    let shown = metrics_beside_targets(&spec, &state);
    assert_eq!(shown, "cpu 45%/80%, memory 100Mi/128Mi, backlog <unknown>/1.5");
}

#[test]
fn a_pass_that_ends_early_says_why() {
    let spec = spec_of(per_thousand(), "min=1 max=30");
    let failure =
        MetricFailure { reason: ConditionReason::FailedGetExternalMetric, why: NoProposal::Refused };
    let told = pass(&spec, 3, &HpaPods::default(), &[MetricSamples::Failed(failure)]);
    assert_eq!(
        told,
        [
            "– → –: backlog failed: the source of the metric gave no value, and \"asked\" shows its answer",
            "– → –: 1 of 1 metrics failed, so no pod is taken away",
        ]
    );
}

#[test]
fn a_sentence_stays_small_enough_to_be_copied() {
    assert!(size_of::<Reason>() <= 96, "{}", size_of::<Reason>());
}

#[test]
fn the_reason_of_a_failing_metric_names_the_failure() {
    let spec = spec_of(per_thousand(), "min=1 max=30");
    for (why, words) in [
        (NoProposal::Refused, "the source of the metric gave no value, and \"asked\" shows its answer"),
        (NoProposal::NoAnswer, "the source of the metric did not answer in time"),
        (NoProposal::NoReporter, "no pod and no activator reports requests"),
        (NoProposal::NoContainer, "the pods have no container of that name"),
        (NoProposal::NotReported, "pods report their use of cpu and memory only"),
        (NoProposal::NotMeasured, "no value was measured"),
    ] {
        let failure = MetricFailure { reason: ConditionReason::FailedGetExternalMetric, why };
        let told = pass(&spec, 3, &HpaPods::default(), &[MetricSamples::Failed(failure)]);
        assert_eq!(told[0], format!("– → –: backlog failed: {words}"));
    }
}
