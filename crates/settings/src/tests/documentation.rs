//! What is shipped and written down about the configuration is true.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::super::keys::{PROGRESS_DEADLINE_ANNOTATION, pod_limit};
use super::super::{ClusterConfig, annotation_keys, config_map_keys};

const SAMPLE: &str = include_str!("../../../../config/samples/config-autoscaler.yaml");
const DEPLOYED: &str = include_str!("../../../../deploy/base/config-autoscaler.yaml");
const ANNOTATIONS: &str = include_str!("../../../../docs/reference/annotations.md");
const CONFIG_MAP: &str = include_str!("../../../../docs/reference/config-autoscaler.md");

#[derive(Deserialize)]
struct ConfigMap {
    kind: String,
    metadata: Metadata,
    data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
}

#[test]
fn the_shipped_config_maps_document_every_key_with_its_default_and_set_none() {
    let [sample, deployed] = [SAMPLE, DEPLOYED].map(|text| -> ConfigMap {
        let shipped: ConfigMap = serde_saphyr::from_str(text).expect("valid YAML");
        assert_eq!(
            (shipped.kind.as_str(), shipped.metadata.name.as_str(), shipped.metadata.namespace.as_str()),
            ("ConfigMap", "config-autoscaler", "ebb-system")
        );
        shipped
    });
    assert_eq!(sample.data, deployed.data, "they say the same");
    assert_eq!(sample.data.keys().collect::<Vec<_>>(), ["_example"]);
    let example: BTreeMap<String, String> =
        serde_saphyr::from_str(&sample.data["_example"]).expect("the example is valid YAML of strings");
    let documented: BTreeSet<&str> = example.keys().map(String::as_str).collect();
    assert_eq!(documented, config_map_keys().collect());
    let checked = ClusterConfig::parse(&example).expect("the example is valid");
    assert_eq!((checked.value, checked.warnings), (ClusterConfig::default(), Vec::new()));
}

/// The keys of the rows of all tables of a page whose first column has this title.
fn documented<'p>(page: &'p str, title: &str) -> Vec<&'p str> {
    let head = format!("| {title} |");
    let tables = page.split("\n\n").filter(|part| part.starts_with(&head));
    let rows = tables.flat_map(str::lines);
    rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0)).collect()
}

#[test]
fn the_reference_says_the_defaults_of_the_shipped_config_map() {
    let sample: ConfigMap = serde_saphyr::from_str(SAMPLE).expect("valid YAML");
    let example: BTreeMap<String, String> =
        serde_saphyr::from_str(&sample.data["_example"]).expect("the example is valid YAML of strings");
    let mut seen = 0;
    for row in CONFIG_MAP.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [key, _meaning, _range, default, ..] = cells[..] else { panic!("a row has six cells: {row}") };
        let key = key.trim_start_matches("| ").trim_matches('`');
        // Where the default is no value, a word says what that means.
        let value = default.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or_default();
        assert_eq!(example.get(key).map(String::as_str), Some(value), "the default of {key}");
        seen += 1;
    }
    assert!(seen > 50, "{seen} keys are hardly all");
}

#[test]
fn the_reference_has_a_row_for_each_key_and_no_other() {
    let limits = pod_limit::ALL.iter().map(|key| key.name);
    let annotations: BTreeSet<&str> =
        annotation_keys().chain(limits).chain([PROGRESS_DEADLINE_ANNOTATION]).collect();
    let pages = [(ANNOTATIONS, "Annotation", annotations), (CONFIG_MAP, "Key", config_map_keys().collect())];
    for (page, title, known) in pages {
        let rows = documented(page, title);
        let keys: BTreeSet<&str> = rows.iter().copied().collect();
        assert_eq!(keys, known, "the page of documentation is on the left, the code on the right");
        assert_eq!(rows.len(), known.len(), "a key has two rows: {rows:?}");
    }
}
