//! Where the classes meet, with everything around a decider: ticks, surges, rules around zero, routes.

use proptest::prelude::*;

use super::*;
use crate::Metric;

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
    fn own_metrics_alone_order_what_class_kpa_orders(
        waves in waves(), start in 0_u32..8, max in 8_u32..60, is_rps in any::<bool>(),
    ) {
        let metric = if is_rps { Metric::Rps } else { Metric::Concurrency };
        let (hpa, kpa) = (own_alone(metric, max), kpa(metric, max));
        prop_assert_eq!(orders(hpa, start, &waves), orders(kpa, start, &waves));
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
        let pass = |world: &mut World| {
            world.acknowledged(true);
            world.busy(15, 0, 0);
            if let Some(&round) = world.asked().last() {
                world.answer(round, 0);
            }
        };
        world.streams.insert(PodId(0), 1);
        (0..20).for_each(|_| pass(&mut world));
        assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(1), "{metrics:?}");
        let why = world.status().why_not_zero.map(|why| why.to_string()).unwrap_or_default();
        assert!(why.starts_with("1 request in flight for "), "{metrics:?}: {why}");
        world.streams.clear();
        (0..10).for_each(|_| pass(&mut world));
        assert_eq!(world.status().wanted, PodCount::ZERO, "{metrics:?}");
    }
}
