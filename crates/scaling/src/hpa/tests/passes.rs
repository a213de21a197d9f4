//! Whole passes: rows K and F26, and what the next pass remembers of one that was carried out.

use super::*;

/// `id | current | settings | metrics | desired | cause | active | limited`: each metric is what it asks for,
/// or `fails`; `-` says that the condition was not touched. `sel=` is what is wrong with the selector; `own`
/// that the zero is our own.
pub(in crate::hpa) const PASSES: &str = "
    K1  | 0 | min=3 max=5 | 4 | 0 | Paused | ScalingDisabled | -
    K2  | 2 | min=3 max=5 | 4 | 3 | BelowMinimum | - | -
    K3  | 10 | min=3 max=5 | 4 | 5 | AboveMaximum | - | -
    K4  | 3 | min=2 max=6 | 4 unknown | 4 | AboveTarget(0) | ValidMetricFound | DesiredWithinRange
    K5  | 5 | min=1 max=9 | 3 fails | 5 | Abandoned | FailedGetExternalMetric | -
    K6  | 5 | min=1 max=9 | fails 5 | 5 | OnTarget | ValidMetricFound | DesiredWithinRange
    K7  | 5 | min=1 max=9 | unknown fails | 5 | Abandoned | InvalidMetricSourceType | -
    K8 absent | 5 | min=1 max=9 sel=absent | 7 | 5 | Abandoned | InvalidSelector | -
    K8 unreadable | 5 | min=1 max=9 sel=unreadable | 7 | 5 | Abandoned | InvalidSelector | -
    K9  | 5 | min=1 max=9 sel=ambiguous | 7 | 5 | Abandoned | AmbiguousSelector | -
    K11 | 3 | min=1 max=5 | 5 4 | 5 | AboveTarget(0) | ValidMetricFound | DesiredWithinRange
    K11 beyond | 3 | min=1 max=5 | 4 6 | 5 | AboveTarget(1) | ValidMetricFound | TooManyReplicas
    K12 | 0 | min=0 max=9 | 100 | 0 | Paused | ScalingDisabled | -
    K13 | 0 | min=0 max=9 own | 5 | 4 | AboveTarget(0) | ValidMetricFound | ScaleUpLimit
    K14 | 0 | min=2 max=9 own behavior | 0 | 2 | OnTarget | ValidMetricFound | DesiredWithinRange
    K14 without behavior | 0 | min=2 max=9 own | 0 | 2 | OnTarget | ValidMetricFound | TooFewReplicas
    F26 | 3 | min=5 max=1000 up-select=disabled | 9 | 5 | BelowMinimum | - | -
    a failing metric beside one that asks for more | 5 | min=1 max=9 | fails 7 | 7 | AboveTarget(1) | ValidMetricFound | DesiredWithinRange
    the last pod goes when nothing is asked for | 1 | min=0 max=9 stabilization=0 | 0 | 0 | BelowTarget | ValidMetricFound | DesiredWithinRange
    but waits out the window | 1 | min=0 max=9 | 0 | 1 | BelowTarget | ValidMetricFound | DesiredWithinRange
";

fn failing(reason: ConditionReason) -> MetricSamples {
    MetricSamples::Failed(MetricFailure { reason, why: NoProposal::Refused })
}

fn samples_of(words: &str) -> Vec<MetricSamples> {
    let metrics = words.split_whitespace().map(|word| match word {
        "fails" => failing(ConditionReason::FailedGetExternalMetric),
        "unknown" => failing(ConditionReason::InvalidMetricSourceType),
        count => asking_for(count.parse().unwrap()),
    });
    metrics.collect()
}

/// What the words of a row mean, with no tolerance, so that metrics ask for exactly what the row says.
fn spec(words: &str, metrics: usize) -> HpaSpec {
    let plain: Vec<&str> =
        words.split_whitespace().filter(|word| !word.starts_with("sel=") && *word != "own").collect();
    let mut spec = spec_of(per_thousand(), &plain.join(" "));
    spec.settings.tolerance = 0.0;
    spec.metrics = vec![per_thousand(); metrics];
    spec
}

