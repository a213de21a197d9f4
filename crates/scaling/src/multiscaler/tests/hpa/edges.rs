//! Where the classes meet, with everything around a decider: ticks, surges, rules around zero, routes.

use proptest::prelude::*;

use super::*;
use settings::Metric;

/// Class hpa with one metric of ours and nothing that waits.
fn own_alone(metric: Metric, max: u32) -> ScalingSpec {
    let target = MilliValue::new(10_000);
    let mut spec = settings(0, max, vec![MetricSpec::Own { metric, target }]);
    let mut hpa = (*spec.hpa.clone().expect("it is class hpa")).clone();
    hpa.sync_period = Duration::from_secs(2);
    hpa.spec.settings.downscale_stabilization = Duration::ZERO;
    spec.hpa = Some(Arc::new(hpa));
    spec
}

/// The same of class kpa.
fn kpa(metric: Metric, max: u32) -> ScalingSpec {
    ScalingSpec {
        metric,
        target_per_pod: 10.0,
        total_per_pod: 10.0,
        max_scale: Some(PodCount::new(max)),
        ..spec()
    }
}

/// So many requests for so many seconds; of a surge the activator says so at once.
#[derive(Clone, Copy, Debug)]
struct RequestWave {
    tenths: u32,
    requests: u32,
    is_surge: bool,
}

fn waves() -> impl Strategy<Value = Vec<RequestWave>> {
    let requests = prop_oneof![Just(0_u32), 0_u32..30, 0_u32..300];
    let wave = (1_u32..400, requests, any::<bool>()).prop_map(|(tenths, requests, is_surge)| RequestWave {
        tenths,
        requests,
        is_surge,
    });
    prop::collection::vec(wave, 1..8)
}

/// What is ordered while pods come as soon as they are asked for.
fn orders(spec: ScalingSpec, start: u32, waves: &[RequestWave]) -> Vec<(f64, u32)> {
    let mut world = World::new(spec);
    world.create(start);
    world.activator_starts();
    world.acknowledged(true);
    // Until the first sync class hpa has said nothing, and looks at each word of an activator.
    let mut until = 2.5;
    world.ready(start);
    world.run_until(until);
    for wave in waves {
        if wave.is_surge {
            world.present(wave.requests, wave.requests / 2);
        } else {
            (world.in_activator, world.waiting) = (wave.requests, 0);
        }
        let end = until + f64::from(wave.tenths) / 10.0;
        while until < end {
            world.ready(world.status().wanted.value());
            if world.status().routing == Routing::ThroughActivator && !world.is_acknowledged {
                world.acknowledged(true);
            }
            until = end.min(until + 0.5);
            world.run_until(until);
        }
    }
    world.scale_orders()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The second half of point 12, with looks off the tick and everything that follows an answer.
    #[test]
    fn own_metrics_alone_give_the_orders_of_class_kpa(
        waves in waves(), start in 0_u32..8, max in 8_u32..60, is_rps in any::<bool>(),
    ) {
        let metric = if is_rps { Metric::Rps } else { Metric::Concurrency };
        let (hpa, kpa) = (own_alone(metric, max), kpa(metric, max));
        prop_assert_eq!(orders(hpa, start, &waves), orders(kpa, start, &waves));
    }
}

/// Time passes in which neither CPU nor the queue says that a pod is needed.
fn rest(world: &mut World) {
    world.acknowledged(true);
    world.busy(15, 0, 0);
    if let Some(&round) = world.asked().last() {
        world.answer(round, 0);
    }
}

/// Neither a queue nor CPU sees a request that lasts.
#[test]
fn a_stream_keeps_the_last_pod_under_metrics_that_see_no_requests() {
    let rps = MetricSpec::Own { metric: Metric::Rps, target: MilliValue::new(10_000) };
    for metrics in [vec![queue()], vec![queue(), cpu()], vec![rps, cpu()]] {
        let mut world = World::new(settings(0, 10, metrics.clone()));
        world.create(3);
        world.activator_starts();
        world.streams.insert(PodId(0), 1);
        (0..20).for_each(|_| rest(&mut world));
        assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(1), "{metrics:?}");
        let why = world.status().why_not_zero.map(|why| why.to_string()).unwrap_or_default();
        assert!(why.starts_with("1 request in flight for "), "{metrics:?}: {why}");
        world.streams.clear();
        (0..10).for_each(|_| rest(&mut world));
        assert_eq!(world.status().wanted, PodCount::ZERO, "{metrics:?}");
    }
}

#[test]
fn metrics_that_were_changed_are_told_of_until_their_first_sync() {
    let is_told = |world: &World| {
        let why = world.status().why_not_zero.map(|why| why.to_string());
        let reasons = world.multiscaler.decisions(REVISION).flat_map(|decision| &decision.reasons);
        let mut texts = reasons.map(|reason| reason.text.to_string()).chain(why);
        texts.any(|text| text.starts_with("its metrics were changed: the count stays until their first sync"))
    };
    let mut world = World::new(settings(0, 10, vec![queue()]));
    world.create(3);
    world.activator_starts();
    world.busy(16, 500, 0);
    let round = *world.asked().last().expect("a sync has asked for the queue");
    world.answer(round, 25);
    assert_eq!((world.status().wanted, is_told(&world)), (PodCount::new(3), false));
    world.edit(|spec| *spec = settings(0, 10, vec![queue(), cpu()]));
    world.busy(2, 500, 0);
    assert_eq!((world.status().wanted, is_told(&world)), (PodCount::new(3), true));
}

