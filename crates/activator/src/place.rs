//! In whose place does an activator stand, and what follows for its requests?
//!
//! In the place of an installed Knative's activators an ingress says by headers whose a request is, and asks
//! by others whether it arrives here. A pod whose queue-proxy is Knative's would pass each word of ours on to
//! the app: it hears Knative's words alone. (Contract of the installation, §5.)

use dataplane::{
    Body, Fields, Request, Response, effective_host, is_host, names, plain_line, strip_internal,
};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The beginning of the `User-Agent` of kubelet's probes.
const KUBELET: &[u8] = b"kube-probe/";
/// In this header an ingress names the tag of the route by which a request came; apps may read it.
const TAG: HeaderName = HeaderName::from_static("knative-serving-tag");
/// In this header an ingress says whether a request came by the route without a tag; apps may read it.
const DEFAULT_ROUTE: HeaderName = HeaderName::from_static("knative-serving-default-route");

/// Whose requests an activator takes, and by which words it knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ActivatorPlace {
    /// In an installation of ebb's own a request is for the revision of its Host, or of the port at which it
    /// came.
    #[default]
    Ebb,
    /// In an installed Knative it is for the revision that both headers of an ingress name, else for that of
    /// its Host, which has the form `REVISION.NAMESPACE.svc.DOMAIN`.
    Knative {
        /// The cluster's domain in lower case, such as `cluster.local`.
        domain: String,
    },
}

impl ActivatorPlace {
    /// Whether pods may have queue-proxies of Knative's.
    pub(crate) fn is_knatives(&self) -> bool {
        matches!(self, Self::Knative { .. })
    }

    /// The host under which the revision is known that an ingress names; `None` if none is named.
    pub(crate) fn named_host(&self, fields: &Fields) -> Option<String> {
        let Self::Knative { domain } = self else { return None };
        let headers = fields.of_hops()?;
        let revision = text(headers, &names::KNATIVE_SERVING_REVISION)?;
        let namespace = text(headers, &names::KNATIVE_SERVING_NAMESPACE)?;
        Some(format!("{revision}.{namespace}.svc.{domain}"))
    }

    /// The answer to a probe, which no pod hears of and which counts as no load; `None` for a client's
    /// request. It says nothing but what its sender knows and whether requests are taken here, so the sender
    /// has to prove nothing.
    pub(crate) fn probe_answer(
        &self,
        fields: &Fields,
        takes_requests: impl FnOnce() -> bool,
    ) -> Option<Response<Body>> {
        if !self.is_knatives() {
            return None;
        }
        let agent = fields.user_agent().unwrap_or_default();
        // With the name of a revision it is a client's health check that came through an ingress.
        let is_kubelets = agent.starts_with(KUBELET) && self.named_host(fields).is_none();
        let headers = fields.of_hops();
        let is_rewritten = headers.is_some_and(|headers| text(headers, &names::K_KUBELET_PROBE).is_some());
        if is_kubelets || is_rewritten {
            return Some(health(takes_requests()));
        }
        network_answer(headers?)
    }

    /// The host that the client meant, where that is not the request's own: an ingress notes it when it
    /// writes another Host. Only in Knative's place, for elsewhere a client may have made it up; and only
    /// what may stand in a Host, for a client may have written it here, too.
    pub(crate) fn noted_host(&self, fields: &Fields) -> Option<HeaderValue> {
        if !self.is_knatives() {
            return None;
        }
        fields.of_hops()?.get(names::K_ORIGINAL_HOST).filter(|host| is_host(host)).cloned()
    }

    /// The host that a pod of Knative's is told: what an ingress noted, else the request's own.
    pub(crate) fn host_for_plain_pods<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        if !self.is_knatives() {
            return None;
        }
        let own = || HeaderValue::from_str(effective_host(request)?).ok();
        self.noted_host(request.fields()).or_else(own)
    }

    /// Removes the headers that only hops may set: all of Knative's and of ours, but for those that an
    /// ingress of Knative's writes for apps.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        if !self.is_knatives() {
            return strip_internal(headers);
        }
        let kept = [TAG, DEFAULT_ROUTE].map(|name| headers.remove(&name).map(|value| (name, value)));
        strip_internal(headers);
        headers.extend(kept.into_iter().flatten());
    }
}

/// The answer to kubelet, by which it judges the pod.
fn health(takes_requests: bool) -> Response<Body> {
    if takes_requests {
        return Response::new(Body::empty());
    }
    plain_line(StatusCode::INTERNAL_SERVER_ERROR, "not synced, or draining")
}

/// What a probe of Knative's networking is answered; `None` for any other request.
fn network_answer(headers: &HeaderMap) -> Option<Response<Body>> {
    let probe = headers.get(names::K_NETWORK_PROBE).filter(|probe| !probe.is_empty())?;
    Some(match probe.as_bytes() {
        b"probe" => echo(headers),
        b"activator" => Response::new(Body::full("activator")),
        other => {
            let other = String::from_utf8_lossy(other);
            plain_line(StatusCode::BAD_REQUEST, &format!("unexpected probe header value: {other:?}"))
        }
    })
}

/// What an ingress reads of the answer is that its own hash has come here and back.
fn echo(headers: &HeaderMap) -> Response<Body> {
    let Some(hash) = headers.get(names::K_NETWORK_HASH).filter(|hash| !hash.is_empty()) else {
        let why = "a probe request must contain a non-empty \"K-Network-Hash\" header";
        return plain_line(StatusCode::BAD_REQUEST, why);
    };
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(names::K_NETWORK_HASH, hash.clone());
    response
}

/// A header as text; `None` for one that is absent, empty or no text.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
