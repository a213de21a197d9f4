//! Prometheus' page, as the ports beside the requests' port give it.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use protocol::Response;
use runtime::MetricsFormat;

use crate::body::Body;

/// Answers with `page` in the form that these headers ask for.
pub fn metrics_page(asked: &HeaderMap, page: String) -> Response<Body> {
    let accept = asked.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = MetricsFormat::asked_for(accept);
    let mut response = Response::new(Body::full(format.of_page(page)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}
