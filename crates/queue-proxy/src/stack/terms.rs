//! What is decided about a request before it waits for a slot: its sender, its load, and its limits.

use dataplane::{Body, Request, RequestKind, names};
use throttling::Origin;
use vocabulary::IgnoredUserAgents;

use crate::load::RequestLoad;

/// The sender of a request, as far as a key proved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestSender {
    /// One of our own hops: its internal headers are believed.
    Hop,
    /// In Knative's place, a sender without a valid key that uses Knative's words: an activator or an ingress
    /// of Knative's, or a client that calls itself one. As in Knative they are believed.
    KnativePeer,
    /// A sender without a valid key: its internal headers are removed.
    Client,
}

/// The decisions about a request that are made before it is sent to the app.
pub(super) struct RequestTerms {
    pub(super) sender: RequestSender,
    /// Health checks and scrapes count as nothing, but they have a slot like every request: an app that takes
    /// one request at once gets no second one, whatever the user agent.
    pub(super) counts_as: RequestLoad,
    /// An activator sent the request, so how it goes on to pods is that one's affair.
    pub(super) is_of_activator: bool,
    /// `ebb-no-queue`: the request is refused rather than queued.
    pub(super) is_impatient: bool,
    /// A kubelet's probe that a mesh has rewritten: neither load nor limited (P9).
    pub(super) is_kubelet: bool,
    pub(super) kind: RequestKind,
}

impl RequestTerms {
    /// `is_keyed`: the owner has named hop keys. Its activators show one then, and Knative's have none in the
    /// path, so that without a key the word of an activator is a client's invention.
    pub(super) fn of(
        request: &Request<Body>,
        sender: RequestSender,
        ignored: &IgnoredUserAgents,
        is_keyed: bool,
    ) -> Self {
        // The headers that count only if a sender that is believed has sent the request.
        let believed = request.fields().of_hops().filter(|_| sender != RequestSender::Client);
        let says = |name| believed.and_then(|headers| headers.get(name));
        let is_named = says(names::K_PROXY_REQUEST).is_some_and(|value| value == "activator");
        let is_proxied = is_named && (sender == RequestSender::Hop || !is_keyed);
        let is_ignored = request.fields().user_agent().is_some_and(|agent| ignored.include(agent))
                // An activator hears of other user agents while pods run, which is news to this one.
                || says(names::EBB_UNMEASURED).is_some();
        Self {
            sender,
            counts_as: match (is_ignored, is_proxied) {
                (true, _) => RequestLoad::Unmeasured,
                (false, true) => RequestLoad::Measured(Origin::Proxied),
                (false, false) => RequestLoad::Measured(Origin::Direct),
            },
            is_of_activator: sender == RequestSender::Hop || is_proxied,
            is_impatient: says(names::EBB_NO_QUEUE).is_some(),
            is_kubelet: says(names::K_KUBELET_PROBE).is_some_and(|value| !value.is_empty()),
            kind: RequestKind::of(request),
        }
    }
}
