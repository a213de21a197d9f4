//! Every message names key, value, range and remedy.

use vocabulary::BurstCapacity;

use super::super::{ClusterConfig, RevisionSettings, annotation_keys, config_map_keys, lacks_unit};
use super::{annotated, cluster, map};

#[test]
fn blanks_around_a_value_are_refused_where_knative_refuses_them() {
    for value in [" 5", "5 ", "5\n", "\t5", "\u{a0}5"] {
        let problems = ClusterConfig::parse(&map(&[("max-scale", value)])).expect_err(value);
        let expected = format!(
            "key max-scale of ConfigMap config-autoscaler is {value:?}, which has blanks around it, with which Knative refuses it \
             too; write \"5\""
        );
        assert_eq!(problems[0].message, expected);
    }
    for (key, value) in [
        ("stable-window", "60s\n"),
        ("enable-scale-to-zero", "true "),
        ("target-burst-capacity", " -1"),
        ("routing-dwell", " 1s"),
    ] {
        assert!(ClusterConfig::parse(&map(&[(key, value)])).is_err(), "{key}");
    }
    // The one setting that is a word.
    let class = [("pod-autoscaler-class", " hpa.autoscaling.knative.dev\n")];
    assert_eq!(cluster(&class).pod_autoscaler_class.name(), "hpa.autoscaling.knative.dev");
}

#[test]
fn messages_stay_on_one_line_for_any_value() {
    for bad in ["a\nb", "a\r\nb", "\u{1b}[31mred", "a\u{85}b", "a\u{2028}b", "a\0b", &"x\n".repeat(200)] {
        let key = format!("autoscaling.knative.dev/{bad}");
        let misspelt = format!("autoscaling.knative.de/min-scale{bad}");
        let cluster = ClusterConfig::default();
        let mut problems =
            ClusterConfig::parse(&map(&[(bad, bad), ("max-scale", bad)])).expect_err("unknown");
        problems.extend(
            annotated(&[(&key, bad), ("window", bad), ("class", bad)], &cluster).expect_err("unknown"),
        );
        problems.extend(super::super::misplaced_annotations(&map(&[(&key, bad)])));
        problems.extend(
            annotated(&[(&misspelt, bad)], &cluster).map(|checked| checked.warnings).unwrap_or_default(),
        );
        assert!(problems.len() >= 4, "{problems:?}");
        for problem in problems {
            let breaks = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}');
            assert!(!problem.message.contains(breaks), "{:?}", problem.message);
            assert!(problem.message.len() < 1000, "{}", problem.message);
        }
    }
}

/// Whatever is wrong with a value, and whatever stands beside it.
#[test]
fn a_long_value_is_cut_in_every_message() {
    let cluster = ClusterConfig::default();
    for long in ["7".repeat(30_000), "x".repeat(30_000), format!("{{maxReplicas: {:?}}}", "x".repeat(30_000))]
    {
        let mut problems = Vec::new();
        for key in annotation_keys() {
            let document = ("ebb.dev/hpa", "maxReplicas: 3");
            let class = ("class", "hpa.autoscaling.knative.dev");
            for beside in [None, Some(document), Some(class)] {
                let pairs: Vec<_> = beside.into_iter().chain([(key, long.as_str())]).collect();
                problems.extend(annotated(&pairs, &cluster).err().into_iter().flatten());
            }
        }
        for key in config_map_keys() {
            problems.extend(ClusterConfig::parse(&map(&[(key, &long)])).err().into_iter().flatten());
        }
        assert!(problems.len() > 50, "{}", problems.len());
        for problem in problems {
            assert!(problem.message.len() < 1000, "{}: {} bytes", problem.key, problem.message.len());
        }
    }
}

#[test]
fn only_minus_one_itself_means_unlimited() {
    for near in ["-0.9999999999999999", "-1.0000000000000002", "-0.5"] {
        assert!(ClusterConfig::parse(&map(&[("target-burst-capacity", near)])).is_err(), "{near}");
        assert!(annotated(&[("target-burst-capacity", near)], &ClusterConfig::default()).is_err(), "{near}");
    }
    for exact in ["-1", "-1.0", "-1_0e-1"] {
        let config = cluster(&[("target-burst-capacity", exact)]);
        assert_eq!(config.target_burst_capacity, BurstCapacity::Unlimited, "{exact}");
    }
}

