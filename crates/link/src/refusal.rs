//! Connections that a link's port refused: how they are counted, and when one is logged.
//!
//! A stranger may come as often as it likes, so it costs a number, not a line of the log: one line an
//! interval says how many there were.

use std::net::SocketAddr;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use runtime::Clock;
use vocabulary::Timestamp;

use crate::framing::LinkError;

/// How often the log speaks of refused connections: often enough to be seen beside what an operator does, 60
/// lines an hour at most.
const LOGGED_EVERY: Duration = Duration::from_secs(60);

/// Why a connection did not become a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRefusalReason {
    /// Its first frame carried no token, or a wrong one.
    Token,
    /// The caller showed no autoscaler's certificate, or spoke no TLS.
    Certificate,
    /// The first frame did not come in time.
    Late,
    /// The first bytes were no frame, or a frame longer than a first frame may be.
    Garbage,
    /// Newer connections came while it had sent no frame.
    Displaced,
}

impl LinkRefusalReason {
    const ALL: [Self; 5] = [Self::Token, Self::Certificate, Self::Late, Self::Garbage, Self::Displaced];

    /// The reason to count for a connection that ended with this error; `None` for one that was merely
    /// closed, as health checks do.
    pub(crate) fn of(error: &LinkError) -> Option<Self> {
        match error {
            LinkError::Unauthorised => Some(Self::Token),
            LinkError::Unproved(_) => Some(Self::Certificate),
            LinkError::FirstFrameLate | LinkError::Silent => Some(Self::Late),
            LinkError::Garbage(_) | LinkError::TooLarge { .. } => Some(Self::Garbage),
            LinkError::Connect(_) | LinkError::ConnectTimeout | LinkError::Stalled | LinkError::Broken(_) => {
                None
            }
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Certificate => "certificate",
            Self::Late => "late",
            Self::Garbage => "garbage",
            Self::Displaced => "displaced",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// Counts the connections to a link's port that did not become a link. Cheap to clone; register once per
/// process.
#[derive(Clone, Debug, Default)]
pub struct RefusedLinks {
    by_reason: Family<ReasonLabel, Counter>,
}

impl RefusedLinks {
    /// Lists the counter under `name`, which has its program in front.
    pub fn register(&self, registry: &mut Registry, name: &str) {
        // From the start at zero: what appears only with the first stranger cannot be watched for.
        for reason in LinkRefusalReason::ALL {
            let _ = self.of(reason);
        }
        let help =
            "Connections to the link port that were closed because they are not the autoscaler's, by reason";
        registry.register(name, help, self.by_reason.clone());
    }

    fn of(&self, reason: LinkRefusalReason) -> Counter {
        self.by_reason.get_or_create_owned(&ReasonLabel { reason: reason.as_str() })
    }
}

/// The memory of one listener: what it counted and when it last complained.
#[derive(Debug)]
pub(crate) struct Refusals {
    counts: RefusedLinks,
    clock: Clock,
    quiet_until: Timestamp,
    unsaid: u64,
}

impl Refusals {
    pub(crate) fn new(counts: RefusedLinks) -> Self {
        Self { counts, clock: Clock::start(), quiet_until: Timestamp::ZERO, unsaid: 0 }
    }

    /// Counts one more refusal. A line of the log names the latest, and their number since the line before.
    pub(crate) fn note(&mut self, reason: LinkRefusalReason, peer: SocketAddr) {
        self.counts.of(reason).inc();
        self.unsaid += 1;
        let now = self.clock.now();
        if now < self.quiet_until {
            return;
        }
        let (reason, refused) = (reason.as_str(), std::mem::take(&mut self.unsaid));
        tracing::warn!(%peer, reason, refused, "a connection to the link port was not the autoscaler's and is closed");
        self.quiet_until = now + LOGGED_EVERY;
    }

    #[cfg(test)]
    pub(crate) fn unsaid(&self) -> u64 {
        self.unsaid
    }
}
