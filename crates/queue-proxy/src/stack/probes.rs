//! Answers probes of Knative's kind from what is known of the app.
//!
//! On the request port only our own hops may probe: the probe headers of other senders were stripped, and
//! what remains is an ordinary request. On the admin port every client may. The answer never waits for the
//! app (L42).

use dataplane::{Body, Response, names, plain_line};
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, USER_AGENT};
use vocabulary::PodState;

/// Agents whose requests are probes of this pod, whatever they ask.
const AGENTS: [&str; 3] = ["kube-probe/", "Knative-Activator-Probe", "Knative-Autoscaling-Probe"];

/// Whether headers that are believed make a request a probe. Not by the agent alone: that header is the
/// client's, and an activator passes it on (L12).
pub(crate) fn is_probe(headers: &HeaderMap) -> bool {
    match headers.get(names::K_NETWORK_PROBE) {
        Some(value) => value == "probe" || is_prober(headers),
        None => false,
    }
}

/// Whether the agent is one that only probes.
pub(crate) fn is_prober(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    AGENTS.iter().any(|prober| agent.starts_with(prober.as_bytes()))
}

/// The answer to a probe, given the state of the pod.
pub(crate) fn answer(headers: &HeaderMap, state: PodState) -> Response<Body> {
    let value = headers.get(names::K_NETWORK_PROBE);
    let is_draining = state == PodState::Draining;
    if is_prober(headers) {
        return match value {
            _ if is_draining => plain_line(StatusCode::SERVICE_UNAVAILABLE, "shutting down"),
            Some(value) if value == "queue" => readiness(state),
            Some(_) | None => {
                let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
                plain_line(StatusCode::BAD_REQUEST, &format!("unexpected probe header value: {value}"))
            }
        };
    }
    if is_draining {
        return plain_line(StatusCode::SERVICE_UNAVAILABLE, "shutting down");
    }
    match headers.get(names::K_NETWORK_HASH).filter(|hash| !hash.is_empty()) {
        Some(hash) => {
            let mut response = Response::new(Body::empty());
            response.headers_mut().insert(names::K_NETWORK_HASH, hash.clone());
            response
        }
        None => plain_line(
            StatusCode::BAD_REQUEST,
            "a probe request must contain a non-empty \"K-Network-Hash\" header",
        ),
    }
}

fn readiness(state: PodState) -> Response<Body> {
    if state == PodState::Ready {
        return Response::new(Body::full("queue"));
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}