#[test]
fn the_refusal_of_an_annotation_names_a_value_to_write() {
    let table = [
        (
            ("window", "5"),
            "annotation autoscaling.knative.dev/window is \"5\", which has no unit; write \"5s\" (allowed: a duration \
             from 6s to 1h, in whole seconds)",
        ),
        (
            ("window", "-42s"),
            "annotation autoscaling.knative.dev/window is \"-42s\", which is negative; write a duration from 6s to 1h, in \
             whole seconds",
        ),
        (
            ("minScale", "-1"),
            "annotation autoscaling.knative.dev/minScale is \"-1\", which is out of range; write a whole number from 0 to \
             2147483647",
        ),
        (
            ("max-scale", "two"),
            "annotation autoscaling.knative.dev/max-scale is \"two\", which is not a whole number; write a whole number \
             from 0 to 2147483647, where 0 means no limit",
        ),
        (
            ("target", "NaN"),
            "annotation autoscaling.knative.dev/target is \"NaN\", which is not a finite number; write a number of at \
             least 0.01",
        ),
        (
            ("metric", "cpu"),
            "annotation autoscaling.knative.dev/metric is \"cpu\", which class kpa.autoscaling.knative.dev cannot scale \
             on; write \"concurrency\" or \"rps\"",
        ),
        (
            ("min-scal", "1"),
            "annotation autoscaling.knative.dev/min-scal is not known; did you mean autoscaling.knative.dev/min-scale?",
        ),
        (
            ("routing-dwell", "1s"),
            "annotation autoscaling.knative.dev/routing-dwell is not known; write ebb.dev/routing-dwell",
        ),
        (
            ("stable-window", "60s"),
            "annotation autoscaling.knative.dev/stable-window is not known; write autoscaling.knative.dev/window",
        ),
        (
            ("activator-capacity", "5"),
            "annotation autoscaling.knative.dev/activator-capacity is not known; activator-capacity applies to all \
             revisions alike: remove it here and set it in ConfigMap config-autoscaler",
        ),
        (
            ("ebb.dev/timeout", "5s"),
            "annotation ebb.dev/timeout is not known; on a cluster it stands on the pod template, whose pods it limits; \
             remove it anywhere else",
        ),
        (
            ("ebb.dev/zzz", "5"),
            "annotation ebb.dev/zzz is not known; remove it; docs/reference/annotations.md lists those that exist",
        ),
    ];
    for (annotation, message) in table {
        let problems = annotated(&[annotation], &ClusterConfig::default()).expect_err(message);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [message]);
    }
}

#[test]
fn annotations_of_knative_that_look_like_ours_are_warned_of() {
    for (key, meant) in [
        ("serving.knative.dev/min-scale", Some("autoscaling.knative.dev/min-scale")),
        ("serving.knative.dev/minScale", Some("autoscaling.knative.dev/min-scale")),
        ("serving.knative.dev/progress-deadlin", Some("serving.knative.dev/progress-deadline")),
        ("serving.knative.dev/progress-deadline", None),
        ("serving.knative.dev/creator", None),
        ("serving.knative.dev/rollout-duration", None),
    ] {
        let checked = RevisionSettings::read(&map(&[(key, "1")]), &ClusterConfig::default(), None);
        let warnings = checked.map(|checked| checked.warnings).unwrap_or_default();
        match meant {
            Some(meant) => {
                let said =
                    warnings.iter().any(|one| one.message.ends_with(&format!("did you mean {meant}?")));
                assert!(said, "{key}: {warnings:?}");
            }
            None => assert!(warnings.is_empty(), "{key}: {warnings:?}"),
        }
    }
}

