//! What one activator must still be told: one slot per revision, in which only the latest counts.
//!
//! The event loop puts, the link's task takes; neither waits for the other. A change of usable pods is due at once, any other at most
//! 20 ms after the last frame of the same revision. After a connect the whole is due: everything between `SyncBegin` and `SyncEnd`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use link::ActivatorOrder;
use orchestration::{Unassignment, Urgency};
use tokio::sync::Notify;
use vocabulary::{Assignment, Bucket, Ownership, RevisionName, Timestamp, Version};

/// The least time between two frames of one revision that bring no news of usable pods.
const FRAME_EVERY: Duration = Duration::from_millis(20);

/// Orders to one activator that have not left yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    slots: Mutex<Slots>,
    changed: Notify,
}

/// What the link's task does next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Send everything, between `SyncBegin` and `SyncEnd`.
    Sync(Sync),
    /// Send one revision.
    Send(Slot),
    /// Say of which buckets no route names it any more.
    Release(BTreeSet<Bucket>),
    /// Nothing before then, or before a change.
    Wait(Option<Timestamp>),
}

/// Everything within some buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sync {
    pub(super) ownership: Ownership,
    pub(super) assignments: Vec<Arc<Assignment>>,
}

/// The latest about one revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    Assigned(Arc<Assignment>),
    Unassigned(RevisionName, Version, Unassignment),
}

impl Slot {
    pub(super) fn order(&self) -> ActivatorOrder {
        match self {
            Self::Assigned(assignment) => ActivatorOrder::Assign(Box::new(Assignment::clone(assignment))),
            Self::Unassigned(revision, version, how) => {
                let (revision, version) = (revision.clone(), *version);
                match how {
                    Unassignment::Removed => ActivatorOrder::Remove { revision, version },
                    Unassignment::Forgotten => ActivatorOrder::Forget { revision, version },
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct Slots {
    phase: Phase,
    sync: Sync,
    released: BTreeSet<Bucket>,
    latest: BTreeMap<RevisionName, Entry>,
    due: BTreeSet<(Timestamp, RevisionName)>,
}

#[derive(Debug)]
struct Entry {
    /// What has not left yet; `None` once it has.
    slot: Option<Slot>,
    sent_at: Option<Timestamp>,
    due: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No link, or the activator has not said hello: nothing may be sent.
    #[default]
    Silent,
    /// The whole must be sent.
    SyncDue,
    /// Changes are sent as they come.
    Synced,
}

impl Outbox {
    /// A revision's new assignment.
    pub(crate) fn assign(&self, assignment: Arc<Assignment>, urgency: Urgency, now: Timestamp) {
        let revision = assignment.revision.clone();
        self.put(revision, Slot::Assigned(assignment), urgency, now);
    }

    /// A revision need not be known any more.
    pub(crate) fn unassign(
        &self,
        revision: &RevisionName,
        version: Version,
        how: Unassignment,
        now: Timestamp,
    ) {
        let slot = Slot::Unassigned(revision.clone(), version, how);
        self.put(revision.clone(), slot, Urgency::AtOnce, now);
    }

    /// No route of these buckets names the activator any more.
    pub(crate) fn release(&self, buckets: BTreeSet<Bucket>) {
        self.lock().released.extend(buckets);
        self.changed.notify_one();
    }

    /// The activator said hello, and is to be told everything: this.
    pub(crate) fn sync(&self, ownership: Ownership, assignments: Vec<Arc<Assignment>>) {
        let mut slots = self.lock();
        slots.phase = Phase::SyncDue;
        slots.sync = Sync { ownership, assignments };
        slots.latest.clear();
        slots.due.clear();
        drop(slots);
        self.changed.notify_one();
    }

    /// The link is gone.
    pub(super) fn disconnected(&self) {
        let mut slots = self.lock();
        // The next sync says everything.
        *slots = Slots::default();
    }

    /// Waits for a change. Cancel-safe; a change while nobody waits is kept.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What to do at `now`.
    pub(super) fn next(&self, now: Timestamp) -> Next {
        let mut slots = self.lock();
        match slots.phase {
            Phase::Silent => Next::Wait(None),
            Phase::SyncDue => Next::Sync(slots.begin_sync(now)),
            Phase::Synced => slots.pop_due(now),
        }
    }

    fn put(&self, revision: RevisionName, slot: Slot, urgency: Urgency, now: Timestamp) {
        let mut slots = self.lock();
        slots.put(revision, slot, urgency, now);
        if slots.phase == Phase::Synced {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Every change below leaves the slots whole before anything could panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Before the sync nothing is kept: it says everything itself. What changes until it leaves goes after it.
    fn put(&mut self, revision: RevisionName, slot: Slot, urgency: Urgency, now: Timestamp) {
        if self.phase == Phase::Silent {
            return;
        }
        let known = self.latest.remove(&revision);
        let (sent_at, due_before) = known.map_or((None, None), |entry| (entry.sent_at, entry.due));
        if let Some(due) = due_before {
            self.due.remove(&(due, revision.clone()));
        }
        let due = match urgency {
            Urgency::AtOnce => now,
            Urgency::Soon => sent_at.map_or(now, |sent_at| now.max(sent_at + FRAME_EVERY)),
        };
        // An urgent change that has not left yet makes whatever replaces it urgent.
        let due = due_before.map_or(due, |before| due.min(before));
        self.due.insert((due, revision.clone()));
        self.latest.insert(revision, Entry { slot: Some(slot), sent_at, due: Some(due) });
    }

    fn begin_sync(&mut self, now: Timestamp) -> Sync {
        self.phase = Phase::Synced;
        let sync = std::mem::take(&mut self.sync);
        for assignment in &sync.assignments {
            let entry = self.latest.entry(assignment.revision.clone());
            entry.or_insert(Entry { slot: None, sent_at: None, due: None }).sent_at = Some(now);
        }
        sync
    }

    fn pop_due(&mut self, now: Timestamp) -> Next {
        if !self.released.is_empty() {
            return Next::Release(std::mem::take(&mut self.released));
        }
        let Some((due, _)) = self.due.first() else { return Next::Wait(None) };
        if *due > now {
            return Next::Wait(Some(*due));
        }
        let (_, revision) = self.due.pop_first().expect("the first was just seen");
        let entry = self.latest.get_mut(&revision).expect("what is due has a slot");
        entry.due = None;
        entry.sent_at = Some(now);
        let slot = entry.slot.take().expect("what is due has not left");
        if matches!(slot, Slot::Unassigned(..)) {
            self.latest.remove(&revision);
        }
        Next::Send(slot)
    }
}

#[cfg(test)]
mod tests;