#[test]
fn connections_from_before_an_adoption_hold_the_count_of_any_document() {
    let says = |world: &mut World, count: u32| {
        let tally = vocabulary::ConnectionTally { count, ..Default::default() };
        let connections = vocabulary::AdoptedConnections::Open(tally);
        world.handle(Event::AdoptedConnectionsReported { pod: PodId(2), connections });
    };
    for metrics in [vec![queue()], vec![queue(), cpu()]] {
        let mut world = World::new(settings(0, 10, metrics.clone()));
        world.create(3);
        world.activator_starts();
        world.ready(3);
        says(&mut world, 4);
        (0..20).for_each(|_| rest(&mut world));
        assert_eq!(world.scale_orders(), [], "{metrics:?}");
        let why = world.status().why_not_zero.map(|why| why.to_string()).unwrap_or_default();
        assert!(
            why.starts_with("the count stays at 3: 4 connections from before the adoption"),
            "{metrics:?}: {why}"
        );
        says(&mut world, 0);
        (0..10).for_each(|_| rest(&mut world));
        assert_eq!(world.status().wanted, PodCount::ZERO, "{metrics:?}");
    }
}

/// Something that happens to a workload of class hpa.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// So many seconds pass, in each of which each pod uses so much of a core and holds so many requests.
    Busy { seconds: u32, milli_cores: i64, in_each: u32 },
    /// The queue is asked, and says this, or nothing.
    Answer(Option<i64>),
    /// The activator holds this much, and says so.
    Present(u32),
    /// Another client writes a count.
    Written(u32),
    /// The least count of the document is another.
    Least(u32),
    /// The links of all pods break.
    LinksBreak,
}

fn turn() -> impl Strategy<Value = Turn> {
    let loads = (1_u32..20, prop_oneof![Just(0_i64), 0_i64..1500], prop_oneof![Just(0_u32), 0_u32..30]);
    prop_oneof![
        6 => loads.prop_map(|(seconds, milli_cores, in_each)| Turn::Busy { seconds, milli_cores, in_each }),
        4 => prop::option::of(0_i64..100).prop_map(Turn::Answer),
        1 => (0_u32..60).prop_map(Turn::Present),
        1 => (0_u32..12).prop_map(Turn::Written),
        1 => (0_u32..4).prop_map(Turn::Least),
        1 => Just(Turn::LinksBreak),
    ]
}

fn take(world: &mut World, turn: Turn) {
    match turn {
        Turn::Busy { seconds, milli_cores, in_each } => world.busy(seconds, milli_cores, in_each),
        Turn::Answer(answer) => {
            world.for_seconds(15);
            if let (Some(&round), Some(backlog)) = (world.asked().last(), answer) {
                world.answer(round, backlog);
            }
        }
        Turn::Present(count) => drop(world.present(count, count / 2)),
        Turn::Written(count) => drop(world.create(count)),
        Turn::Least(count) => drop(world.edit(|spec| {
            let mut hpa = (*spec.hpa.clone().expect("it is class hpa")).clone();
            hpa.spec.min = PodCount::new(count);
            (spec.min_scale, spec.hpa) = (PodCount::new(count), Some(Arc::new(hpa)));
        })),
        Turn::LinksBreak => {
            for pod in std::mem::take(&mut world.linked) {
                world.handle(Event::LinkLost { reporter: Reporter::Pod(pod) });
            }
        }
    }
    world.acknowledged(true);
}

/// Each reason begins where the one before ended, and the last ends at the count that is asked for.
fn check_chain(decision: &Decision) {
    for pair in decision.reasons.windows(2) {
        assert_eq!(pair[0].after, pair[1].before, "{:#?}", decision.reasons);
    }
    if let (Some(wanted), Some(last)) = (decision.wanted, decision.reasons.last()) {
        assert_eq!(last.after, Some(wanted), "{:#?}", decision.reasons);
    }
}

#[test]
fn reasons_go_on_after_a_metric_has_failed() {
    let mut world = World::new(settings(1, 10, vec![queue()]));
    world.create(3);
    world.activator_starts();
    // No answer comes within its time.
    world.busy(30, 0, 0);
    let failed = world.multiscaler.decisions(REVISION).find(|decision| decision.trigger == Trigger::Sync);
    let failed = failed.expect("the sync ended without an answer");
    check_chain(failed);
    assert_eq!((failed.desired, failed.wanted), (Some(PodCount::new(3)), Some(PodCount::new(3))));
    let last = failed.reasons.last().expect("it says why");
    assert_eq!((last.stage, last.after), (Stage::MetricFailure, Some(PodCount::new(3))), "{last:?}");
    world.edit(|spec| {
        let mut hpa = (*spec.hpa.clone().expect("it is class hpa")).clone();
        hpa.spec.min = PodCount::new(5);
        (spec.min_scale, spec.hpa) = (PodCount::new(5), Some(Arc::new(hpa)));
    });
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(5));
    world.multiscaler.decisions(REVISION).for_each(check_chain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn reasons_link_the_first_number_to_the_last_with_any_failure(
        which in 0_usize..4, start in 0_u32..6, turns in prop::collection::vec(turn(), 1..12),
    ) {
        let metrics = [vec![queue()], vec![queue(), cpu()], vec![queue(), concurrency()], vec![cpu(), concurrency()]];
        let mut world = World::new(settings(u32::from(which < 2), 10, metrics[which].clone()));
        world.create(start);
        world.activator_starts();
        for turn in turns {
            take(&mut world, turn);
            world.multiscaler.decisions(REVISION).for_each(check_chain);
        }
    }
}
