//! Annotations that a document leaves no room for, because it says the same.

use std::collections::BTreeMap;

use crate::config::Problem;

/// The annotation that carries a document: an `autoscaling/v2` spec without a target, as YAML or JSON.
pub const DOCUMENT_ANNOTATION: &str = "ebb.dev/hpa";

/// Knative's annotation in both spellings, and the field that says the same.
const SAID_TWICE: [(&str, &str); 6] = [
    ("autoscaling.knative.dev/maxScale", "maxReplicas"),
    ("autoscaling.knative.dev/max-scale", "maxReplicas"),
    ("autoscaling.knative.dev/minScale", "minReplicas"),
    ("autoscaling.knative.dev/min-scale", "minReplicas"),
    ("autoscaling.knative.dev/metric", "metrics"),
    ("autoscaling.knative.dev/target", "metrics"),
];

/// Refuses `min-scale`, `max-scale`, `metric` and `target` beside a document, naming both places.
pub fn annotations_beside_document(annotations: &BTreeMap<String, String>) -> Vec<Problem> {
    if !annotations.contains_key(DOCUMENT_ANNOTATION) {
        return Vec::new();
    }
    let said_twice = SAID_TWICE.iter().filter_map(|(key, field)| {
        let value = annotations.get(*key)?;
        let message = format!(
            "annotation {key} is {value:?}, which annotation {DOCUMENT_ANNOTATION} says too ({field}); remove one of them"
        );
        Some(Problem { key: (*key).to_owned(), message })
    });
    said_twice.collect()
}
