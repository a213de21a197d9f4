//! A request in flight keeps one pod, whatever is measured, and no more than one.

use super::*;
use settings::Metric;

fn rps(burst_capacity: f64) -> ScalingSpec {
    ScalingSpec { metric: Metric::Rps, target_per_pod: 140.0, ..with_burst_capacity(burst_capacity) }
}

fn why_not_zero(world: &World) -> String {
    world.status().why_not_zero.map(|why| why.to_string()).unwrap_or_default()
}

#[test]
fn a_stream_keeps_its_pod_under_metric_rps_until_it_ends() {
    for path in ["direct", "through the activator"] {
        let mut world = serving(rps(0.0));
        if path == "direct" {
            world.streams.insert(PodId(0), 1);
        } else {
            world.streams_in_activator = 1;
        }
        world.run_until(1000.5);
        assert_eq!(world.scale_orders(), [], "{path}");
        assert_eq!(world.status().desired, Some(PodCount::ZERO), "{path}: a stream is no load");
        let why = why_not_zero(&world);
        assert!(why.starts_with("1 request in flight for 16m40s: one pod stays"), "{path}: {why}");
        let decision = last_decision(&world);
        assert_eq!(decision.reasons.last().map(|last| last.after), Some(Some(PodCount::ONE)), "{path}");
        world.streams.clear();
        world.streams_in_activator = 0;
        world.run_until(1040.0);
        world.acknowledged(true);
        world.run_until(1100.0);
        assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0), "{path}");
    }
}

#[test]
fn without_the_switch_a_stream_is_nothing_under_metric_rps() {
    let mut world = serving(ScalingSpec { in_flight_holds_pods: false, ..rps(211.0) });
    world.streams.insert(PodId(0), 1);
    world.run_until(100.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0));
}

/// Eight pods fall to what the metric says, a step at a time, and not below one.
#[test]
fn eight_pods_with_a_stream_each_go_to_one_under_every_metric() {
    for spec in [rps(211.0), ScalingSpec { target_per_pod: 100.0, ..spec() }] {
        let metric = spec.metric;
        let mut world = World::new(spec);
        world.create(8);
        world.activator_starts();
        world.acknowledged(true);
        world.ready(8);
        world.streams = (0..8).map(|pod| (PodId(pod), 1)).collect();
        for second in 1..200 {
            world.run_until(f64::from(second));
            let wanted = world.status().wanted.value();
            assert!(wanted >= 1, "{metric:?} at {second}");
            // A pod that ends takes its stream along; the client opens another.
            world.ready(wanted);
            world.streams = (0..wanted).map(|pod| (PodId(pod), 8 / wanted)).collect();
        }
        assert_eq!(world.status().wanted, PodCount::ONE, "{metric:?}");
    }
}

#[test]
fn a_request_that_waits_through_a_slow_start_is_not_given_up() {
    let timeout = Duration::from_secs(30);
    let mut world = at_zero(ScalingSpec { activation_timeout: timeout, ..rps(211.0) });
    world.present(1, 1);
    (world.in_activator, world.streams_in_activator) = (0, 1);
    world.pods(1);
    world.run_until(300.0);
    assert_eq!(world.scale_orders(), [(2.5, 1)]);
    assert_eq!(world.status().activity, "activating");
    world.streams_in_activator = 0;
    world.run_until(310.0);
    assert_eq!(world.scale_orders().last().map(|&(_, count)| count), Some(0), "nobody waits any more");
}

#[test]
fn a_stream_is_found_again_after_a_restart() {
    let mut world = World::new(rps(211.0));
    world.create(1);
    world.activator_starts();
    world.acknowledged(true);
    world.pods(1);
    let mut history: Vec<_> = (940..1000).map(|second| (REVISION, sample(second, 1.0, 0))).collect();
    for (_, sample) in &mut history {
        sample.load.request_rate = vocabulary::RequestRate::ZERO;
    }
    world.linked.insert(PodId(0));
    world.starts(Reporter::Pod(PodId(0)), history);
    world.pod_is(PodId(0), PodState::Ready);
    world.streams.insert(PodId(0), 1);
    world.run_until(2.5);
    assert!(why_not_zero(&world).starts_with("1 request in flight for 1m2s"), "{}", why_not_zero(&world));
    world.run_until(300.0);
    assert_eq!(world.scale_orders(), []);
}
