//! Vectors C1–C16 and D1–D5: the load per pod to aim at, the panic window, and what overrides what.

use std::time::Duration;

use vocabulary::PodCount;

use super::super::{ClusterConfig, RevisionSettings, ScalingSpec};
use super::{annotated, cluster};

type Pairs = &'static [(&'static str, &'static str)];

/// Id, container concurrency, ConfigMap, annotations, target / total. Group C has a target percentage of 100
/// unless it says otherwise.
const TARGETS: &[(&str, u32, Pairs, Pairs, &str)] = &[
    ("C1", 0, &[], &[], "100 / 100"),
    ("C2", 0, &[("container-concurrency-target-percentage", "0.8")], &[], "80 / 100"),
    (
        "C3",
        0,
        &[("container-concurrency-target-percentage", "0.3"), ("container-concurrency-target-default", "2")],
        &[],
        "0.6 / 2",
    ),
    (
        "C4",
        12,
        &[("container-concurrency-target-percentage", "0.8")],
        &[("target-utilization-percentage", "75")],
        "9 / 12",
    ),
    ("C5", 10, &[("container-concurrency-target-percentage", "0.8")], &[], "8 / 10"),
    ("C6", 1, &[("container-concurrency-target-percentage", "0.8")], &[], "0.8 / 1"),
    ("C7", 10, &[], &[], "10 / 10"),
    ("C8", 0, &[], &[("target", "1")], "1 / 1"),
    ("C9", 0, &[("container-concurrency-target-percentage", "0.001")], &[("target", "1")], "0.01 / 1"),
    ("C10", 0, &[("container-concurrency-target-percentage", "0.75")], &[("target", "10")], "7.5 / 10"),
    ("C11", 10, &[], &[("target", "1")], "1 / 1"),
    ("C12", 0, &[], &[("target", "500")], "500 / 500"),
    ("C13", 1, &[], &[("target", "10")], "1 / 1"),
    ("C14", 1, &[], &[("metric", "rps")], "140 / 200"),
    ("C15", 0, &[], &[("metric", "rps"), ("target", "1")], "0.7 / 1"),
    ("C16 u 75", 0, &[], &[("metric", "rps"), ("target-utilization-percentage", "75")], "150 / 200"),
    ("C16 a 300", 0, &[], &[("metric", "rps"), ("target", "300")], "210 / 300"),
];

/// The same with Knative's default of 70 %, worked out in the text of the specification.
const TARGETS_AT_70_PERCENT: &[(&str, u32, Pairs, Pairs, &str)] = &[
    ("no limit", 0, &[], &[], "70 / 100"),
    ("limit 10", 10, &[], &[], "7 / 10"),
    ("limit 1", 1, &[], &[], "0.7 / 1"),
    ("limit 6 rounds down", 6, &[], &[], "4.199999999999999 / 6"),
    ("target 500", 0, &[], &[("target", "500")], "350 / 500"),
    ("target 10, limit 1", 1, &[], &[("target", "10")], "0.7 / 1"),
    ("target 1, limit 10", 10, &[], &[("target", "1")], "0.7 / 1"),
    ("limit 12, utilisation 75", 12, &[], &[("target-utilization-percentage", "75")], "9 / 12"),
    ("rps", 0, &[], &[("metric", "rps")], "140 / 200"),
    ("rps, target 300, limit 1", 1, &[], &[("metric", "rps"), ("target", "300")], "210 / 300"),
];

#[test]
fn target_and_total_are_knatives() {
    for (id, limit, config, annotations, expected) in TARGETS {
        let mut pairs = vec![("container-concurrency-target-percentage", "1")];
        pairs.extend_from_slice(config);
        assert_eq!(target_and_total(*limit, &pairs, annotations), *expected, "{id}");
    }
    for (id, limit, config, annotations, expected) in TARGETS_AT_70_PERCENT {
        assert_eq!(target_and_total(*limit, config, annotations), *expected, "{id}");
    }
}

