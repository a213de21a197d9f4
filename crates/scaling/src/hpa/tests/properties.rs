//! What holds of every document, history and load.

use proptest::prelude::*;

use super::*;

/// What a metric says at one pass.
#[derive(Clone, Debug)]
enum MetricWord {
    Backlog(i64),
    PerPod(Vec<Option<i64>>),
    Nothing,
}

#[derive(Clone, Debug)]
struct Step {
    after_ms: u64,
    said: Vec<MetricWord>,
    is_written: bool,
}

const PODS: usize = 6;

fn said() -> impl Strategy<Value = MetricWord> {
    let value = || prop_oneof![0_i64..50_000, Just(0), Just(i64::MAX), -100_i64..0];
    prop_oneof![
        4 => value().prop_map(MetricWord::Backlog),
        4 => prop::collection::vec(prop::option::of(value()), PODS).prop_map(MetricWord::PerPod),
        1 => Just(MetricWord::Nothing),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u64..40_000, prop::collection::vec(said(), 3), prop::bool::weighted(0.9))
        .prop_map(|(after_ms, said, is_written)| Step { after_ms, said, is_written });
    prop::collection::vec(step, 1..40)
}

fn policies() -> impl Strategy<Value = Vec<ScalingPolicy>> {
    let amount =
        prop_oneof![(1_u32..20).prop_map(PolicyAmount::Pods), (1_u32..400).prop_map(PolicyAmount::Percent)];
    let policy = (amount, 1_u64..120)
        .prop_map(|(amount, period)| ScalingPolicy { amount, period: Duration::from_secs(period) });
    prop::collection::vec(policy, 1..4)
}

fn rules() -> impl Strategy<Value = ScalingRules> {
    let select = prop_oneof![Just(SelectPolicy::Max), Just(SelectPolicy::Min), Just(SelectPolicy::Disabled)];
    (prop::option::of(0_u64..200), select, policies(), prop::option::of(0.0..2.0_f64)).prop_map(
        |(window, select_policy, policies, tolerance)| ScalingRules {
            stabilization_window: window.map(Duration::from_secs),
            select_policy,
            policies,
            tolerance,
            origin: RulesOrigin::Document,
        },
    )
}

prop_compose! {
    fn specs()(
        min in 0_u32..5, room in 0_u32..60, stabilization in 0_u64..400,
        behavior in prop::option::of((rules(), rules())),
    ) -> HpaSpec {
        let behavior = behavior.map(|(scale_up, scale_down)| Behavior { scale_up, scale_down });
        let metric = MetricIdentifier { name: "packets".into(), selector: LabelSelector::default() };
        let mut spec = spec_of(per_thousand(), "");
        spec.metrics.push(MetricSpec::Pods { metric, target: MilliValue::new(1000) });
        spec.metrics.push(cpu(ResourceTarget::Utilization(50)));
        spec.settings.downscale_stabilization = Duration::from_secs(stabilization);
        HpaSpec { min: PodCount::new(min), max: PodCount::new(min + room + 1), behavior, ..spec }
    }
}

fn world() -> HpaPods {
    let list = (0..6).map(|number| HpaPod {
        requests: PodRequests { pod_level: None, containers: vec![requesting("app", Some(1000), None)] },
        ..settled_pod(number)
    });
    HpaPods::new(list.collect())
}

/// A metric that is told in the form of another one fails, as one that tells nothing.
fn samples(said: &[MetricWord]) -> Vec<MetricSamples> {
    let one = |said: &MetricWord| match said {
        MetricWord::Backlog(value) => MetricSamples::Series(vec![MilliValue::new(*value)]),
        MetricWord::PerPod(values) => {
            let known =
                (0..).zip(values).filter_map(|(pod, value)| Some(sample(pod, MilliValue::new((*value)?))));
            MetricSamples::PerPod(PodSamples::new(known.collect()))
        }
        MetricWord::Nothing => MetricSamples::Failed(MetricFailure {
            reason: ConditionReason::FailedGetPodsMetric,
            why: NoProposal::Refused,
        }),
    };
    said.iter().map(one).collect()
}

/// One pass of a run.
struct Look<'a> {
    before: &'a HpaState,
    state: &'a HpaState,
    current: PodCount,
    outcome: HpaOutcome,
    now: Timestamp,
}

