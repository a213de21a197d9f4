//! What one activator must still be told: one slot per revision, in which only the latest counts.
//!
//! The event loop puts, the link's task takes; neither waits for the other. A change of usable pods is due at once, any other at most
//! 20 ms after the last frame of the same revision. After a connect the whole is due: everything between `SyncBegin` and `SyncEnd`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use link::ActivatorOrder;
use tokio::sync::Notify;
use vocabulary::{Assignment, RevisionName, Timestamp, Version};

use crate::assigner::Urgency;

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
    Sync(Vec<Arc<Assignment>>),
    /// Send one revision.
    Send(Slot),
    /// Nothing before then, or before a change.
    Wait(Option<Timestamp>),
}

/// The latest about one revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    Assigned(Arc<Assignment>),
    Removed(RevisionName, Version),
}

impl Slot {
    pub(super) fn order(&self) -> ActivatorOrder {
        match self {
            Self::Assigned(assignment) => ActivatorOrder::Assign(Box::new(Assignment::clone(assignment))),
            Self::Removed(revision, version) => {
                ActivatorOrder::Remove { revision: revision.clone(), version: *version }
            }
        }
    }
}

#[derive(Debug, Default)]
struct Slots {
    phase: Phase,
    latest: BTreeMap<RevisionName, Entry>,
    due: BTreeSet<(Timestamp, RevisionName)>,
}

#[derive(Debug)]
struct Entry {
    slot: Slot,
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

    /// A revision is gone.
    pub(crate) fn remove(&self, revision: &RevisionName, version: Version, now: Timestamp) {
        self.put(revision.clone(), Slot::Removed(revision.clone(), version), Urgency::AtOnce, now);
    }

    /// The activator said hello, and all that it must know has been put: it is to be told everything.
    pub(crate) fn sync(&self) {
        self.lock().phase = Phase::SyncDue;
        self.changed.notify_one();
    }

    /// The link is gone.
    pub(super) fn disconnected(&self) {
        let mut slots = self.lock();
        slots.phase = Phase::Silent;
        // The next sync says it by not naming them.
        slots.forget_removed();
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
    fn put(&mut self, revision: RevisionName, slot: Slot, urgency: Urgency, now: Timestamp) {
        if self.phase != Phase::Synced && matches!(slot, Slot::Removed(..)) {
            self.latest.remove(&revision);
            return;
        }
        let known = self.latest.remove(&revision);
        let (sent_at, due_before) = known.map_or((None, None), |entry| (entry.sent_at, entry.due));
        if let Some(due) = due_before {
            self.due.remove(&(due, revision.clone()));
        }
        let due = (self.phase == Phase::Synced).then(|| {
            let due = match urgency {
                Urgency::AtOnce => now,
                Urgency::Soon => sent_at.map_or(now, |sent_at| now.max(sent_at + FRAME_EVERY)),
            };
            // An urgent change that has not left yet makes whatever replaces it urgent.
            due_before.map_or(due, |before| due.min(before))
        });
        if let Some(due) = due {
            self.due.insert((due, revision.clone()));
        }
        self.latest.insert(revision, Entry { slot, sent_at, due });
    }

    fn begin_sync(&mut self, now: Timestamp) -> Vec<Arc<Assignment>> {
        self.phase = Phase::Synced;
        self.due.clear();
        self.forget_removed();
        let entries = self.latest.values_mut().filter_map(|entry| {
            entry.sent_at = Some(now);
            entry.due = None;
            match &entry.slot {
                Slot::Assigned(assignment) => Some(Arc::clone(assignment)),
                Slot::Removed(..) => None,
            }
        });
        entries.collect()
    }

    fn pop_due(&mut self, now: Timestamp) -> Next {
        let Some((due, _)) = self.due.first() else { return Next::Wait(None) };
        if *due > now {
            return Next::Wait(Some(*due));
        }
        let (_, revision) = self.due.pop_first().expect("the first was just seen");
        let entry = self.latest.get_mut(&revision).expect("what is due has a slot");
        entry.due = None;
        entry.sent_at = Some(now);
        let slot = entry.slot.clone();
        if matches!(slot, Slot::Removed(..)) {
            self.latest.remove(&revision);
        }
        Next::Send(slot)
    }

    fn forget_removed(&mut self) {
        self.latest.retain(|_, entry| matches!(entry.slot, Slot::Assigned(_)));
    }
}

#[cfg(test)]
mod tests;
