//! Which connections from before an adoption are left, and which of them are in use?

use std::collections::BTreeMap;

use dataplane::{ConnectionId, KernelConnection};
use vocabulary::{ConnectionTally, PeerList, Timestamp};

/// What is remembered of connections has a limit; so many hold a count as well as more would.
const MEMBERS_MAX: usize = 10_000;

/// Members that are still open, with the bytes that they have moved, where that is known.
pub(super) type MembersBytes = BTreeMap<ConnectionId, Option<u64>>;

/// Connections that were open when the set was taken and have been since.
#[derive(Debug, Default)]
pub(super) struct AdoptedSet(BTreeMap<ConnectionId, Member>);

#[derive(Clone, Copy, Debug)]
struct Member {
    since: Timestamp,
    bytes: Option<u64>,
    moved_at: Timestamp,
}

impl AdoptedSet {
    /// A connection that is open while the set is taken. How long it has rested is not known, so it counts as
    /// in use.
    pub(super) fn admit(&mut self, found: KernelConnection, now: Timestamp) {
        if self.0.len() < MEMBERS_MAX {
            let member = Member { since: now, bytes: found.bytes, moved_at: now };
            self.0.entry(found.id).or_insert(member);
        }
    }

    /// Looks at some members: those that are not found are gone for good.
    pub(super) fn update(&mut self, some: &[ConnectionId], found: &MembersBytes, now: Timestamp) {
        for id in some {
            match (self.0.get_mut(id), found.get(id)) {
                (Some(member), Some(&bytes)) => {
                    // Where the kernel does not count bytes, each look may have missed some.
                    if bytes.is_none() || bytes != member.bytes {
                        (member.bytes, member.moved_at) = (bytes, now);
                    }
                }
                (Some(_), None) => {
                    self.0.remove(id);
                }
                (None, _) => {}
            }
        }
    }

    pub(super) fn ids(&self) -> Vec<ConnectionId> {
        self.0.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a member has moved a byte since then.
    pub(super) fn has_moved_since(&self, earliest: Timestamp) -> bool {
        self.0.values().any(|member| member.moved_at > earliest)
    }

    pub(super) fn tally(&self, now: Timestamp) -> ConnectionTally {
        let since = self.0.values().map(|member| member.since).min().unwrap_or(now);
        ConnectionTally {
            count: u32::try_from(self.0.len()).unwrap_or(u32::MAX),
            age: now.saturating_since(since),
            peers: PeerList::of(self.0.keys().map(|id| id.peer().ip())),
        }
    }
}