fn run(spec: &HpaSpec, steps: &[Step], mut look: impl FnMut(Look<'_>)) {
    let (mut state, pods, mut now, mut current) = (HpaState::default(), world(), NOW, PodCount::ONE);
    for step in steps {
        now += Duration::from_millis(step.after_ms);
        let before = state.clone();
        let samples = samples(&step.said);
        let observation = HpaObservation { scale: scale(current, current), pods: &pods, samples: &samples };
        let outcome = evaluate(spec, &observation, &mut state, now);
        look(Look { before: &before, state: &state, current, outcome, now });
        if outcome.desired != current {
            if step.is_written {
                state.note_rescale(spec, CountChange { from: current, to: outcome.desired }, now);
                current = outcome.desired;
            } else {
                state.note_failed_rescale(before.desired(), now);
            }
        }
    }
}

/// Changes in one direction since `after`, this one included.
fn moved(events: &[ScaleEvent], period: Duration, now: Timestamp) -> i64 {
    events
        .iter()
        .filter(|event| now.saturating_since(event.at) < period)
        .map(|event| i64::from(event.change))
        .sum()
}

proptest! {
    #[test]
    fn the_count_stays_within_its_bounds(spec in specs(), steps in steps()) {
        run(&spec, &steps, |look| {
            let desired = look.outcome.desired;
            let is_bounded = (spec.min..=spec.max).contains(&desired);
            // A target that rests at zero, and a pass without an answer, leave what is there.
            assert!(is_bounded || desired == look.current, "{:?}", look.outcome);
        });
    }

    /// Over any period that ends with a change: what was added in it, less what was taken away, is no more
    /// than its policy allows.
    #[test]
    fn pods_policies_hold_over_any_period(spec in specs(), steps in steps()) {
        let Some(behavior) = spec.behavior.clone() else { return Ok(()) };
        run(&spec, &steps, |look| {
            let HpaOutcome { desired, cause, .. } = look.outcome;
            let corrected = matches!(cause, RescaleCause::AboveMaximum | RescaleCause::BelowMinimum);
            if desired == look.current || corrected || look.current == PodCount::ZERO {
                return;
            }
            let (ups, downs) = look.before.history().events();
            let (rules, forth, back) = if desired > look.current {
                (&behavior.scale_up, ups, downs)
            } else {
                (&behavior.scale_down, downs, ups)
            };
            assert_ne!(rules.select_policy, SelectPolicy::Disabled);
            let change = i64::from(desired.value()) - i64::from(look.current.value());
            let allows = |policy: &ScalingPolicy| {
                let net = moved(forth, policy.period, look.now) - moved(back, policy.period, look.now);
                match policy.amount {
                    PolicyAmount::Pods(most) => change.abs() + net <= i64::from(most),
                    PolicyAmount::Percent(percent) => {
                        let start = f64::from(look.current.value()) - f64::from(i32::try_from(net).unwrap()) * f64::from(i32::try_from(change.signum()).unwrap());
                        let share = start * f64::from(percent) / 100.0;
                        let end = f64::from(desired.value());
                        // Up is rounded up and down is rounded towards fewer pods; a thousandth for what
                        // doubles lose.
                        if change > 0 { end < start + share + 1.001 } else { end > start - share - 1.001 }
                    }
                }
            };
            let holds = match rules.select_policy {
                SelectPolicy::Max => rules.policies.iter().any(allows),
                SelectPolicy::Min => rules.policies.iter().all(allows),
                SelectPolicy::Disabled => false,
            };
            assert!(holds, "{:?} from {} at {}", look.outcome, look.current, look.now);
        });
    }

    #[test]
    fn nothing_is_taken_away_while_a_metric_fails(spec in specs(), steps in steps()) {
        run(&spec, &steps, |look| {
            let fails = look.state.metrics().iter().any(|status| matches!(status, MetricStatus::Failed { .. }));
            if fails {
                assert!(look.outcome.desired >= look.current, "{:?}", look.outcome);
            }
        });
    }

    #[test]
    fn the_order_of_the_metrics_changes_nothing(spec in specs(), steps in steps(), turn in 1_usize..3) {
        let mut counts = Vec::new();
        run(&spec, &steps, |look| counts.push(look.outcome.desired));
        let mut turned = spec.clone();
        turned.metrics.rotate_left(turn);
        let mut steps = steps;
        for step in &mut steps {
            step.said.rotate_left(turn);
        }
        let mut again = Vec::new();
        run(&turned, &steps, |look| again.push(look.outcome.desired));
        prop_assert_eq!(counts, again);
    }

    #[test]
    fn the_same_input_gives_the_same_output(spec in specs(), steps in steps()) {
        let record = || {
            let mut seen = Vec::new();
            // As text, since a ratio that is no number does not equal itself.
            run(&spec, &steps, |look| seen.push(format!("{:?} {:?}", look.outcome, look.state)));
            seen
        };
        prop_assert_eq!(record(), record());
    }

    #[test]
    fn the_reasons_lead_from_the_first_number_to_the_answer(spec in specs(), steps in steps()) {
        run(&spec, &steps, |look| {
            let reasons = look.state.reasons();
            assert_linked(reasons);
            let last = reasons.last().unwrap();
            let expected = (look.outcome.cause != RescaleCause::Abandoned).then_some(look.outcome.desired);
            assert_eq!(last.after, expected);
            for reason in reasons {
                assert!(!reason.text.to_string().is_empty());
            }
        });
    }
}