fn selection(words: &str) -> Selection {
    match word(words, "sel") {
        None => Selection::Unique,
        Some("absent") => Selection::Absent,
        Some("unreadable") => Selection::Unreadable,
        Some("ambiguous") => Selection::Ambiguous,
        Some(unknown) => panic!("no selection {unknown}"),
    }
}

fn pass(
    spec: &HpaSpec,
    current: PodCount,
    samples: &[MetricSamples],
    state: &mut HpaState,
    now: Timestamp,
) -> HpaOutcome {
    let none = HpaPods::default();
    let observation = HpaObservation { scale: scale(current, current), pods: &none, samples };
    evaluate(spec, &observation, state, now)
}

fn reason(condition: Option<HpaCondition>) -> String {
    condition.map_or("-".to_owned(), |condition| format!("{:?}", condition.reason))
}

#[test]
fn passes_end_as_in_the_reference() {
    for row in rows(PASSES) {
        let [_, current, words, metrics, desired, cause, active, limited] = row[..] else {
            panic!("{row:?}")
        };
        let samples = samples_of(metrics);
        let spec = spec(words, samples.len());
        let is_own = words.split_whitespace().any(|word| word == "own");
        let mut state = HpaState::default();
        if is_own {
            let asleep = HpaSpec { min: PodCount::ZERO, ..spec.clone() };
            state = state_at(&asleep, PodCount::ZERO);
        }
        let none = HpaPods::default();
        let current = pods(current);
        let scale = Scale { selection: selection(words), ..scale(current, current) };
        let observation = HpaObservation { scale, pods: &none, samples: &samples };
        let outcome = evaluate(&spec, &observation, &mut state, NOW);
        assert_eq!(outcome.desired, pods(desired), "{row:?}: {outcome:?}");
        assert_eq!(format!("{:?}", outcome.cause), cause, "{row:?}");
        let conditions = state.conditions();
        assert_eq!(reason(conditions.scaling_active), active, "{row:?}");
        assert_eq!(reason(conditions.scaling_limited), limited, "{row:?}");
        assert_linked(state.reasons());
        let is_abandoned = outcome.cause == RescaleCause::Abandoned;
        assert_eq!(
            state.warnings().contains(&HpaWarning::FailedComputeMetricsReplicas),
            is_abandoned,
            "{row:?}"
        );
        assert_eq!(state.desired().is_none(), is_abandoned, "{row:?}: what was desired before is kept");
        let asked = outcome.raw.is_some() || (is_abandoned && selection(words) == Selection::Unique);
        assert_eq!(state.metrics().len(), if asked { samples.len() } else { 0 }, "{row:?}");
    }
}

/// Row K4, with what it says of the unknown metric.
#[test]
fn a_metric_of_unknown_kind_is_the_fault_of_the_spec() {
    let spec = spec("min=2 max=6", 2);
    let mut state = HpaState::default();
    pass(&spec, PodCount::new(3), &samples_of("4 unknown"), &mut state, NOW);
    let MetricStatus::Failed { reason, .. } = state.metrics()[1] else { panic!("{:?}", state.metrics()) };
    assert_eq!(reason, ConditionReason::InvalidMetricSourceType);
    assert_eq!(state.warnings(), [HpaWarning::Condition(ConditionReason::InvalidMetricSourceType)]);
}

/// Row K10, with everything that must stay as it was.
#[test]
fn a_count_that_could_not_be_written_is_no_event() {
    let spec = spec("min=1 max=99 behavior", 1);
    let mut state = HpaState::default();
    let two = PodCount::new(2);
    pass(&spec, two, &samples_of("2"), &mut state, ago("15"));
    let before = state.desired();
    let outcome = pass(&spec, two, &samples_of("5"), &mut state, NOW);
    assert_eq!(outcome.desired, PodCount::new(5));
    state.note_failed_rescale(before, NOW);
    assert_eq!(state.desired(), Some(two));
    assert_eq!(reason(state.conditions().able_to_scale), "FailedUpdateScale");
    assert_eq!(state.conditions().able_to_scale.unwrap().since, NOW);
    assert_eq!(state.history().events(), (&[][..], &[][..]));
    assert_eq!(state.last_scale(), None);
    assert!(state.warnings().contains(&HpaWarning::FailedRescale));
}

