//! Which pod or activator is at the other end of each link, and which of them may be linked yet?

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vocabulary::{PodId, ReplicaId, RevisionId, Timestamp};

/// One link, from the command that opens it to the one that closes it; never given to another. A late word of
/// a closed one is recognised by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkId(pub u64);

/// The links that are to be kept, each with its other end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LinkTable {
    ends: BTreeMap<LinkId, LinkEnd>,
    given: u64,
    opening: LinkOpening,
}

/// The pod or the activator at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LinkEnd {
    Pod(RevisionId, PodId),
    Activator(ReplicaId),
}

impl LinkTable {
    /// A number for a new link.
    pub(crate) fn open(&mut self, end: LinkEnd) -> LinkId {
        self.given += 1;
        let link = LinkId(self.given);
        self.ends.insert(link, end);
        link
    }

    pub(crate) fn close(&mut self, link: LinkId) {
        self.ends.remove(&link);
    }

    /// Which links may be opened by now.
    pub(crate) fn opening(&self) -> LinkOpening {
        self.opening
    }

    pub(crate) fn set_opening(&mut self, opening: LinkOpening) {
        self.opening = opening;
    }

    /// The pod or activator of this link; `None` if it was closed.
    pub(crate) fn end_of(&self, link: LinkId) -> Option<LinkEnd> {
        self.ends.get(&link).copied()
    }
}

/// Which links may be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LinkOpening {
    /// No link at all: the platform has not said everything yet, and activators would retire every revision
    /// that we do not name.
    #[default]
    Closed,
    /// Links to activators, until these have spoken or the time has passed: they know which routes are in
    /// force.
    Activators { until: Timestamp },
    /// Links of both kinds, to activators and to pods.
    All,
}
