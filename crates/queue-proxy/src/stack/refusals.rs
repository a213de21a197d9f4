//! The queue-proxy's own refusals. What a client hears of an app that gave no answer stands in
//! `dataplane::failed_hop`, for both proxies.

use dataplane::{Body, Connection, Refusal, RefusalReason, RequestKind};
use http::Request;

use super::terms::RequestSender;
use super::{PodStack, ProxyResponse, logging};

/// Nothing more may wait, or this request would not.
pub(super) fn queue_full(container_concurrency: u32, sender: RequestSender) -> Refusal {
    let depth = u64::from(container_concurrency) * 10;
    let running = if container_concurrency == 1 {
        "1 request runs".to_owned()
    } else {
        format!("{container_concurrency} requests run")
    };
    let detail = format!("{running} (containerConcurrency) and no more than {depth} may wait");
    let refusal = Refusal::new(RefusalReason::QueueFull, detail).with_body("pending request queue full\n");
    match sender {
        RequestSender::Hop => refusal.never_started(),
        RequestSender::Client => refusal,
    }
}

/// The pod that it was sent to had this address before.
fn misdirected() -> Refusal {
    let detail = "the request is for another pod, which had this address before";
    Refusal::new(RefusalReason::NoSuchRevision, detail).never_started()
}

impl PodStack {
    /// This pod's app never sees it, and it is no load of ours.
    pub(super) fn refuse_misdirected(
        &self,
        request: &Request<Body>,
        connection: &Connection,
    ) -> ProxyResponse {
        let line = self
            .logging
            .as_ref()
            .and_then(|logging| logging.begin(RequestSender::Client, request, connection));
        let refusal = misdirected();
        self.metrics.refuse(refusal.reason);
        let response = refusal.into_response(RequestKind::of(request));
        logging::at_once(line, response.map(Self::without_guard))
    }
}