/// Rows K13 and K14, beyond their first pass.
#[test]
fn zero_is_owned_only_after_a_scale_down_to_zero_by_the_autoscaler() {
    let mut spec = spec("min=0 max=9 stabilization=0", 1);
    let mut state = HpaState::default();
    assert_eq!(pass(&spec, PodCount::ONE, &samples_of("0"), &mut state, NOW).desired, PodCount::ZERO);
    state.note_rescale(&spec, CountChange { from: PodCount::ONE, to: PodCount::ZERO }, NOW);
    assert_eq!(reason(state.conditions().scaled_to_zero), "ScaledToZero");

    let four = PodCount::new(4);
    assert_eq!(pass(&spec, PodCount::ZERO, &samples_of("5"), &mut state, NOW).desired, four);
    state.note_rescale(&spec, CountChange { from: PodCount::ZERO, to: four }, NOW);
    assert_eq!(reason(state.conditions().scaled_to_zero), "NotScaledToZero");
    assert_eq!(pass(&spec, four, &samples_of("5"), &mut state, NOW).desired, PodCount::new(5));

    spec.min = PodCount::new(2);
    state.note_rescale(&spec, CountChange { from: PodCount::ONE, to: PodCount::ZERO }, NOW);
    assert_eq!(reason(state.conditions().scaled_to_zero), "NotScaledToZero", "its minimum is above zero");
}

#[test]
fn a_paused_pass_leaves_the_limits_of_the_last_one_as_they_were() {
    let spec = spec("min=1 max=3", 1);
    let mut state = HpaState::default();
    pass(&spec, PodCount::new(3), &samples_of("9"), &mut state, NOW);
    assert_eq!(reason(state.conditions().scaling_limited), "TooManyReplicas");
    pass(&spec, PodCount::ZERO, &samples_of("9"), &mut state, NOW);
    assert_eq!(reason(state.conditions().scaling_limited), "TooManyReplicas");
    assert_eq!(reason(state.conditions().scaling_active), "ScalingDisabled");
    assert_eq!((state.desired(), state.current()), (Some(PodCount::ZERO), PodCount::ZERO));
    assert!(state.metrics().is_empty());
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let spec = spec("min=1 max=9 stabilization=300", 1);
    let mut state = HpaState::default();
    let three = PodCount::new(3);
    let since = |state: &HpaState| state.conditions().able_to_scale.map(|able| (able.reason, able.since));
    pass(&spec, three, &samples_of("3"), &mut state, ago("30"));
    assert_eq!(since(&state), Some((ConditionReason::ReadyForNewScale, ago("30"))));
    pass(&spec, three, &samples_of("2"), &mut state, ago("15"));
    assert_eq!(since(&state), Some((ConditionReason::ScaleDownStabilized, ago("30"))));
    state.note_failed_rescale(None, NOW);
    assert_eq!(since(&state), Some((ConditionReason::FailedUpdateScale, NOW)));
    assert_eq!(state.warnings(), [HpaWarning::FailedRescale]);
}

#[test]
fn an_abandoned_pass_is_not_remembered_but_for_the_count_that_was_found() {
    let spec = spec("min=1 max=9", 1);
    let mut state = HpaState::default();
    pass(&spec, PodCount::new(5), &samples_of("fails"), &mut state, ago("15"));
    let seed = Recommendation { count: PodCount::new(5), at: ago("15") };
    assert_eq!(state.history().recommendations(), [seed]);
    // It counts for the window: what was found is not taken away at once.
    assert_eq!(pass(&spec, PodCount::new(5), &samples_of("2"), &mut state, NOW).desired, PodCount::new(5));
    assert_eq!(state.history().recommendations().len(), 2);
}
