//! Vectors B1–B24: which ConfigMaps are accepted, and what they mean.

use std::time::Duration;

use vocabulary::{HeadSizeLimit, INJECTION_ANNOTATIONS, IgnoredUserAgents, MilliValue};

use super::super::keys::{RETIRED_HPA_SWITCHES, annotation, config_map as keys, injection};
use super::super::{
    ClusterConfig, HourlyPrice, QueueProxyResources, RecordPlace, ResourceAmount, ResourcePrices,
    RevisionSettings,
};
use super::{cluster, map};
use crate::hpa::HpaSettings;
use crate::hpa::reading::DOCUMENT_ANNOTATION;
use crate::keys::WAITING_PAGE_ANNOTATION;

type Pairs = &'static [(&'static str, &'static str)];

const ACCEPTED: &[(&str, Pairs)] = &[
    ("B1", &[]),
    ("B7 -1", &[("target-burst-capacity", "-1")]),
    ("B7 0", &[("target-burst-capacity", "0")]),
    ("B8 up 1.001", &[("max-scale-up-rate", "1.001")]),
    ("B8 down 3.0", &[("max-scale-down-rate", "3.0")]),
    ("B9 5m", &[("stable-window", "5m")]),
    ("B10 15m", &[("scale-down-delay", "15m")]),
    ("B11 2m3s", &[("scale-to-zero-pod-retention-period", "2m3s")]),
    ("B12 33s", &[("scale-to-zero-grace-period", "33s")]),
    ("B15 1", &[("activator-capacity", "1")]),
    ("B16 10.11", &[("requests-per-second-target-default", "10.11")]),
    ("B17 allowed", &[("initial-scale", "0"), ("allow-zero-initial-scale", "true")]),
    ("B18 limit 11", &[("max-scale", "10"), ("max-scale-limit", "11")]),
    ("B20 min 4", &[("min-scale", "4")]),
    ("B21 TRUE", &[("enable-scale-to-zero", "TRUE")]),
    ("blanks around a word", &[("pod-autoscaler-class", " kpa.autoscaling.knative.dev\n")]),
];

