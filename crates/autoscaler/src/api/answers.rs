//! What stands in every answer of the API: a body, or a refusal in the same form.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use vocabulary::{ReplicaName, RevisionName};

use super::refusal::refusal;

/// The answer about one revision; `None` where no autoscaler that is not silent knows it.
pub(super) fn answer_of_one(
    name: &RevisionName,
    body: Option<impl Serialize>,
    silent: &[ReplicaName],
) -> Response {
    if body.is_none() && silent.is_empty() {
        return refusal(StatusCode::NOT_FOUND, format!("there is no revision {name}"));
    }
    // An autoscaler that is silent may decide about this revision.
    answer(body)
}

pub(super) fn answer(body: Option<impl Serialize>) -> Response {
    match body {
        Some(body) => Json(body).into_response(),
        None => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "the autoscaler is not running; ask again in a moment".to_owned(),
        ),
    }
}
