//! Which requests are probes, and what is answered to them: data plane §2.5 and §3.2, contract §5.3 and
//! §6.3.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, StatusCode};

pub(super) const NETWORK_PROBE: &str = "k-network-probe";
pub(super) const NETWORK_HASH: &str = "k-network-hash";
const KUBELET_PROBE: &str = "k-kubelet-probe";

/// What a probe is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProbeAnswer {
    pub(super) status: StatusCode,
    pub(super) body: String,
    /// The hash that an ingress sent.
    pub(super) hash: Option<HeaderValue>,
}

impl ProbeAnswer {
    pub(super) fn new(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, body: body.into(), hash: None }
    }
}

/// What a queue-proxy does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QueueGate {
    Answer(ProbeAnswer),
    /// The readiness of the app is the answer.
    AskApp,
    Pass,
}

/// The answer of an activator to a probe; `None` for a request of a client.
pub(super) fn activator_gate(headers: &HeaderMap, health: Result<(), &str>) -> Option<ProbeAnswer> {
    if text(headers, USER_AGENT.as_str()).starts_with("kube-probe/")
        || !text(headers, KUBELET_PROBE).is_empty()
    {
        return Some(match health {
            Ok(()) => ProbeAnswer::new(StatusCode::OK, ""),
            Err(why) => ProbeAnswer::new(StatusCode::INTERNAL_SERVER_ERROR, why),
        });
    }
    match text(headers, NETWORK_PROBE) {
        "" => None,
        "probe" => Some(echo(headers)),
        "activator" => Some(ProbeAnswer::new(StatusCode::OK, "activator")),
        other => Some(unexpected(&format!("{other:?}"))),
    }
}

/// What a queue-proxy does with a request, while it drains or not.
pub(super) fn queue_gate(headers: &HeaderMap, is_draining: bool) -> QueueGate {
    let agent = text(headers, USER_AGENT.as_str());
    let probers = ["kube-probe/", "Knative-Activator-Probe", "Knative-Autoscaling-Probe"];
    let value = text(headers, NETWORK_PROBE);
    let is_of_prober = probers.iter().any(|prober| agent.starts_with(prober));
    if !is_of_prober && value != "probe" {
        return QueueGate::Pass;
    }
    if is_draining {
        return QueueGate::Answer(ProbeAnswer::new(StatusCode::SERVICE_UNAVAILABLE, "shutting down"));
    }
    match (is_of_prober, value) {
        (false, _) => QueueGate::Answer(echo(headers)),
        (true, "queue") => QueueGate::AskApp,
        (true, _) => QueueGate::Answer(unexpected(value)),
    }
}

fn echo(headers: &HeaderMap) -> ProbeAnswer {
    let hash = headers.get(NETWORK_HASH).filter(|hash| !hash.is_empty());
    let Some(hash) = hash else {
        let why = "a probe request must contain a non-empty \"K-Network-Hash\" header";
        return ProbeAnswer::new(StatusCode::BAD_REQUEST, why);
    };
    ProbeAnswer { hash: Some(hash.clone()), ..ProbeAnswer::new(StatusCode::OK, "") }
}

fn unexpected(value: &str) -> ProbeAnswer {
    ProbeAnswer::new(StatusCode::BAD_REQUEST, format!("unexpected probe header value: {value}"))
}

/// A header as text; empty where there is none.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn an_activator_answers_kubelet_by_its_health_and_networks_by_what_they_sent() {
        let ask = |pairs: &[_], health| {
            activator_gate(&headers(pairs), health).map(|answer| answer.status.as_u16())
        };
        let kubelet = ("user-agent", "kube-probe/1.37");
        assert_eq!(ask(&[kubelet], Ok(())), Some(200));
        assert_eq!(ask(&[kubelet], Err("no autoscaler")), Some(500));
        assert_eq!(ask(&[("k-network-probe", "probe"), ("k-network-hash", "h")], Err("")), Some(200));
        assert_eq!(ask(&[("k-network-probe", "probe")], Ok(())), Some(400));
        assert_eq!(ask(&[("k-network-probe", "queue")], Ok(())), Some(400));
        let asked = headers(&[("k-network-probe", "activator")]);
        assert_eq!(activator_gate(&asked, Ok(())), Some(ProbeAnswer::new(StatusCode::OK, "activator")));
        assert_eq!(ask(&[("user-agent", "curl/8")], Ok(())), None);
    }

    #[test]
    fn a_queue_proxy_passes_what_no_prober_sends() {
        let kubelet = ("user-agent", "kube-probe/1.37");
        let queue = ("k-network-probe", "queue");
        let activator = ("user-agent", "Knative-Activator-Probe");
        assert_eq!(queue_gate(&headers(&[kubelet, queue]), false), QueueGate::AskApp);
        assert_eq!(queue_gate(&headers(&[activator, queue]), false), QueueGate::AskApp);
        assert_eq!(queue_gate(&headers(&[queue]), false), QueueGate::Pass);
        let status = |pairs: &[_], is_draining| match queue_gate(&headers(pairs), is_draining) {
            QueueGate::Answer(answer) => answer.status.as_u16(),
            other @ (QueueGate::AskApp | QueueGate::Pass) => panic!("{other:?}"),
        };
        assert_eq!(status(&[kubelet], false), 400);
        assert_eq!(status(&[kubelet, queue], true), 503);
        assert_eq!(status(&[("k-network-probe", "probe"), ("k-network-hash", "h")], false), 200);
        assert_eq!(status(&[("k-network-probe", "probe"), ("k-network-hash", "h")], true), 503);
    }
}
