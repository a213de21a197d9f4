//! Answers probes of Knative's kind from what is known of the app.
//!
//! On the request port only our own hops may probe: the probe headers of other senders were stripped, and
//! what remains is an ordinary request. In Knative's place kubelet, Knative's activators and ingresses probe
//! there, and they prove nothing; a question about an app that has not been ready yet waits a moment. On the
//! admin port every client may. Else the answer never waits for the app (L42).

use std::time::Duration;

use dataplane::{Body, Response, names, plain_line};
use http::StatusCode;
use http::header::{HeaderMap, USER_AGENT};
use vocabulary::PodState;

use crate::health::START_EXPECTED_WITHIN;

const KUBELET: &str = "kube-probe/";
const KNATIVES_ACTIVATOR: &str = "Knative-Activator-Probe";
/// Agents whose requests are probes of this pod, whatever they ask.
const AGENTS: [&str; 3] = [KUBELET, KNATIVES_ACTIVATOR, "Knative-Autoscaling-Probe"];
/// How long the question of an activator of Knative's waits for an app that has not been ready yet. It gives
/// up after 300 ms, and asks again.
const ACTIVATOR_WAITS: Duration = Duration::from_millis(250);

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
    AGENTS.iter().any(|prober| is_of(headers, prober))
}

/// How long the answer to a request may wait for an app that has not been ready yet; `None` for one that does
/// not ask about it.
pub(super) fn patience(headers: &HeaderMap) -> Option<Duration> {
    headers.get(names::K_NETWORK_PROBE).filter(|value| *value == "queue")?;
    if is_of(headers, KUBELET) {
        Some(START_EXPECTED_WITHIN)
    } else {
        is_of(headers, KNATIVES_ACTIVATOR).then_some(ACTIVATOR_WAITS)
    }
}

fn is_of(headers: &HeaderMap, prober: &str) -> bool {
    headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(prober.as_bytes()))
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
