//! What holds for every load, configuration and history.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Step {
    after_ms: u64,
    ready: u32,
    wanted: u32,
    stable: f64,
    panic: f64,
    unheard: u32,
    present: Option<f64>,
}

fn load() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..50.0, 0.0..5000.0, Just(1e9), Just(f64::MAX)]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        0_u64..20_000,
        0_u32..50,
        0_u32..50,
        load(),
        load(),
        prop_oneof![3 => Just(0_u32), 1 => 0_u32..5],
        prop::option::of(load()),
    )
        .prop_map(|(after_ms, ready, wanted, stable, panic, unheard, present)| Step {
            after_ms,
            ready,
            wanted,
            stable,
            panic,
            unheard,
            present,
        });
    prop::collection::vec(step, 1..40)
}

prop_compose! {
    fn specs()(
        target in 0.01..200.0_f64, up in 1.001..1000.0_f64, down in 1.001..10.0_f64, threshold in 1.1..10.0_f64,
        activation in prop_oneof![Just(0_u32), 2_u32..10], delay in prop_oneof![Just(0_u64), 0_u64..120],
        tbc in prop_oneof![Just(-1.0), Just(0.0), 0.0..500.0_f64], reachable in any::<bool>(), weighted in any::<bool>(),
    ) -> ScalingSpec {
        ScalingSpec {
            target_per_pod: target,
            total_per_pod: target / 0.7,
            max_scale_up_rate: up,
            max_scale_down_rate: down,
            panic_threshold: threshold,
            activation_scale: PodCount::new(activation),
            scale_down_delay: Duration::from_secs(delay),
            target_burst_capacity: BurstCapacity::new(tbc).unwrap(),
            aggregation: if weighted { Aggregation::WeightedExponential } else { Aggregation::Linear },
            reachable,
            ..ScalingSpec::default()
        }
    }
}

fn observation(step: &Step, spec: &ScalingSpec) -> Observation {
    let missing = f64::from(step.unheard.min(step.ready)) * spec.target_per_pod;
    Observation {
        ready: PodCount::new(step.ready),
        reachable: PodCount::new(step.ready),
        wanted: PodCount::new(step.wanted),
        averages: Averages {
            stable: step.stable,
            panic: step.panic,
            stable_at_most: step.stable + missing,
            panic_at_most: step.panic + missing,
            unheard: PodCount::new(step.unheard.min(step.ready)),
            ..Averages::default()
        },
        present_count: step.present,
    }
}

/// Runs the steps and shows each with the state before it.
fn run(
    spec: &ScalingSpec,
    steps: &[Step],
    mut look: impl FnMut(&Decider, &Observation, &Verdict, Timestamp),
) {
    let mut decider = Decider::new(spec, PodCount::ZERO, Timestamp::ZERO);
    let mut now = Timestamp::ZERO;
    for step in steps {
        now += Duration::from_millis(step.after_ms);
        let before = decider.clone();
        let observation = observation(step, spec);
        let verdict = decider.decide(spec, &observation, now);
        look(&before, &observation, &verdict, now);
    }
}

proptest! {
    #[test]
    fn panic_never_scales_down(spec in specs(), steps in steps()) {
        run(&spec, &steps, |before, observation, verdict, _| {
            let heard = !observation.averages.is_open();
            let panicked = before.panic.is_panicking() && matches!(verdict.mode, Mode::Panic { .. });
            // With silent pods the count may stay at what the platform has, if a foreign write lowered that.
            if panicked && heard {
                assert!(verdict.desired >= before.panic.clone().hold(PodCount::ZERO), "{verdict:?}");
            }
        });
    }

    #[test]
    fn the_rate_limits_hold(spec in specs(), steps in steps()) {
        run(&spec, &steps, |before, observation, verdict, _| {
            let ready = observation.ready.as_f64().max(1.0);
            // What may lie outside: what was held or wanted before, and the activation scale.
            let most = PodCount::truncated_from((ready * spec.max_scale_up_rate).ceil())
                .max(spec.activation_scale)
                .max(observation.wanted)
                .max(before.panic.clone().hold(PodCount::ZERO))
                .max(before.peaks.as_ref().map_or(PodCount::ZERO, |peaks| peaks.with(PodCount::ZERO, Timestamp::ZERO)))
                .max(before.desired);
            assert!(verdict.desired <= most, "{verdict:?}, at most {most}");
            let least = PodCount::floor_from(ready / spec.max_scale_down_rate);
            let heard = !observation.averages.is_open();
            if spec.reachable && heard {
                assert!(verdict.desired >= least, "{verdict:?}, at least {least}");
            }
        });
    }

    #[test]
    fn reasons_link_nothing_to_the_answer(spec in specs(), steps in steps()) {
        run(&spec, &steps, |_, _, verdict, _| {
            assert_linked(verdict);
            assert!(verdict.reasons.iter().all(|reason| !reason.text.to_string().is_empty()));
            assert!(verdict.desired <= PodCount::MAX);
        });
    }

    #[test]
    fn between_ticks_the_count_only_rises(spec in specs(), steps in steps()) {
        run(&spec, &steps, |before, observation, verdict, _| {
            if observation.present_count.is_some() {
                assert!(verdict.desired >= before.desired, "{verdict:?}");
            }
        });
    }

    #[test]
    fn with_silent_pods_the_count_leaves_the_present_only_if_both_answers_do(spec in specs(), steps in steps()) {
        let spec = ScalingSpec { scale_down_delay: Duration::ZERO, ..spec };
        run(&spec, &steps, |before, observation, verdict, now| {
            if observation.present_count.is_some() || !observation.averages.is_open() {
                return;
            }
            let answer = |stable, panic| {
                let averages = Averages::complete(stable, panic);
                before.clone().decide(&spec, &Observation { averages, ..*observation }, now).desired
            };
            let averages = observation.averages;
            let (low, high) = (answer(averages.stable, averages.panic), answer(averages.stable_at_most, averages.panic_at_most));
            let expected = if low == high { low } else { observation.wanted.clamp(low.min(high), low.max(high)) };
            assert_eq!(verdict.desired, expected, "{low} … {high}, {observation:?}");
        });
    }

    #[test]
    fn the_same_history_gives_the_same_answers(spec in specs(), steps in steps()) {
        let mut first = Vec::new();
        run(&spec, &steps, |_, _, verdict, _| first.push(verdict.clone()));
        let mut second = Vec::new();
        run(&spec, &steps, |_, _, verdict, _| second.push(verdict.clone()));
        prop_assert_eq!(first, second);
    }

    #[test]
    fn more_load_never_asks_for_fewer_pods(spec in specs(), step in steps(), more in 0.0..100.0_f64) {
        // From the same state; the panic window's load decides nothing by itself outside panic.
        run(&spec, &step, |before, observation, verdict, now| {
            let averages = observation.averages;
            let heavier = Averages { stable: averages.stable + more, stable_at_most: averages.stable_at_most + more, ..averages };
            let heavier = before.clone().decide(&spec, &Observation { averages: heavier, ..*observation }, now);
            assert!(heavier.desired >= verdict.desired, "{verdict:?} {heavier:?}");
        });
    }
}
