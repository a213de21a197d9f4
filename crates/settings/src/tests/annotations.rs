//! Vectors A1–A36: which annotations are accepted.

use super::super::{Aggregation, Class, ClusterConfig, Metric, RevisionSettings, misplaced_annotations};
use super::{annotated, cluster, map};
use vocabulary::PodCount;

type Pairs = &'static [(&'static str, &'static str)];

const KPA: &str = "kpa.autoscaling.knative.dev";
const HPA: &str = "hpa.autoscaling.knative.dev";

/// Vectors that are accepted: id, ConfigMap, annotations.
const ACCEPTED: &[(&str, Pairs, Pairs)] = &[
    ("A1", &[], &[]),
    ("A3", &[], &[("class", "some.other.domain")]),
    ("A4 min 0", &[], &[("min-scale", "0")]),
    ("A4 max 0", &[], &[("max-scale", "0")]),
    ("A4 min 0 max 0", &[], &[("min-scale", "0"), ("max-scale", "0")]),
    ("A4 min 5", &[], &[("min-scale", "5")]),
    ("A4 max 2", &[], &[("max-scale", "2")]),
    ("A11", &[("max-scale-limit", "10"), ("max-scale", "9")], &[]),
    ("A12", &[("max-scale-limit", "10"), ("max-scale", "9")], &[("max-scale", "9")]),
    ("A13", &[], &[("min-scale", "1"), ("activation-scale", "2"), ("max-scale", "3")]),
    ("A18 class", &[], &[("class", "of-keys"), ("metric-aggregation-algorithm", "random")]),
    ("A20 210", &[], &[("panic-threshold-percentage", "210")]),
    ("A21 11", &[], &[("target", "11")]),
    ("A22 -1", &[], &[("target-burst-capacity", "-1")]),
    ("A22 0", &[], &[("target-burst-capacity", "0")]),
    ("A22 19870709", &[], &[("target-burst-capacity", "19870709")]),
    ("A24 7s", &[], &[("window", "7s")]),
    ("A25 0", &[], &[("scale-to-zero-pod-retention-period", "0")]),
    ("A25 21m31s", &[], &[("scale-to-zero-pod-retention-period", "21m31s")]),
    ("A26 0", &[], &[("scale-down-delay", "0")]),
    ("A26 21m31s", &[], &[("scale-down-delay", "21m31s")]),
    ("A28", &[("pod-autoscaler-class", HPA)], &[("metric", "cpu")]),
    ("A30", &[], &[("class", "other"), ("metric", "rps")]),
    ("A31 allowed", &[("allow-zero-initial-scale", "true")], &[("initial-scale", "0")]),
    ("A32 2", &[], &[("initial-scale", "2")]),
    (
        "A33",
        &[],
        &[
            ("panic-threshold-percentage", "125"),
            ("panic-window-percentage", "75"),
            ("min-scale", "5"),
            ("max-scale", "8"),
            ("window", "1984s"),
        ],
    ),
    ("A36 +5", &[], &[("min-scale", "+5")]),
];

