//! Who sent a request, and which of its headers end here?
//!
//! Of a sender that proves nothing every header is removed that only our hops may set, before anything looks
//! at it (L12). In Knative's place an ingress and Knative's activators prove nothing either: there ours alone
//! are removed, and Knative's words count as they do in Knative. (Contract of the installation, §6.3.)

use dataplane::{Body, Connection, Request, has_internal, is_host, names, set_forwarded_for, strip_internal};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use vocabulary::PodName;

use super::expect;
use super::terms::RequestSender;
use crate::config::QueueProxyPlace;
use crate::settings::OwnerSettings;

/// The sender of a request, as far as a key proves it. `None` for a request to another pod that had this
/// pod's address before, with and without a key: an activator of another workload has no key that is valid
/// here.
pub(super) fn sender_of(
    request: &mut Request<Body>,
    connection: &Connection,
    place: QueueProxyPlace,
    pod: &PodName,
    settings: &OwnerSettings,
) -> Option<RequestSender> {
    let internal = request.fields_mut().of_hops_mut().filter(|headers| has_internal(headers));
    let Some(headers) = internal else { return Some(RequestSender::Client) };
    if headers.remove(names::EBB_POD).is_some_and(|named| named != pod.as_str()) {
        return None;
    }
    if settings.has_valid_hop_key(headers) {
        connection.mark_as_hop();
        headers.remove(names::EBB_HOP_KEY);
        return Some(RequestSender::Hop);
    }
    Some(match place {
        QueueProxyPlace::Ebb => {
            strip_internal(headers);
            RequestSender::Client
        }
        QueueProxyPlace::Knative => {
            strip_ours(headers);
            RequestSender::KnativePeer
        }
    })
}

/// Removes the headers of ebb's own, which nothing but a key proves.
fn strip_ours(headers: &mut HeaderMap) {
    let is_ours = |name: &&HeaderName| name.as_str().starts_with("ebb-");
    let ours: Vec<HeaderName> = headers.keys().filter(is_ours).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Knative's order: `Forwarded` is built before the sender is appended; then the headers that end at this hop
/// are removed.
pub(super) fn end_hop(sender: RequestSender, request: &mut Request<Body>, connection: &Connection) {
    set_forwarded_for(request.fields_mut(), connection.forwarded_for());
    if sender == RequestSender::Client {
        return;
    }
    let Some(headers) = request.fields_mut().of_hops_mut() else { return };
    for ends_here in [
        names::KNATIVE_SERVING_REVISION,
        names::KNATIVE_SERVING_NAMESPACE,
        names::EBB_NO_QUEUE,
        names::EBB_UNMEASURED,
    ] {
        headers.remove(ends_here);
    }
    if sender == RequestSender::Hop {
        expect::restore(headers);
    }
}

/// Takes out the host that the client asked for, where a sender that is believed has noted one. Only what may
/// stand in a Host: in Knative's place a client may have written it.
pub(super) fn noted_host(sender: RequestSender, request: &mut Request<Body>) -> Option<HeaderValue> {
    if sender == RequestSender::Client {
        return None;
    }
    request.headers_mut().remove(names::K_ORIGINAL_HOST).filter(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noted_host_counts_if_a_request_may_be_for_it() {
        for (noted, expected) in [
            ("www.example.com:8080", Some("www.example.com:8080")),
            ("", None),
            ("a, b", None),
            ("user@www.example.com", None),
            ("www.example.com/a", None),
        ] {
            let mut request = Request::new(Body::empty());
            request.headers_mut().insert(names::K_ORIGINAL_HOST, HeaderValue::from_static(noted));
            let found = noted_host(RequestSender::KnativePeer, &mut request);
            assert_eq!(found, expected.map(HeaderValue::from_static), "{noted:?}");
            assert!(request.headers().is_empty(), "it ends here: {noted:?}");
        }
    }
}
