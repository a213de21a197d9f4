//! Answers in plain text: refusals, and the small pages of a proxy.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use protocol::Response;

use crate::body::Body;

/// One line of text, as Knative writes its errors.
pub fn plain_line(status: StatusCode, line: &str) -> Response<Body> {
    plain_text(status, Body::full(format!("{line}\n")))
}

/// A whole text, with the headers that Knative's errors have.
pub(crate) fn plain_text(status: StatusCode, text: Body) -> Response<Body> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
