//! Annotations that a document leaves no room for, because it says the same.

use std::collections::BTreeMap;

use vocabulary::{Problem, shown};

/// The annotation that carries a document: an `autoscaling/v2` spec without a target, as YAML or JSON.
pub const DOCUMENT_ANNOTATION: &str = "ebb.dev/hpa";

/// Knative's annotation in both spellings, and the field that says the same.
const ANNOTATIONS_AND_FIELDS: [(&str, &str); 7] = [
    ("autoscaling.knative.dev/maxScale", "maxReplicas"),
    ("autoscaling.knative.dev/max-scale", "maxReplicas"),
    ("autoscaling.knative.dev/minScale", "minReplicas"),
    ("autoscaling.knative.dev/min-scale", "minReplicas"),
    ("autoscaling.knative.dev/metric", "metrics"),
    ("autoscaling.knative.dev/target", "metrics"),
    ("autoscaling.knative.dev/window", "behavior"),
];

/// Refuses `min-scale`, `max-scale`, `metric`, `target` and `window` beside a document, naming both places.
/// `document` is how messages call its place.
pub fn annotations_beside_document(annotations: &BTreeMap<String, String>, document: &str) -> Vec<Problem> {
    let said_twice = ANNOTATIONS_AND_FIELDS.iter().filter_map(|(key, field)| {
        let value = annotations.get(*key)?;
        let value = shown(value);
        let message =
            format!("annotation {key} is {value}, which {document} says too ({field}); remove one of them");
        Some(Problem { key: (*key).to_owned(), message })
    });
    said_twice.collect()
}
