//! The ConfigMaps and annotations, the injector's among them, and a request log's template: whatever is
//! written, what is accepted makes sense together.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use runtime::{Observability, RequestLogTemplate};
use settings::{ClusterConfig, RevisionSettings};

/// The keys that the ConfigMap `config-observability` may have.
const OBSERVABILITY_KEYS: [&str; 6] = [
    "logging.enable-request-log",
    "logging.request-log-template",
    "logging.enable-probe-request-log",
    "tracing-protocol",
    "tracing-endpoint",
    "tracing-sampling-rate",
];

/// Lines `key=value`; a key that is a number stands for one of those that there are.
fn map<'k>(text: &str, keys: impl Iterator<Item = &'k str>) -> BTreeMap<String, String> {
    let keys: Vec<&str> = keys.collect();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let named = pairs.map(|(key, value)| {
        let known = key.parse::<usize>().ok().map(|number| keys[number % keys.len()].to_owned());
        (known.unwrap_or_else(|| key.to_owned()), value.to_owned())
    });
    named.collect()
}

fuzz_target!(|input: &str| {
    let (cluster, annotations) = input.split_once("---\n").unwrap_or((input, ""));
    let cluster = match ClusterConfig::parse(&map(cluster, settings::config_map_keys())) {
        Ok(checked) => checked.value,
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal has a reason");
            ClusterConfig::default()
        }
    };
    let (annotations, observability) = annotations.split_once("---\n").unwrap_or((annotations, ""));
    check_observability(observability);
    let annotations = map(annotations, settings::annotation_keys());
    if let Err(problems) = cluster.queue_proxy.of_template(&annotations) {
        assert!(!problems.is_empty(), "a refusal has a reason");
    }
    match RevisionSettings::read(&annotations, &cluster, None) {
        Ok(checked) => {
            let spec = checked.value.resolve(&cluster, 10, Duration::from_secs(60));
            let _ = format!("{spec:?}");
        }
        Err(problems) => assert!(!problems.is_empty(), "a refusal has a reason"),
    }
});

fn check_observability(text: &str) {
    // Whatever stands there as a template, lines and all.
    let _ = RequestLogTemplate::parse(text);
    match Observability::parse(&map(text, OBSERVABILITY_KEYS.into_iter())) {
        Ok(checked) => assert!(checked.value.reporting().is_ok(), "what is accepted can be done"),
        Err(findings) => assert!(!findings.problems.is_empty(), "a refusal has a reason"),
    }
}