/// Refused: id, data, and which keys the problems must name.
const REFUSED: &[(&str, Pairs, &[&str])] = &[
    (
        "B5 -42",
        &[("container-concurrency-target-percentage", "-42")],
        &["container-concurrency-target-percentage"],
    ),
    (
        "B5 142.4",
        &[("container-concurrency-target-percentage", "142.4")],
        &["container-concurrency-target-percentage"],
    ),
    (
        "B6",
        &[
            ("container-concurrency-target-percentage", "1"),
            ("container-concurrency-target-default", "0.001"),
        ],
        &["container-concurrency-target-default"],
    ),
    (
        "product below 0.01",
        &[
            ("container-concurrency-target-percentage", "0.5"),
            ("container-concurrency-target-default", "0.015"),
        ],
        &["container-concurrency-target-default"],
    ),
    ("B7 -11", &[("target-burst-capacity", "-11")], &["target-burst-capacity"]),
    ("B8 up 1", &[("max-scale-up-rate", "1")], &["max-scale-up-rate"]),
    ("B8 down 1", &[("max-scale-down-rate", "1")], &["max-scale-down-rate"]),
    ("B8 down -55", &[("max-scale-down-rate", "-55")], &["max-scale-down-rate"]),
    ("B9 5s", &[("stable-window", "5s")], &["stable-window"]),
    ("B9 1s", &[("stable-window", "1s")], &["stable-window"]),
    ("B9 1h1s", &[("stable-window", "1h1s")], &["stable-window"]),
    ("B9 61984ms", &[("stable-window", "61984ms")], &["stable-window"]),
    ("B10 61984ms", &[("scale-down-delay", "61984ms")], &["scale-down-delay"]),
    ("B10 -1m23s", &[("scale-down-delay", "-1m23s")], &["scale-down-delay"]),
    (
        "B11 -4m11s",
        &[("scale-to-zero-pod-retention-period", "-4m11s")],
        &["scale-to-zero-pod-retention-period"],
    ),
    ("B12 0s", &[("scale-to-zero-grace-period", "0s")], &["scale-to-zero-grace-period"]),
    ("B13 0.1", &[("panic-window-percentage", "0.1")], &["panic-window-percentage"]),
    ("B13 110", &[("panic-window-percentage", "110")], &["panic-window-percentage"]),
    ("B14, replaced by D7", &[("panic-threshold-percentage", "1")], &["panic-threshold-percentage"]),
    ("B15 0.95", &[("activator-capacity", "0.95")], &["activator-capacity"]),
    (
        "B16 -5.25",
        &[("requests-per-second-target-default", "-5.25")],
        &["requests-per-second-target-default"],
    ),
    ("B17", &[("initial-scale", "0")], &["initial-scale"]),
    ("B18 limit 9", &[("max-scale", "10"), ("max-scale-limit", "9")], &["max-scale-limit"]),
    ("B18 max 0", &[("max-scale", "0"), ("max-scale-limit", "11")], &["max-scale-limit"]),
    ("limit alone", &[("max-scale-limit", "11")], &["max-scale-limit"]),
    ("B19", &[("max-scale-limit", "-9")], &["max-scale-limit"]),
    ("B20", &[("min-scale", "4"), ("max-scale", "3")], &["min-scale"]),
    ("B21 invalid", &[("allow-zero-initial-scale", "invalid")], &["allow-zero-initial-scale"]),
    ("B23 NaN, replaced by D7", &[("max-scale-up-rate", "NaN")], &["max-scale-up-rate"]),
    ("B23 NaN, replaced by D7", &[("panic-window-percentage", "NaN")], &["panic-window-percentage"]),
    ("B24 min", &[("min-scale", "99999999999")], &["min-scale"]),
    ("B24 delay, replaced by D7", &[("scale-down-delay", "5h")], &["scale-down-delay"]),
    (
        "blanks around a number",
        &[("stable-window", "7s\n"), ("min-scale", " 1 ")],
        &["min-scale", "stable-window"],
    ),
    ("class", &[("pod-autoscaler-class", "kpa.knative.dev")], &["pod-autoscaler-class"]),
    ("unknown", &[("stable-windwo", "60s")], &["stable-windwo"]),
    ("two commas", &[("ignore-user-agents", "kube-probe/,,x")], &["ignore-user-agents"]),
    ("a blank", &[("ignore-user-agents", "Mozilla/5.0 (X11)")], &["ignore-user-agents"]),
    ("7 KiB", &[("head-size-limit", "7Ki")], &["head-size-limit"]),
    ("a head of 1 MiB", &[("head-size-limit", "1Mi")], &["head-size-limit"]),
    ("128 bytes", &[("head-size-limit", "128")], &["head-size-limit"]),
    ("no amount", &[("queue-proxy-cpu-request", "lots")], &["queue-proxy-cpu-request"]),
    ("nothing", &[("queue-proxy-guaranteed-cpu", "0")], &["queue-proxy-guaranteed-cpu"]),
    ("64 bytes", &[("queue-proxy-memory-limit", "64")], &["queue-proxy-memory-limit"]),
    ("a request above its limit", &[("queue-proxy-cpu-request", "2")], &["queue-proxy-cpu-request"]),
    ("a limit below its request", &[("queue-proxy-memory-limit", "16Mi")], &["queue-proxy-memory-limit"]),
    (
        "all at once, and no rule about what is wrong by itself",
        &[
            ("max-scale", "x"),
            ("max-scale-limit", "5"),
            ("min-scale", "-1"),
            ("routing-dwell", "2h"),
            ("drain-limit", "25h"),
        ],
        &["drain-limit", "max-scale", "min-scale", "routing-dwell"],
    ),
];

#[test]
fn config_maps_that_knative_accepts_are_accepted() {
    for (id, data) in ACCEPTED {
        let result = ClusterConfig::parse(&map(data));
        assert!(result.is_ok(), "{id}: {result:?}");
    }
}

#[test]
fn a_refusal_names_each_key_at_fault() {
    for (id, data, keys) in REFUSED {
        let problems = ClusterConfig::parse(&map(data)).expect_err(id);
        let mut named: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        named.sort_unstable();
        assert_eq!(&named, keys, "{id}: {problems:?}");
    }
}