#[test]
fn the_panic_window_is_a_rounded_share_of_the_stable_one() {
    for (id, window, percentage, seconds) in [
        ("D1", "60s", "10", 6),
        ("D1", "60s", "50", 30),
        ("D1", "60s", "51", 31),
        ("D2", "10s", "10", 1),
        ("D3", "6s", "10", 1),
        ("D4", "25s", "10", 3),
        ("D5", "600s", "10", 60),
        ("15 s", "15s", "10", 2),
        ("1 h", "1h", "10", 360),
        ("never 0", "6s", "1", 1),
    ] {
        let by_annotation =
            spec(&[], &[("window", window), ("panic-window-percentage", percentage)]).panic_window;
        let by_config_map =
            spec(&[("stable-window", window), ("panic-window-percentage", percentage)], &[]).panic_window;
        assert_eq!((by_annotation, by_config_map), (Duration::from_secs(seconds), by_annotation), "{id}");
    }
}

#[test]
fn annotations_override_the_config_map() {
    let config = [
        ("min-scale", "1"),
        ("max-scale", "9"),
        ("scale-down-delay", "10s"),
        ("scale-to-zero-pod-retention-period", "20s"),
        ("panic-threshold-percentage", "300"),
        ("target-burst-capacity", "0"),
        ("routing-dwell", "1s"),
        ("initial-scale", "3"),
    ];
    let from_map = spec(&config, &[]);
    let expected = ScalingSpec {
        min_scale: PodCount::new(1),
        max_scale: Some(PodCount::new(9)),
        scale_down_delay: Duration::from_secs(10),
        pod_retention: Duration::from_secs(20),
        panic_threshold: 3.0,
        target_burst_capacity: vocabulary::BurstCapacity::new(0.0).expect("zero"),
        routing_dwell: Duration::from_secs(1),
        initial_scale: PodCount::new(3),
        ..ScalingSpec::default()
    };
    assert_eq!(from_map, expected);
    let annotations = [
        ("min-scale", "0"),
        ("max-scale", "0"),
        ("scale-down-delay", "0s"),
        ("scale-to-zero-pod-retention-period", "0s"),
        ("panic-threshold-percentage", "200"),
        ("target-burst-capacity", "211"),
        ("ebb.dev/routing-dwell", "30s"),
        ("initial-scale", "1"),
        ("activation-scale", "4"),
    ];
    let expected = ScalingSpec { activation_scale: PodCount::new(4), ..ScalingSpec::default() };
    assert_eq!(spec(&config, &annotations), expected);
}

#[test]
fn an_initial_scale_of_zero_counts_only_while_it_is_allowed() {
    let allowing = cluster(&[("allow-zero-initial-scale", "true")]);
    let settings = annotated(&[("initial-scale", "0")], &allowing).expect("allowed").value;
    let initial = |config| settings.resolve(config, 0, Duration::ZERO).initial_scale;
    assert_eq!(initial(&allowing), PodCount::ZERO);
    assert_eq!(initial(&ClusterConfig::default()), PodCount::ONE);
}

#[test]
fn an_activation_may_take_half_a_minute_beyond_the_progress_deadline() {
    let timeout = |deadline| {
        RevisionSettings::default().resolve(&ClusterConfig::default(), 0, deadline).activation_timeout
    };
    assert_eq!(timeout(Duration::from_secs(5)), Duration::from_secs(35));
    assert_eq!(ScalingSpec::default().activation_timeout, Duration::from_secs(630));
    assert_eq!(timeout(Duration::MAX), Duration::MAX);
}

fn spec(config: &[(&str, &str)], annotations: &[(&str, &str)]) -> ScalingSpec {
    let config = cluster(config);
    let settings = annotated(annotations, &config).expect("the test's annotations are valid").value;
    settings.resolve(&config, 0, Duration::from_mins(10))
}

/// As the vectors write it. The shortest text that reads back as the same number, so equal texts are equal
/// numbers.
fn target_and_total(limit: u32, config: &[(&str, &str)], annotations: &[(&str, &str)]) -> String {
    let config = cluster(config);
    let settings = annotated(annotations, &config).expect("the test's annotations are valid").value;
    let spec = settings.resolve(&config, limit, Duration::from_mins(10));
    format!("{} / {}", spec.target_per_pod, spec.total_per_pod)
}
