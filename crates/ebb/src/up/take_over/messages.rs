//! What two `ebb up` say to each other in a take-over.

use orchestration::{ActivatorFacts, ActivatorLife};
use serde::{Deserialize, Serialize};
use vocabulary::{LinkAddress, LinkToken, ReplicaName};

use crate::api_token::ApiToken;

/// The version of the messages; the successor says which version it speaks.
pub(super) const VERSION: u32 = 1;

/// A message of one of the two processes to the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TakeOverMessage {
    /// The first message of a process that wants to take over.
    Ask { version: u32 },
    /// The offer. Descriptors come with it: the two listening sockets, the platform's, and the listening
    /// socket for TLS if there is one. That is the last, so that a successor that does not know of it finds
    /// one too many, and refuses.
    Offer(Box<Offer>),
    /// The sender refuses the take-over, for this reason.
    Refused { reason: String },
    /// The successor has understood the whole offer.
    Prepared,
    /// The predecessor has closed its copies: everything is the successor's.
    Yours,
}

/// Everything but the descriptors that the predecessor hands over.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::up) struct Offer {
    /// The process number of the predecessor, for people.
    pub(super) pid: u32,
    /// The activators of the predecessor, which go on answering the requests that they hold.
    pub(super) activators: Vec<PredecessorActivator>,
    /// How many there were: their names are numbers.
    pub(super) activators_started: u64,
    /// The record of the pods, which `platform_local` writes and reads.
    pub(super) platform: serde_json::Value,
    /// Whether requests are taken over TLS; an older executable does not say.
    #[serde(default)]
    pub(super) has_tls: bool,
    /// Of the API; an older executable has none.
    #[serde(default)]
    pub(super) api_token: Option<ApiToken>,
}

/// An activator of the running one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PredecessorActivator {
    name: ReplicaName,
    link: std::net::SocketAddr,
    token: Option<LinkToken>,
}

impl Offer {
    /// The offer of this process, without TLS until [`Offer::adds_tls`].
    pub(in crate::up) fn new(
        activators: Vec<ActivatorFacts>,
        activators_started: u64,
        platform: serde_json::Value,
        api_token: ApiToken,
    ) -> Self {
        let record = |facts: ActivatorFacts| PredecessorActivator {
            name: facts.name,
            link: facts.link.socket,
            token: facts.link.token,
        };
        let activators = activators.into_iter().map(record).collect();
        Self {
            pid: std::process::id(),
            activators,
            activators_started,
            platform,
            has_tls: false,
            api_token: Some(api_token),
        }
    }

    /// The last descriptor is the listening socket for TLS.
    pub(in crate::up) fn adds_tls(&mut self) {
        self.has_tls = true;
    }
}

impl PredecessorActivator {
    /// The facts for the successor's platform: the activator accepts nothing more once it is taken over.
    pub(super) fn facts(self) -> ActivatorFacts {
        let link = LinkAddress { token: self.token, ..self.link.into() };
        ActivatorFacts { name: self.name, link, life: ActivatorLife::Terminating }
    }
}