#[test]
fn percentages_and_fractions_mean_the_same() {
    for (id, written, fraction) in [
        ("B2", "55", "0.55"),
        ("B3", "0.71", "0.71"),
        ("B4", "1", "1"),
        ("", "1.5", "0.015"),
        ("", "100", "1"),
    ] {
        let config = cluster(&[("container-concurrency-target-percentage", written)]);
        assert_eq!(config.container_concurrency_target_fraction.to_string(), fraction, "{id} {written}");
    }
}

#[test]
fn b22_historic_keys_warn_and_the_example_of_every_installation_does_not() {
    let data = map(&[("tick-interval", "2s"), ("panic-window", "3s"), ("_example", "stable-window: 5s")]);
    let checked = ClusterConfig::parse(&data).expect("accepted");
    assert_eq!(checked.value, ClusterConfig::default());
    let warned: Vec<&str> = checked.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warned, ["panic-window", "tick-interval"]);
}

fn price(text: &str) -> HourlyPrice {
    HourlyPrice::parse(text).expect("a price")
}

#[test]
fn values_arrive_where_they_belong() {
    let config = cluster(&[
        ("enable-scale-to-zero", "0"),
        ("surge-evaluation", "f"),
        ("idle-first-scale-down", "false"),
        ("in-flight-holds-pods", "false"),
        ("adopted-connections-hold", "90m"),
        ("routing-dwell", "0s"),
        ("drain-limit", "24h"),
        ("ignore-user-agents", "Prometheus/, HAProxy"),
        ("head-size-limit", "64Ki"),
        ("stable-window", "90s"),
        ("queue-proxy-cpu-request", "1500m"),
        ("queue-proxy-cpu-limit", "1.5"),
        ("hpa-sync-period", "20s"),
        ("hpa-tolerance", "0.2"),
        ("hpa-downscale-stabilization", "21s"),
        ("hpa-cpu-initialization-period", "22s"),
        ("hpa-initial-readiness-delay", "23s"),
        ("prometheus-url", "https://prometheus"),
        ("prometheus-bearer-token-file", "/token"),
        ("prometheus-ca-file", "/ca.pem"),
        ("prometheus-namespace-label", "ns"),
        ("price-per-cpu-hour", "0.031 USD"),
        ("price-per-gib-hour", "0.004 USD"),
        ("record-directory", "/var/lib/ebb/record"),
        ("record-size", "1Gi"),
    ]);
    let expected = ClusterConfig {
        stable_window: Duration::from_secs(90),
        enable_scale_to_zero: false,
        surge_evaluation: false,
        idle_first_scale_down: false,
        in_flight_holds_pods: false,
        adopted_connections_hold: Duration::from_mins(90),
        routing_dwell: Duration::ZERO,
        drain_limit: Duration::from_hours(24),
        ignored_user_agents: IgnoredUserAgents::new(["Prometheus/", "HAProxy"]).expect("both are visible"),
        head_size_limit: HeadSizeLimit::new(65_536).expect("in range"),
        queue_proxy: QueueProxyResources {
            cpu_request: ResourceAmount::new("1500m", MilliValue::new(1500)),
            cpu_limit: ResourceAmount::new("1.5", MilliValue::new(1500)),
            ..QueueProxyResources::default()
        },
        hpa_sync_period: Duration::from_secs(20),
        hpa_tolerance: 0.2,
        hpa_downscale_stabilization: Duration::from_secs(21),
        hpa_cpu_initialization_period: Duration::from_secs(22),
        hpa_initial_readiness_delay: Duration::from_secs(23),
        prometheus_url: Some("https://prometheus".to_owned()),
        prometheus_bearer_token_file: Some("/token".to_owned()),
        prometheus_ca_file: Some("/ca.pem".to_owned()),
        prometheus_namespace_label: "ns".to_owned(),
        prices: ResourcePrices { per_cpu: Some(price("0.031 USD")), per_gib: Some(price("0.004 USD")) },
        record: RecordPlace { directory: Some("/var/lib/ebb/record".to_owned()), bytes_max: 1 << 30 },
        ..ClusterConfig::default()
    };
    assert_eq!(config, expected);
    let settings = HpaSettings {
        tolerance: 0.2,
        downscale_stabilization: Duration::from_secs(21),
        cpu_initialization_period: Duration::from_secs(22),
        initial_readiness_delay: Duration::from_secs(23),
    };
    assert_eq!(config.hpa_settings(), settings);
}

