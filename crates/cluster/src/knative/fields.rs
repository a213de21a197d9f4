//! How is a field of an untyped object read?

use serde_json::Value;

/// A text among an object's fields; empty where there is none.
pub(crate) fn text_at<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A whole number among an object's fields.
pub(crate) fn number_at(object: &Value, key: &str) -> Option<i64> {
    object.get(key)?.as_i64()
}
