//! How single values stand in the answers of the API: words, sentences, ages and owners.

use std::time::Duration;

use orchestration::RevisionView;
use scaling::Sentence;
use serde::Serialize;
use vocabulary::{ReplicaName, Timestamp};

use crate::api_types::OwnerView;

pub(super) fn sentence(said: Option<Sentence>) -> Option<String> {
    said.map(|sentence| sentence.to_string())
}

/// The name that serde knows a plain enum's value by.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

pub(super) fn owner_view(view: &RevisionView<'_>, owner: &ReplicaName) -> Option<OwnerView> {
    view.fence().map(|fence| OwnerView {
        name: owner.as_str().to_owned(),
        bucket: fence.bucket.0,
        buckets: view.buckets(),
        epoch: fence.epoch.0,
    })
}

pub(super) fn age_ms(at: Timestamp, now: Timestamp) -> u64 {
    age(now.saturating_since(at))
}

pub(super) fn age(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