/// Vectors that are refused: id, ConfigMap, annotations, and which of them a problem must name.
const REFUSED: &[(&str, Pairs, Pairs, &[&str])] = &[
    ("A2", &[], &[("class", "unsupported.knative.dev")], &["class"]),
    ("A5", &[], &[("min-scale", "-1")], &["min-scale"]),
    ("A6", &[], &[("max-scale", "2147483648")], &["max-scale"]),
    ("A7", &[], &[("min-scale", "foo"), ("max-scale", "bar")], &["max-scale", "min-scale"]),
    ("A8", &[], &[("min-scale", "5"), ("max-scale", "2")], &["max-scale"]),
    ("A9", &[("max-scale-limit", "10"), ("max-scale", "1")], &[("max-scale", "11")], &["max-scale"]),
    ("A10", &[("max-scale-limit", "10"), ("max-scale", "1")], &[("max-scale", "0")], &["max-scale"]),
    ("A14", &[], &[("min-scale", "3"), ("activation-scale", "2")], &["activation-scale"]),
    ("A15", &[], &[("max-scale", "1"), ("activation-scale", "2")], &["activation-scale"]),
    ("A16", &[], &[("activation-scale", "1")], &["activation-scale"]),
    (
        "A17",
        &[],
        &[("class", KPA), ("metric-aggregation-algorithm", "random")],
        &["metric-aggregation-algorithm"],
    ),
    (
        "A18 without class, replaced by D7",
        &[],
        &[("metric-aggregation-algorithm", "random")],
        &["metric-aggregation-algorithm"],
    ),
    ("A19 -1", &[], &[("panic-window-percentage", "-1")], &["panic-window-percentage"]),
    ("A19 202", &[], &[("panic-window-percentage", "202")], &["panic-window-percentage"]),
    ("A19 fifty", &[], &[("panic-window-percentage", "fifty")], &["panic-window-percentage"]),
    ("A20 109", &[], &[("panic-threshold-percentage", "109")], &["panic-threshold-percentage"]),
    ("A20 10009", &[], &[("panic-threshold-percentage", "10009")], &["panic-threshold-percentage"]),
    ("A21 0", &[], &[("target", "0")], &["target"]),
    ("A21 -11", &[], &[("target", "-11")], &["target"]),
    ("A21 100}", &[], &[("target", "100}")], &["target"]),
    ("A22 -11", &[], &[("target-burst-capacity", "-11")], &["target-burst-capacity"]),
    ("A22 x", &[], &[("target-burst-capacity", "x")], &["target-burst-capacity"]),
    ("A23 0", &[], &[("target-utilization-percentage", "0")], &["target-utilization-percentage"]),
    ("A23 101", &[], &[("target-utilization-percentage", "101")], &["target-utilization-percentage"]),
    ("A23 x", &[], &[("target-utilization-percentage", "x")], &["target-utilization-percentage"]),
    ("A24 1s", &[], &[("window", "1s")], &["window"]),
    ("A24 365h", &[], &[("window", "365h")], &["window"]),
    ("A24 1m9s82ms", &[], &[("window", "1m9s82ms")], &["window"]),
    (
        "A25 311m",
        &[],
        &[("scale-to-zero-pod-retention-period", "311m")],
        &["scale-to-zero-pod-retention-period"],
    ),
    (
        "A25 -42s",
        &[],
        &[("scale-to-zero-pod-retention-period", "-42s")],
        &["scale-to-zero-pod-retention-period"],
    ),
    ("A26 311m", &[], &[("scale-down-delay", "311m")], &["scale-down-delay"]),
    ("A26 42.5s", &[], &[("scale-down-delay", "42.5s")], &["scale-down-delay"]),
    ("A26 -42s", &[], &[("scale-down-delay", "-42s")], &["scale-down-delay"]),
    ("A27", &[], &[("metric", "cpu")], &["metric"]),
    ("A29", &[], &[("class", HPA), ("metric", "")], &["metric"]),
    ("A31", &[], &[("initial-scale", "0")], &["initial-scale"]),
    ("A32 -1", &[], &[("initial-scale", "-1")], &["initial-scale"]),
    ("A32 invalid", &[], &[("initial-scale", "invalid")], &["initial-scale"]),
    ("A35 Inf, replaced by D7", &[], &[("target", "Inf")], &["target"]),
    ("A35 Inf, replaced by D7", &[], &[("target-burst-capacity", "+Inf")], &["target-burst-capacity"]),
    ("A36 initial, replaced by D7", &[], &[("initial-scale", "3000000000")], &["initial-scale"]),
    ("A36 0x10", &[], &[("max-scale", "0x10")], &["max-scale"]),
    ("L38, replaced by D7", &[], &[("min-scale", "ham"), ("minScale", "7")], &["min-scale"]),
    (
        "R3 before R4",
        &[],
        &[("min-scale", "5"), ("max-scale", "6"), ("activation-scale", "4")],
        &["activation-scale"],
    ),
    ("unknown", &[], &[("min-scal", "5")], &["min-scal"]),
    ("unknown, ours", &[], &[("ebb.dev/paused-for", "5s")], &["ebb.dev/paused-for"]),
    ("ours, bad", &[], &[("ebb.dev/surge-evaluation", "maybe")], &["ebb.dev/surge-evaluation"]),
    (
        "all at once",
        &[],
        &[("window", "5"), ("min-scale", "x"), ("wimdow", "6s"), ("target", "0")],
        &["min-scale", "target", "wimdow", "window"],
    ),
];

#[test]
fn annotations_that_knative_accepts_are_accepted() {
    for (id, config, annotations) in ACCEPTED {
        let result = annotated(annotations, &cluster(config));
        assert!(result.is_ok(), "{id}: {result:?}");
    }
}

