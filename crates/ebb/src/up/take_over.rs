//! How does one `ebb up` take the place of another, so that nobody notices?
//!
//! ```text
//! the new one                      the running one
//! ── Ask ───────────────────────►  its pods' watches stand still
//! ◄─ Offer, and all descriptors ─
//! reads it, all of it
//! ── Prepared ──────────────────►  its autoscaler ends
//! ◄─ Yours ──────────────────────  closes its copies; from here on it only serves what its activators hold
//! ```
//!
//! Until the last message the running one owns everything: if the new one ends, or does not understand what
//! it reads, the old one goes on. The connection stays open for as long as the old one serves, which its
//! activators are told to the new autoscaler for.

mod giving;
mod place;
mod taking;
mod wire;

use serde::{Deserialize, Serialize};
use vocabulary::{LinkAddress, LinkToken, ReplicaName};

pub(super) use giving::{HandOverOffer, HandOverOrder, listen};
pub(super) use place::{TakeOverSocket, last_words, private_folder};
pub(super) use taking::{Predecessor, TakenParts, take};

use orchestration::{ActivatorFacts, ActivatorLife};

use crate::api_token::ApiToken;

/// What can be understood by both; whoever takes over says which it speaks.
const VERSION: u32 = 1;

/// What the two say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TakeOverMessage {
    /// The first word of whoever wants to take over.
    Ask { version: u32 },
    /// What there is. Descriptors come with it: the two listening sockets, the platform's, and the listening
    /// socket for TLS if there is one. That is the last, so that whoever does not know of it finds one too
    /// many, and refuses.
    Offer(Box<Offer>),
    /// It cannot be now.
    Refused { reason: String },
    /// It was understood.
    Prepared,
    /// It is done.
    Yours,
}

/// What is offered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    /// Whose it is; for people.
    pid: u32,
    /// Those that hold requests, now and for a while.
    activators: Vec<PredecessorActivator>,
    /// How many there were: their names are numbers.
    activators_started: u64,
    /// Of `platform_local`.
    platform: serde_json::Value,
    /// Whether requests are taken over TLS; an older executable does not say.
    #[serde(default)]
    has_tls: bool,
    /// Of the API; an older executable has none.
    #[serde(default)]
    api_token: Option<ApiToken>,
}

/// An activator of the running one.
#[derive(Debug, Serialize, Deserialize)]
struct PredecessorActivator {
    name: ReplicaName,
    link: std::net::SocketAddr,
    token: Option<LinkToken>,
}

impl Offer {
    /// Everything but the descriptors.
    pub(super) fn new(
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
    pub(super) fn adds_tls(&mut self) {
        self.has_tls = true;
    }
}

impl PredecessorActivator {
    /// It accepts nothing more as soon as it is somebody else's.
    fn facts(self) -> ActivatorFacts {
        let link = LinkAddress { token: self.token, ..self.link.into() };
        ActivatorFacts { name: self.name, link, life: ActivatorLife::Terminating }
    }
}
