//! What must hold whatever happens.

use proptest::prelude::*;

use super::*;
use crate::decision::Mode;
use crate::multiscaler::algorithm::TICK;

/// Something that happens to the world.
#[derive(Clone, Debug)]
enum Happening {
    /// Time passes, with reports at each second.
    Wait(u16),
    /// The activator holds this much, and says so.
    Present(u16),
    /// The activator holds this much, and says so with its next report.
    InActivator(u16),
    /// The first pod holds this much that came to it directly.
    InPod(u16),
    /// No reporter holds a request from now on.
    Idle,
    /// As many pods as were asked for are ready.
    PodsFollow,
    /// The pods' links break; they live on.
    LinksBreak,
    /// All activators have acknowledged, or not.
    Acknowledged(bool),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1_u16..40_000).prop_map(Happening::Wait),
        2 => (0_u16..800).prop_map(Happening::Present),
        2 => (0_u16..800).prop_map(Happening::InActivator),
        4 => Just(Happening::Idle),
        1 => (0_u16..800).prop_map(Happening::InPod),
        3 => Just(Happening::PodsFollow),
        1 => Just(Happening::LinksBreak),
        2 => any::<bool>().prop_map(Happening::Acknowledged),
    ]
}

/// Settings within which much can happen in little time.
fn settings() -> impl Strategy<Value = ScalingSpec> {
    let bounds = (prop_oneof![3 => Just(0_u32), 1 => 1_u32..4], prop::option::of(4_u32..30), 0_u32..3);
    let times = (6_u64..30, 1_u64..20, 0_u64..20, 0_u64..10);
    let burst = prop_oneof![Just(-1.0), Just(0.0), 1.0..300.0];
    (bounds, times, burst, any::<bool>()).prop_map(|(bounds, times, burst, surge_evaluation)| {
        let (min, max, activation) = bounds;
        let (window, grace, retention, dwell) = times;
        ScalingSpec {
            min_scale: PodCount::new(min),
            max_scale: max.map(PodCount::new),
            activation_scale: PodCount::new(activation),
            stable_window: Duration::from_secs(window),
            scale_to_zero_grace_period: Duration::from_secs(grace),
            pod_retention: Duration::from_secs(retention),
            routing_dwell: Duration::from_secs(dwell),
            activation_timeout: Duration::from_secs(60),
            surge_evaluation,
            ..with_burst_capacity(burst)
        }
    })
}