#[test]
fn a_refusal_names_each_annotation_at_fault() {
    for (id, config, annotations, keys) in REFUSED {
        let problems = annotated(annotations, &cluster(config)).expect_err(id);
        let mut named: Vec<&str> = problems
            .iter()
            .map(|problem| problem.key.strip_prefix("autoscaling.knative.dev/").unwrap_or(&problem.key))
            .collect();
        named.sort_unstable();
        assert_eq!(&named, keys, "{id}: {problems:?}");
    }
}

#[test]
fn a35_nan_is_refused_in_every_number() {
    for key in [
        "target",
        "target-utilization-percentage",
        "panic-window-percentage",
        "panic-threshold-percentage",
        "target-burst-capacity",
    ] {
        for value in ["NaN", "nan", "-Inf", "Infinity"] {
            let result = annotated(&[(key, value)], &ClusterConfig::default());
            assert!(result.is_err(), "{key} {value}");
        }
    }
}

#[test]
fn a34_annotations_on_the_service_itself_are_refused() {
    let written = map(&[
        ("autoscaling.knative.dev/min-scale", "1"),
        ("ebb.dev/routing-dwell", "1s"),
        ("serving.knative.dev/creator", "me"),
    ]);
    let problems = misplaced_annotations(&written);
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["autoscaling.knative.dev/min-scale", "ebb.dev/routing-dwell"]);
    assert!(problems[0].message.contains("spec.template.metadata.annotations"), "{}", problems[0]);
}

#[test]
fn the_present_spelling_wins_and_the_old_one_still_counts() {
    let config = ClusterConfig::default();
    let read = |pairs| annotated(pairs, &config).expect("valid");
    let old = read(&[("minScale", "7"), ("metricAggregationAlgorithm", "weightedExponential")]);
    assert_eq!(old.value.min_scale.map(u32_of), Some(7), "L39");
    assert_eq!(old.value.aggregation, Some(Aggregation::WeightedExponential));
    assert_eq!(old.warnings, []);
    let both = read(&[("minScale", "7"), ("min-scale", "2")]);
    assert_eq!(both.value.min_scale.map(u32_of), Some(2));
    assert_eq!(both.warnings[0].key, "autoscaling.knative.dev/minScale");
    // The old spelling is not looked at, however wrong it is.
    assert!(annotated(&[("minScale", "ham"), ("min-scale", "2")], &config).is_ok());
}

#[test]
fn an_old_spelling_is_named_as_it_was_written() {
    let config = ClusterConfig::default();
    let problems = annotated(&[("maxScale", "2"), ("minScale", "5")], &config).expect_err("R1");
    assert_eq!(problems[0].key, "autoscaling.knative.dev/maxScale");
}

#[test]
fn bounds_at_odds_between_levels_are_accepted_with_a_warning() {
    let config = cluster(&[("max-scale", "3")]);
    for annotations in [[("min-scale", "5")], [("initial-scale", "4")]] {
        let checked = annotated(&annotations, &config).expect("Knative accepts it");
        assert_eq!(checked.warnings.len(), 1, "{:?}", checked.warnings);
        assert!(checked.warnings[0].key.ends_with(annotations[0].0));
    }
    assert_eq!(annotated(&[("min-scale", "3")], &config).expect("fits").warnings, []);
    // Nothing to say to a revision that says nothing itself.
    let config = cluster(&[("max-scale", "3"), ("initial-scale", "4")]);
    assert_eq!(annotated(&[], &config).expect("empty").warnings, []);
}

#[test]
fn a_misspelt_prefix_is_worth_a_word() {
    let config = ClusterConfig::default();
    let checked =
        annotated(&[("autoscaling.knative.de/minScale", "5")], &config).expect("not ours to refuse");
    assert!(checked.warnings[0].message.contains("autoscaling.knative.dev/min-scale"));
}

#[test]
fn only_classes_of_ours_run_here() {
    let config = ClusterConfig::default();
    let hpa_by_default = cluster(&[("pod-autoscaler-class", HPA)]);
    let settings = |pairs, config| annotated(pairs, config).expect("written correctly").value;
    assert_eq!(settings(&[], &config).require_class_of_ours(&config), Ok(()));
    assert_eq!(settings(&[("class", KPA)], &hpa_by_default).require_class_of_ours(&hpa_by_default), Ok(()));
    assert_eq!(settings(&[("class", HPA)], &config).require_class_of_ours(&config), Ok(()));
    assert_eq!(settings(&[], &hpa_by_default).require_class_of_ours(&hpa_by_default), Ok(()));
    let other = settings(&[("class", "mine")], &config);
    assert_eq!(other.effective_class(&config), &Class::Other("mine".to_owned()));
    let problem = other.require_class_of_ours(&config).expect_err("not here");
    assert_eq!(
        problem.message,
        "annotation autoscaling.knative.dev/class is \"mine\", which nothing here runs; write \
         \"kpa.autoscaling.knative.dev\" or \"hpa.autoscaling.knative.dev\""
    );
    let other_by_default = cluster(&[("pod-autoscaler-class", "mine")]);
    let problem =
        settings(&[], &other_by_default).require_class_of_ours(&other_by_default).expect_err("not here");
    assert_eq!(problem.key, "pod-autoscaler-class");
    let unknown = ClusterConfig::parse(&map(&[("pod-autoscaler-class", "mine.knative.dev")]));
    assert_eq!(unknown.expect_err("no class of Knative's")[0].key, "pod-autoscaler-class");
}