#[test]
fn a_number_where_a_duration_is_needed_lacks_its_unit() {
    for (key, text, lacks) in [
        ("stable-window", "60", true),
        ("autoscaling.knative.dev/window", "60", true),
        ("autoscaling.knative.dev/window", "60s", false),
        ("autoscaling.knative.dev/target", "60", false),
        ("max-scale", "60", false),
        ("unknown", "60", false),
    ] {
        assert_eq!(lacks_unit(key, text), lacks, "{key}: {text}");
    }
}

#[test]
fn a_rule_about_several_annotations_names_both_and_the_way_out() {
    let table: [(&[(&str, &str)], &str); 3] = [
        (
            &[("min-scale", "5"), ("max-scale", "2")],
            "annotation autoscaling.knative.dev/max-scale is \"2\", which is below min-scale 5; raise it to 5 at least, or \
             lower min-scale",
        ),
        (
            &[("max-scale", "11")],
            "annotation autoscaling.knative.dev/max-scale is \"11\", which is above max-scale-limit 10 of ConfigMap \
             config-autoscaler; write a whole number from 1 to 10",
        ),
        (
            &[("activation-scale", "2"), ("max-scale", "1")],
            "annotation autoscaling.knative.dev/activation-scale is \"2\", which is above max-scale 1; lower it to 1 at \
             most, or raise max-scale",
        ),
    ];
    let config = cluster(&[("max-scale", "10"), ("max-scale-limit", "10")]);
    for (annotations, message) in table {
        let problems = annotated(annotations, &config).expect_err(message);
        assert_eq!(problems[0].to_string(), message);
    }
}

#[test]
fn the_refusal_of_a_config_map_names_a_value_to_write() {
    let table: [(&[(&str, &str)], &str); 8] = [
        (
            &[("panic-threshold-percentage", "1")],
            "key panic-threshold-percentage of ConfigMap config-autoscaler is \"1\", which is out of range; write a \
             percentage from 110 to 1000",
        ),
        (
            &[("targetBurstCapacity", "1")],
            "key targetBurstCapacity of ConfigMap config-autoscaler is not known; write target-burst-capacity",
        ),
        (
            &[("max-scale-limit", "11")],
            "key max-scale-limit of ConfigMap config-autoscaler is \"11\", which max-scale 0 (no limit) exceeds; set max-scale \
             to a whole number from 1 to 11",
        ),
        (
            &[("min-scale", "4"), ("max-scale", "3")],
            "key min-scale of ConfigMap config-autoscaler is \"4\", which is above max-scale 3; write a whole number from 0 \
             to 3",
        ),
        (
            &[("initial-scale", "0")],
            "key initial-scale of ConfigMap config-autoscaler is \"0\", which is not allowed; write at least 1, or set \
             allow-zero-initial-scale to \"true\"",
        ),
        (
            &[("price-per-cpu-hour", "0.031")],
            "key price-per-cpu-hour of ConfigMap config-autoscaler is \"0.031\", which has no currency; write a number of \
             at least 0 and a currency of three capital letters, such as \"0.031 USD\", or nothing",
        ),
        (
            &[("price-per-gib-hour", "-1 USD")],
            "key price-per-gib-hour of ConfigMap config-autoscaler is \"-1 USD\", which is negative; write a number of \
             at least 0 and a currency of three capital letters, such as \"0.031 USD\", or nothing",
        ),
        (
            &[("price-per-cpu-hour", "1 USD"), ("price-per-gib-hour", "1 EUR")],
            "key price-per-gib-hour of ConfigMap config-autoscaler is \"1 EUR\", which has another currency than \
             price-per-cpu-hour 1 USD; write both prices in one currency",
        ),
    ];
    for (data, message) in table {
        let problems = ClusterConfig::parse(&map(data)).expect_err(message);
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [message]);
    }
}

#[test]
fn a_monstrous_value_is_shown_cut() {
    let long = "é".repeat(100_000);
    let problems =
        annotated(&[("target", &long), (&long, "1")], &ClusterConfig::default()).expect_err("not a number");
    assert!(problems.iter().all(|problem| problem.message.len() < 400), "{problems:?}");
}
