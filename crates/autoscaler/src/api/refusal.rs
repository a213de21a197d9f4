//! An answer that says why there is no other one.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::api_types::{API_VERSION, ApiError};

/// An answer of the API in place of what was asked for: this status, and why, in one line.
pub fn refusal(status: StatusCode, error: String) -> Response {
    (status, Json(ApiError { version: API_VERSION, error })).into_response()
}