#[test]
fn annotations_of_class_hpa_are_refused_under_other_classes() {
    let config = ClusterConfig::default();
    for (key, value) in [
        ("ebb.dev/hpa", "maxReplicas: 3"),
        ("ebb.dev/hpa-sync-period", "5s"),
        ("ebb.dev/stable-window", "6s"),
    ] {
        let problems = annotated(&[("class", KPA), (key, value)], &config).expect_err("for class hpa");
        let message = format!(
            "annotation {key} means something for class hpa.autoscaling.knative.dev only; remove it, or write \
             annotation autoscaling.knative.dev/class: \"hpa.autoscaling.knative.dev\""
        );
        assert_eq!(problems.iter().map(|problem| &problem.message).collect::<Vec<_>>(), [&message]);
        annotated(&[("class", HPA), (key, value)], &config).expect("for class hpa");
    }
    annotated(&[("ebb.dev/hpa", "maxReplicas: 3")], &config).expect("a document means class hpa");
    let problems =
        annotated(&[("class", HPA), ("ebb.dev/hpa-sync-period", "500ms")], &config).expect_err("short");
    assert!(problems[0].message.ends_with("is out of range; write a duration from 1s to 1h"), "{problems:?}");
}

#[test]
fn a_document_leaves_no_room_for_annotations_that_say_the_same() {
    let pairs = [("ebb.dev/hpa", "maxReplicas: 3"), ("min-scale", "1"), ("window", "60s")];
    let problems = annotated(&pairs, &ClusterConfig::default()).expect_err("said twice");
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "annotation autoscaling.knative.dev/min-scale is \"1\", which annotation ebb.dev/hpa says too \
             (minReplicas); remove one of them",
            "annotation autoscaling.knative.dev/window is \"60s\", which annotation ebb.dev/hpa says too (behavior); \
             remove one of them",
        ]
    );
}

/// The document's bounds, its first own metric and the window of own metrics are what the rules around it go
/// by.
#[test]
fn settings_of_class_hpa_are_the_documents() {
    let config = ClusterConfig::default();
    let pairs = [
        ("class", HPA),
        ("metric", "concurrency"),
        ("target", "10"),
        ("max-scale", "7"),
        ("window", "90s"),
        ("ebb.dev/stable-window", "12s"),
        ("ebb.dev/hpa-sync-period", "3s"),
    ];
    let seconds = std::time::Duration::from_secs;
    let spec = annotated(&pairs, &config).expect("valid").value.resolve(&config, 0, seconds(600));
    assert_eq!((spec.min_scale, spec.max_scale), (PodCount::ZERO, Some(PodCount::new(7))));
    assert_eq!((spec.stable_window, spec.panic_window), (seconds(12), seconds(1)));
    assert_eq!((spec.target_per_pod, spec.total_per_pod), (10.0, 10.0), "no utilisation factor");
    let hpa = spec.hpa.expect("class hpa");
    assert_eq!(hpa.sync_period, seconds(3));
    let window = hpa.spec.behavior.as_ref().expect("a window").scale_down.stabilization_window;
    assert_eq!(window, Some(seconds(90)));
    let cpu = annotated(&[("class", HPA), ("min-scale", "0")], &config).expect("valid").value;
    let spec = cpu.resolve(&config, 0, seconds(600));
    assert_eq!((spec.min_scale, spec.max_scale, spec.surge_evaluation), (PodCount::ONE, None, false));
}

