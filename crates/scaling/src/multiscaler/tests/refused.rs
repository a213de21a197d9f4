//! Requests that are refused while an app does nothing but fail: they ask for one pod, and for no more.

use super::*;
use settings::hpa::MetricSpec;
use settings::{Aggregation, Metric};
use vocabulary::MilliValue;

/// Of both classes, under both metrics, and targets as people set them. The least is that of a
/// containerConcurrency of 1 at a utilisation of 70 %.
fn specs() -> Vec<ScalingSpec> {
    [specs_of_class_kpa(), specs_of_class_hpa()].concat()
}

/// Each metric under both of its aggregations.
fn specs_of_class_kpa() -> Vec<ScalingSpec> {
    let mut specs = Vec::new();
    for target_per_pod in [0.7, 1.0, 10.0, 100.0, 200.0] {
        for metric in [Metric::Concurrency, Metric::Rps] {
            for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
                let total_per_pod = target_per_pod / 0.7;
                specs.push(ScalingSpec { metric, aggregation, target_per_pod, total_per_pod, ..spec() });
            }
        }
    }
    specs
}

/// Without metrics of pods: while one of these has no value the count stays, as in Kubernetes.
fn specs_of_class_hpa() -> Vec<ScalingSpec> {
    let targets = [700, 1000, 10_000, 100_000, 200_000].map(MilliValue::new);
    let own = targets.into_iter().flat_map(|target| {
        [Metric::Concurrency, Metric::Rps].map(|metric| MetricSpec::Own { metric, target })
    });
    own.map(|metric| hpa::settings(0, 10, vec![metric])).collect()
}

fn shown(spec: &ScalingSpec, activators: u32) -> String {
    let target = match &spec.hpa {
        None => format!("{:?} {}, {:?}", spec.metric, spec.target_per_pod, spec.aggregation),
        Some(hpa) => format!("{:?}", hpa.spec.metrics),
    };
    format!("{target}, {activators} activators")
}

/// Longer than every wait that there is on the way to zero, in seconds: the longest is that of a revision
/// which never got ready (its activation timeout).
const SETTLED: u32 = 700;

/// Refusals by so many activators from now on keep exactly one pod for a long time; without them it goes.
fn refuse_and_stop(world: &mut World, activators: u32) {
    let shown = shown(&world.spec, activators);
    let began_at = u32::try_from(world.now.whole_secs() - 1000).expect("a short test");
    world.refusing_activators = activators;
    world.run_until(f64::from(began_at + 5));
    for second in began_at + 5..began_at + SETTLED {
        world.run_until(f64::from(second));
        assert_eq!(world.status().wanted, PodCount::ONE, "{shown}, after {second} s");
    }
    world.refusing_activators = 0;
    world.run_until(f64::from(began_at + 2 * SETTLED));
    assert_eq!(world.status().wanted, PodCount::ZERO, "{shown}");
}

#[test]
fn refusals_alone_ask_for_one_pod_until_they_stop_and_then_for_none() {
    for spec in specs() {
        for activators in [1, 3, 16] {
            let mut world = at_zero(spec.clone());
            world.pods(1);
            refuse_and_stop(&mut world, activators);
            let counts: Vec<u32> = world.scale_orders().into_iter().map(|(_, count)| count).collect();
            assert_eq!(counts, [1, 0], "{}", shown(&world.spec, activators));
        }
    }
}

/// Before that it may yet get ready, and the next request would find it.
#[test]
fn a_pod_that_never_got_ready_stays_after_the_last_refusal_until_its_activation_timeout() {
    let mut world = at_zero(spec());
    world.refusing_activators = 1;
    world.pods(1);
    world.run_until(60.0);
    world.refusing_activators = 0;
    let timeout = world.spec.activation_timeout.as_secs_f64();
    world.run_until(timeout);
    assert_eq!(world.status().wanted, PodCount::ONE);
    assert_eq!(world.status().activity, "activating");
    world.run_until(timeout + 10.0);
    assert_eq!(world.status().wanted, PodCount::ZERO);
}

/// A request that waits is a whole one, which one pod with this target is enough for.
fn is_enough_for_a_request(spec: &ScalingSpec) -> bool {
    let Some(hpa) = &spec.hpa else { return spec.target_per_pod >= 1.0 };
    hpa.spec.metrics.iter().all(|metric| {
        let MetricSpec::Own { target, .. } = metric else { return false };
        *target >= MilliValue::new(1000)
    })
}

#[test]
fn a_request_that_waits_until_it_is_refused_asks_for_no_second_pod() {
    for spec in specs().into_iter().filter(is_enough_for_a_request) {
        let mut world = at_zero(spec);
        assert_eq!(counts(&world.present(1, 1)), [1], "{}", shown(&world.spec, 1));
        world.pods(1);
        world.run_until(12.0);
        world.present(0, 0);
        refuse_and_stop(&mut world, 1);
    }
}

#[test]
fn an_app_that_served_before_it_failed_keeps_one_pod_while_requests_are_refused() {
    for spec in specs().into_iter().filter(is_enough_for_a_request) {
        let mut world = serving(spec);
        world.in_activator = 1;
        world.run_until(100.0);
        world.in_activator = 0;
        world.pod_is(PodId(0), PodState::Unready);
        refuse_and_stop(&mut world, 1);
    }
}
