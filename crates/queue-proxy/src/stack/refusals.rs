//! The queue-proxy's own refusals. What a client hears of an app that gave no answer stands in
//! `dataplane::HopFailure`, for both proxies.

use dataplane::{Refusal, RefusalReason};

use super::terms::RequestSender;

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
        RequestSender::KnativePeer | RequestSender::Client => refusal,
    }
}

/// The pod that it was sent to had this address before.
pub(super) fn misdirected() -> Refusal {
    let detail = "the request is for another pod, which had this address before";
    Refusal::new(RefusalReason::NoSuchRevision, detail).never_started()
}