#[test]
fn metric_and_switches_are_read() {
    let pairs = [
        ("metric", "rps"),
        ("ebb.dev/surge-evaluation", "false"),
        ("ebb.dev/idle-first-scale-down", "F"),
        ("ebb.dev/in-flight-holds-pods", "0"),
        ("ebb.dev/forget-connections", "true"),
        ("ebb.dev/routing-dwell", "1500ms"),
        ("ebb.dev/drain-limit", "0s"),
    ];
    let settings = annotated(&pairs, &ClusterConfig::default()).expect("valid").value;
    let expected = RevisionSettings {
        metric: Some(Metric::Rps),
        metric_name: Some("rps".into()),
        surge_evaluation: Some(false),
        idle_first_scale_down: Some(false),
        in_flight_holds_pods: Some(false),
        forget_connections: Some(true),
        routing_dwell: Some(std::time::Duration::from_millis(1500)),
        drain_limit: Some(std::time::Duration::ZERO),
        ..RevisionSettings::default()
    };
    assert_eq!(settings, expected);
}

#[test]
fn the_drain_limit_of_a_revision_wins_over_that_of_all() {
    let config = cluster(&[("drain-limit", "20m")]);
    let limit = |pairs: &[_]| annotated(pairs, &config).expect("valid").value.effective_drain_limit(&config);
    assert_eq!(limit(&[]), std::time::Duration::from_mins(20));
    assert_eq!(limit(&[("ebb.dev/drain-limit", "5s")]), std::time::Duration::from_secs(5));
    assert!(
        annotated(&[("ebb.dev/drain-limit", "1500ms")], &config).is_err(),
        "a platform counts whole seconds"
    );
}

#[test]
fn the_ignored_user_agents_of_a_revision_stand_instead_of_those_of_all() {
    const KEY: &str = "ebb.dev/ignore-user-agents";
    let config = cluster(&[("ignore-user-agents", "Prometheus/")]);
    let agents = |pairs: &[_]| {
        let settings = annotated(pairs, &config).expect("valid").value;
        settings.effective_ignored_user_agents(&config).to_string()
    };
    assert_eq!(agents(&[]), "Prometheus/");
    assert_eq!(agents(&[(KEY, "HAProxy,kube-probe/")]), "HAProxy,kube-probe/");
    assert_eq!(agents(&[(KEY, "")]), "", "every request of this one is measured");
    let problems = annotated(&[(KEY, "a b")], &config).expect_err("no header begins like that");
    assert_eq!(
        problems[0].message,
        "annotation ebb.dev/ignore-user-agents is \"a b\", which has \"a b\"; write 1 to 64 visible ASCII characters for each, such as \"kube-probe/\""
    );
}

#[test]
fn the_head_size_limit_of_a_revision_is_at_most_that_of_all() {
    const KEY: &str = "ebb.dev/head-size-limit";
    let config = cluster(&[("head-size-limit", "64Ki")]);
    let settings = |value| annotated(&[(KEY, value)], &config);
    let effective = |value| {
        let settings = settings(value).expect("valid").value;
        settings.effective_head_size_limit(&config).to_string()
    };
    assert_eq!(effective("64Ki"), "64Ki");
    assert_eq!(effective("8192"), "8Ki");
    let default = annotated(&[], &config).expect("valid").value;
    assert_eq!(default.effective_head_size_limit(&config).to_string(), "64Ki");
    let lowered = cluster(&[("head-size-limit", "16Ki")]);
    let accepted = settings("32Ki").expect("valid").value;
    assert_eq!(accepted.effective_head_size_limit(&lowered).to_string(), "16Ki");
    for (value, message) in [
        (
            "65Ki",
            "annotation ebb.dev/head-size-limit is \"65Ki\", which is above head-size-limit 64Ki of ConfigMap config-autoscaler; write an amount of memory from 8Ki to 64Ki, or raise that key",
        ),
        (
            "8191",
            "annotation ebb.dev/head-size-limit is \"8191\", which is out of range; write an amount of memory from 8Ki to 512Ki, such as \"128Ki\"",
        ),
        (
            "8192500m",
            "annotation ebb.dev/head-size-limit is \"8192500m\", which is out of range; write an amount of memory from 8Ki to 512Ki, such as \"128Ki\"",
        ),
        (
            "large",
            "annotation ebb.dev/head-size-limit is \"large\", which is not a quantity; write a number with or without a suffix, such as \"250m\", \"1.5\" or \"128Mi\" (allowed: an amount of memory from 8Ki to 512Ki, such as \"128Ki\")",
        ),
    ] {
        assert_eq!(settings(value).expect_err(value)[0].message, message);
    }
}

fn u32_of(count: vocabulary::PodCount) -> u32 {
    count.value()
}
