//! How is a field of an untyped object read?

use kube_core::{ApiResource, GroupVersionKind};
use serde_json::Value;

/// A kind of Knative's as the API server calls it, from its group with version, its name and its plural.
pub(super) fn resource(api: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api.split_once('/').unwrap_or_default();
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// A text among an object's fields; empty where there is none.
pub(crate) fn text_at<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number among an object's fields.
pub(crate) fn number_at(object: &Value, key: &str) -> Option<i64> {
    object.get(key)?.as_i64()
}
