//! The vectors of groups A–D, and what the configuration promises beyond them.

mod annotations;
mod config_map;
mod documentation;
mod messages;
mod prediction;
mod targets;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use vocabulary::{CheckedValue, Problem};

use super::keys::{annotation, config_map as config_map_constants};
use super::{ANNOTATION_PREFIXES, ClusterConfig, RevisionSettings, ScalingSpec, progress_deadline};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The ConfigMap with these keys.
fn cluster(pairs: &[(&str, &str)]) -> ClusterConfig {
    ClusterConfig::parse(&map(pairs)).expect("the test's ConfigMap is valid").value
}

/// Parses annotations whose keys are written without Knative's prefix; keys with a prefix of their own stay.
fn annotated(
    pairs: &[(&str, &str)],
    cluster: &ClusterConfig,
) -> Result<CheckedValue<RevisionSettings>, Vec<Problem>> {
    let [prefix, _] = ANNOTATION_PREFIXES;
    let full = |key: &str| if key.contains('/') { key.to_owned() } else { format!("{prefix}{key}") };
    let annotations = pairs.iter().map(|(key, value)| (full(key), (*value).to_owned())).collect();
    RevisionSettings::read(&annotations, cluster, None)
}

#[test]
fn nothing_written_means_the_defaults() {
    let config = ClusterConfig::parse(&map(&[])).expect("empty").value;
    assert_eq!(config, ClusterConfig::default());
    let settings = RevisionSettings::read(&map(&[]), &config, None).expect("empty").value;
    assert_eq!(settings.resolve(&config, 0, Duration::from_mins(10)), ScalingSpec::default());
}

#[test]
fn annotations_of_others_are_not_ours_to_judge() {
    let foreign =
        [("example.com/min-scale", "x"), ("serving.knative.dev/anything", "x"), ("team/owner", "me")];
    let checked = RevisionSettings::read(&map(&foreign), &ClusterConfig::default(), None).expect("ignored");
    assert_eq!((checked.value, checked.warnings), (RevisionSettings::default(), Vec::new()));
}

#[test]
fn the_progress_deadline_is_read_in_whole_seconds() {
    let read = |value| progress_deadline(&map(&[("serving.knative.dev/progress-deadline", value)]));
    assert_eq!(progress_deadline(&map(&[])), Ok(None));
    assert_eq!(read("5s"), Ok(Some(Duration::from_secs(5))));
    assert_eq!(read(""), Ok(None), "Knative takes an empty text for none");
    for value in ["1500ms", "-1s", "10", "soon"] {
        assert!(read(value).is_err(), "{value}");
    }
}

/// Values near the edge of what is legal, and beyond.
fn value() -> impl Strategy<Value = String> {
    let chosen = [
        "0",
        "1",
        "2",
        "-1",
        "0.01",
        "70",
        "100",
        "110",
        "1000",
        "+5",
        "0x1p-2",
        "1e308",
        "NaN",
        "-Inf",
        "0s",
        "6s",
        "1h",
        "90s",
        "1500ms",
        "5",
        "rps",
        "concurrency",
        "true",
        "F",
        "linear",
        "",
        "x.knative.dev",
    ];
    prop_oneof![
        4 => proptest::sample::select(chosen.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
    ]
}

fn settings_of(names: Vec<&'static str>) -> impl Strategy<Value = BTreeMap<String, String>> {
    let key = prop_oneof![
        6 => proptest::sample::select(names).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => any::<String>().prop_map(|name| format!("autoscaling.knative.dev/{name}")),
    ];
    proptest::collection::btree_map(key, value(), 0..8)
}

fn annotations() -> impl Strategy<Value = BTreeMap<String, String>> {
    settings_of(annotation::ALL.iter().flat_map(|key| [Some(key.name), key.old]).flatten().collect())
}

fn config_map_data() -> impl Strategy<Value = BTreeMap<String, String>> {
    settings_of(config_map_constants::ALL.iter().map(|key| key.name).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn accepted_settings_resolve_to_numbers_in_range(
        data in config_map_data(), annotations in annotations(), limit in 0_u32..2000,
    ) {
        let cluster = ClusterConfig::parse(&data).map_or_else(|_| ClusterConfig::default(), |checked| checked.value);
        let settings = RevisionSettings::read(&annotations, &cluster, None)
            .map_or_else(|_| RevisionSettings::default(), |checked| checked.value);
        let spec = settings.resolve(&cluster, limit, Duration::from_mins(10));
        prop_assert!(spec.target_per_pod.is_finite() && spec.target_per_pod >= 0.01);
        prop_assert!(spec.total_per_pod.is_finite() && spec.total_per_pod >= 0.01);
        prop_assert!(spec.panic_threshold >= 1.1 && spec.panic_threshold <= 10.0);
        prop_assert!(spec.max_scale_up_rate > 1.0 && spec.max_scale_up_rate.is_finite());
        prop_assert!(spec.max_scale_down_rate > 1.0 && spec.max_scale_down_rate.is_finite());
        prop_assert!(spec.panic_window >= Duration::from_secs(1) && spec.panic_window <= spec.stable_window);
        prop_assert_eq!(spec.panic_window.subsec_nanos(), 0);
        prop_assert!(spec.max_scale.is_none_or(|max| max.value() > 0));
    }

    #[test]
    fn every_problem_names_its_key_on_one_line(data in config_map_data(), annotations in annotations()) {
        let cluster = ClusterConfig::default();
        let from_map = ClusterConfig::parse(&data).err().unwrap_or_default();
        let from_annotations = RevisionSettings::read(&annotations, &cluster, None).err().unwrap_or_default();
        for (problems, written) in [(from_map, &data), (from_annotations, &annotations)] {
            for Problem { key, message } in problems {
                prop_assert!(written.contains_key(&key), "{}", key);
                prop_assert!(!message.contains('\n'), "{:?}", message);
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(values in proptest::collection::btree_map(any::<String>(), any::<String>(), 0..5)) {
        let cluster = ClusterConfig::parse(&values).map_or_else(|_| ClusterConfig::default(), |checked| checked.value);
        drop(RevisionSettings::read(&values, &cluster, None));
        drop(super::misplaced_annotations(&values));
        drop(progress_deadline(&values));
    }
}