#[test]
fn a_retired_switch_of_class_hpa_warns_by_name_and_changes_nothing() {
    for key in RETIRED_HPA_SWITCHES {
        for value in ["true", "false", "nonsense"] {
            let checked = ClusterConfig::parse(&map(&[(key, value)])).expect("it is not refused");
            assert_eq!(checked.value, ClusterConfig::default(), "{key}");
            let [warning] = checked.warnings.try_into().expect("one warning");
            assert_eq!(
                warning.message,
                format!(
                    "key {key} of ConfigMap config-autoscaler is retired and has no effect: class hpa decides as Kubernetes 1.37 does; remove it, for the next version refuses it"
                )
            );
        }
    }
}

#[test]
fn a_hexadecimal_number_warns_by_name_and_leaves_the_default() {
    let checked = ClusterConfig::parse(&map(&[("hpa-tolerance", "0x1p-2")])).expect("it is not refused");
    assert_eq!(checked.value, ClusterConfig::default());
    assert_eq!(
        checked.warnings[0].message,
        "key hpa-tolerance of ConfigMap config-autoscaler is \"0x1p-2\", a hexadecimal number, which is retired and has no effect; write a decimal number, for the next version refuses it"
    );
    let annotations = map(&[("autoscaling.knative.dev/target", "-0X1_0P+4")]);
    let checked =
        RevisionSettings::read(&annotations, &ClusterConfig::default(), None).expect("it is not refused");
    assert_eq!((checked.value.target, checked.warnings.len()), (None, 1));
}

/// The value is wrong for every type of setting, so a key that is not refused is a key without a reader.
#[test]
fn every_known_key_is_read() {
    const WRONG: &str = "wrong,,.knative.dev";
    for key in keys::ALL {
        assert!(ClusterConfig::parse(&map(&[(key.name, WRONG)])).is_err(), "{}", key.name);
    }
    // A document is read by a caller that knows its format, and every text is the path of a page.
    let others = [DOCUMENT_ANNOTATION, WAITING_PAGE_ANNOTATION];
    let annotations = annotation::ALL.iter().filter(|key| !others.contains(&key.name));
    for name in annotations.flat_map(|key| [Some(key.name), key.old]).flatten() {
        let result = RevisionSettings::read(&map(&[(name, WRONG)]), &ClusterConfig::default(), None);
        let problems = result.expect_err(name);
        assert!(!problems[0].message.contains("is not known"), "{}", problems[0]);
    }
    for key in injection::ALL {
        assert!(QueueProxyResources::default().of_template(&map(&[(key.name, WRONG)])).is_err());
        // No settings of a revision, wherever those are read.
        assert!(INJECTION_ANNOTATIONS.contains(&key.name), "{}", key.name);
    }
}

#[test]
fn queue_proxy_annotations_of_a_template_override_the_config_map() {
    let cluster = cluster(&[("queue-proxy-cpu-limit", "100m"), ("queue-proxy-guaranteed-cpu", "2")]);
    let of = |pairs: Pairs| cluster.queue_proxy.of_template(&map(pairs));
    assert_eq!(of(&[]).as_ref(), Ok(&cluster.queue_proxy));
    let raised = of(&[("ebb.dev/queue-proxy-cpu-limit", "3")]).expect("it is sound");
    let expected = QueueProxyResources {
        cpu_limit: ResourceAmount::new("3", MilliValue::new(3000)),
        ..cluster.queue_proxy.clone()
    };
    assert_eq!(raised, expected);
    let problems = of(&[("ebb.dev/queue-proxy-cpu-request", "200m")]).expect_err("its limit is 100m");
    assert_eq!(
        problems[0].message,
        "annotation ebb.dev/queue-proxy-cpu-request is \"200m\", which is above queue-proxy-cpu-limit 100m; write at most 100m, or raise that too"
    );
}
