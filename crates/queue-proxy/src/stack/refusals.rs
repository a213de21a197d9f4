//! The queue-proxy's own refusal. What a client hears of an app that gave no answer stands in `dataplane::failed_hop`, for both proxies.

use dataplane::{Reason, Refusal};

use super::Sender;

/// Nothing more may wait, or this request would not.
pub(super) fn queue_full(container_concurrency: u32, sender: Sender) -> Refusal {
    let depth = u64::from(container_concurrency) * 10;
    let detail = format!(
        "{container_concurrency} requests run (containerConcurrency) and no more than {depth} may wait for them"
    );
    let refusal = Refusal::new(Reason::QueueFull, detail).with_body("pending request queue full\n");
    match sender {
        Sender::Hop => refusal.never_started(),
        Sender::Client => refusal,
    }
}
