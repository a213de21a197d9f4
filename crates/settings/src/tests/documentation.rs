//! What is shipped and written down about the configuration is true.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::super::{ClusterConfig, annotation_keys, config_map_keys};

const SAMPLE: &str = include_str!("../../../../config/samples/config-autoscaler.yaml");
const DEPLOYED: &str = include_str!("../../../../deploy/config-autoscaler.yaml");
const REFERENCE: &str = include_str!("../../../../docs/reference/annotations.md");

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

#[test]
fn the_reference_has_a_row_for_every_key() {
    for key in config_map_keys().chain(annotation_keys()) {
        let row = format!("| `{key}` |");
        assert!(REFERENCE.contains(&row), "docs/reference/annotations.md has no row {row}");
    }
}
