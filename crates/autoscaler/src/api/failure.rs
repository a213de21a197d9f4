//! An answer that says why there is no other one.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::api_types::{API_VERSION, ApiError};

pub(super) fn failure(status: StatusCode, error: String) -> Response {
    (status, Json(ApiError { version: API_VERSION, error })).into_response()
}
