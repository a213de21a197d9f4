//! What a take-over leaves to the parts, besides the sockets.

use platform_local::Handover;
use tracing::info;

use super::sockets::Sockets;
use super::take_over::{Predecessor, TakenParts};
use crate::api_token::ApiToken;

/// What another `ebb up` left, besides its sockets.
pub(super) struct Inheritance {
    pub(super) platform: Handover,
    pub(super) predecessor: Predecessor,
    pub(super) activators_started: u64,
    pub(super) api_token: Option<ApiToken>,
}

impl Inheritance {
    /// Divides what was taken over into the sockets and the rest.
    pub(super) fn split(taken: TakenParts) -> (Sockets, Option<Self>) {
        let TakenParts { requests, api, tls, platform, predecessor, activators_started, api_token } = taken;
        info!(
            pid = predecessor.pid,
            "everything was taken over; the other `ebb up` answers the requests that it holds, and ends"
        );
        let inheritance = Self { platform, predecessor, activators_started, api_token };
        (Sockets { requests, api, tls }, Some(inheritance))
    }
}