/// A world to which all of that happened, from a present count on; `check` sees it after each.
fn live(
    spec: &ScalingSpec,
    wanted: u32,
    happenings: &[Happening],
    mut check: impl FnMut(&World, usize),
) -> World {
    let mut world = World::new(spec.clone());
    world.create(wanted);
    world.activator_starts();
    world.ready(wanted);
    for happening in happenings {
        let logged = world.log.len();
        match *happening {
            Happening::Wait(milliseconds) => {
                let elapsed = world.now.saturating_since(Timestamp::from_secs(1000));
                world.run_until(elapsed.as_secs_f64() + f64::from(milliseconds) / 1000.0);
            }
            Happening::Present(count) => {
                world.present(count.into(), count.into());
            }
            Happening::InActivator(count) => world.in_activator = count.into(),
            Happening::InPod(count) => {
                world.in_pods.insert(PodId(0), count.into());
            }
            Happening::Idle => {
                world.in_activator = 0;
                world.in_pods.clear();
            }
            Happening::PodsFollow => {
                let wanted = world.status().wanted.value();
                world.ready(wanted);
            }
            Happening::LinksBreak => {
                for pod in std::mem::take(&mut world.linked) {
                    world.handle(Event::LinkLost { reporter: Reporter::Pod(pod) });
                }
            }
            Happening::Acknowledged(acknowledged) => {
                world.acknowledged(acknowledged);
            }
        }
        check(&world, logged);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_same_events_give_the_same_commands(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let first = live(&spec, wanted, &happenings, |_, _| {});
        let second = live(&spec, wanted, &happenings, |_, _| {});
        prop_assert_eq!(first.log, second.log);
    }

    #[test]
    fn orders_keep_the_bounds(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let world = live(&spec, wanted, &happenings, |_, _| {});
        for (at, count) in world.scale_orders() {
            let given_up = count == 0 && spec.min_scale == PodCount::ZERO;
            prop_assert!(given_up || count >= spec.min_scale.value(), "{} at {}", count, at);
            prop_assert!(spec.max_scale.is_none_or(|max| count <= max.value()), "{} at {}", count, at);
        }
    }

    #[test]
    fn each_order_goes_on_from_the_count_of_the_order_before(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let world = live(&spec, wanted, &happenings, |_, _| {});
        let mut count = PodCount::new(wanted);
        for (at, command) in &world.log {
            if let Command::ScaleTo { from, count: next, .. } = command {
                prop_assert_eq!(*from, count, "at {}", at);
                count = *next;
            }
        }
        prop_assert_eq!(world.multiscaler.wanted(REVISION), Some(count));
    }

    #[test]
    fn nothing_is_lowered_in_panic_nor_ended_before_the_path_is_acknowledged(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        // The upper bound may lower a count that was there before, also in panic.
        let spec = ScalingSpec { max_scale: None, ..spec };
        let mut count = PodCount::new(wanted);
        live(&spec, wanted, &happenings, |world, logged| {
            let mut ordered = None;
            for (at, command) in &world.log[logged..] {
                match command {
                    Command::ScaleTo { count: next, .. } => ordered = Some((*at, count, *next)),
                    Command::Publish { decision, .. } => {
                        if let Some((at, before, next)) = ordered.take() {
                            let panicking = matches!(decision.mode, Mode::Panic { .. });
                            assert!(!panicking || next >= before, "{before} to {next} in panic at {at}");
                            let timed_out = decision.reasons.iter().any(|r| r.stage == Stage::ActivationTimeout);
                            assert!(next > PodCount::ZERO || world.is_acknowledged || timed_out, "ended at {at}");
                            count = next;
                        }
                    }
                    Command::SetRouting { .. } | Command::SetActivatorCount { .. } | Command::SetSurgeThreshold { .. } | Command::AskMetrics { .. } | Command::Warn { .. } | Command::ReportConnectionHold { .. } => {}
                }
            }
            assert!(ordered.is_none(), "each new count is published with its decision");
        });
    }

    #[test]
    fn a_revision_with_a_decision_has_a_route(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        live(&spec, wanted, &happenings, |world, _| {
            let decided = world.multiscaler.decisions(REVISION).any(|decision| decision.inputs.is_some());
            assert!(!decided || !world.route_orders().is_empty(), "nobody takes its requests");
        });
    }

    #[test]
    fn a_restart_lowers_nothing_for_one_stable_window(
        spec in settings(),
        wanted in 1_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        let spec = ScalingSpec { max_scale: None, ..spec };
        let world = live(&spec, wanted, &happenings, |_, _| {});
        // What a burst raised since then may fall again, as at any other time.
        for (at, count) in world.scale_orders() {
            if at < spec.stable_window.as_secs_f64() {
                prop_assert!(count >= wanted, "{} to {} at {}", wanted, count, at);
            }
        }
    }

    #[test]
    fn reasons_link_the_first_number_to_the_last(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        live(&spec, wanted, &happenings, |world, _| {
            for decision in world.multiscaler.decisions(REVISION).filter(|decision| decision.inputs.is_some()) {
                let numbers: Vec<_> = decision.reasons.iter().map(|reason| (reason.before, reason.after)).collect();
                for pair in numbers.windows(2) {
                    assert_eq!(pair[0].1, pair[1].0, "{:?}", decision.reasons);
                }
                if let (Some(wanted), Some(last)) = (decision.wanted, numbers.last()) {
                    assert_eq!(last.1, Some(wanted), "{:?}", decision.reasons);
                }
            }
        });
    }

    #[test]
    fn a_deadline_is_always_planned_and_never_missed(
        spec in settings(),
        wanted in 0_u32..12,
        happenings in prop::collection::vec(happening(), 1..40),
    ) {
        live(&spec, wanted, &happenings, |world, _| {
            let deadline = world.multiscaler.next_deadline().expect("a revision always has its next tick");
            assert!(deadline > world.now && deadline <= world.now + TICK, "{deadline}");
        });
    }
}
