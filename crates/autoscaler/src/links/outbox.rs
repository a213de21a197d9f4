//! What one activator must still be told: one slot per revision, in which only the latest counts.
//!
//! The event loop puts, the link's task takes; neither waits for the other. A change of usable pods is due at
//! once, any other at most 20 ms after the last frame of the same revision. After a connect the whole is due:
//! everything between `SyncBegin` and `SyncEnd`.

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
pub(crate) struct OrderOutbox {
    slots: Mutex<Slots>,
    changed: Notify,
}

/// What the link's task does next.
#[derive(Debug, PartialEq)]
pub(super) enum NextStep {
    /// Send everything, between `SyncBegin` and `SyncEnd`.
    Sync(BucketSync),
    /// Send what is newest about one revision.
    Send(AssignmentSlot),
    /// Say of which buckets no route names it any more.
    Release(BTreeSet<Bucket>),
    /// Nothing before then, or before a change.
    Wait(Option<Timestamp>),
}

/// Everything that an activator must know within some buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BucketSync {
    pub(super) ownership: Ownership,
    pub(super) assignments: Vec<Arc<Assignment>>,
}

/// The latest about one revision.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AssignmentSlot {
    Assigned(Arc<Assignment>),
    Unassigned(RevisionName, Version, Unassignment),
}

impl AssignmentSlot {
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
    phase: SyncPhase,
    sync: BucketSync,
    released: BTreeSet<Bucket>,
    latest: BTreeMap<RevisionName, OutboxEntry>,
    due: BTreeSet<(Timestamp, RevisionName)>,
}

#[derive(Debug)]
struct OutboxEntry {
    /// What has not left yet; `None` once it has.
    slot: Option<AssignmentSlot>,
    sent_at: Option<Timestamp>,
    due: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SyncPhase {
    /// No link, or the activator has not said hello: nothing may be sent.
    #[default]
    Silent,
    /// The whole must be sent.
    SyncDue,
    /// Changes are sent as they come.
    Synced,
}

impl OrderOutbox {
    /// Puts in a revision's new assignment, which replaces one that was not sent.
    pub(crate) fn assign(&self, assignment: Arc<Assignment>, urgency: Urgency, now: Timestamp) {
        let revision = assignment.revision.clone();
        self.put(revision, AssignmentSlot::Assigned(assignment), urgency, now);
    }

    /// A revision need not be known any more.
    pub(crate) fn unassign(
        &self,
        revision: &RevisionName,
        version: Version,
        how: Unassignment,
        now: Timestamp,
    ) {
        let slot = AssignmentSlot::Unassigned(revision.clone(), version, how);
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
        slots.phase = SyncPhase::SyncDue;
        slots.sync = BucketSync { ownership, assignments };
        // The whole replaces what waited to be sent, since it was made later than any of it.
        slots.latest.clear();
        slots.due.clear();
        drop(slots);
        self.changed.notify_one();
    }

    /// Forgets what was not sent: the link is gone, and the next sync says everything.
    pub(super) fn disconnected(&self) {
        let mut slots = self.lock();
        // The next sync says everything.
        *slots = Slots::default();
    }

    /// Waits for a change. Cancel-safe; a change while no task waits is kept.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What to do at `now`.
    pub(super) fn next(&self, now: Timestamp) -> NextStep {
        let mut slots = self.lock();
        match slots.phase {
            SyncPhase::Silent => NextStep::Wait(None),
            SyncPhase::SyncDue => NextStep::Sync(slots.begin_sync(now)),
            SyncPhase::Synced => slots.pop_due(now),
        }
    }

    fn put(&self, revision: RevisionName, slot: AssignmentSlot, urgency: Urgency, now: Timestamp) {
        let mut slots = self.lock();
        slots.put(revision, slot, urgency, now);
        // In the other phases the link's task waits for something else, or will look here by itself.
        if slots.phase == SyncPhase::Synced {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Every change below leaves the slots whole before anything could panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Before the sync nothing is kept: it says everything itself. What changes until it leaves goes after
    /// it.
    fn put(&mut self, revision: RevisionName, slot: AssignmentSlot, urgency: Urgency, now: Timestamp) {
        if self.phase == SyncPhase::Silent {
            return;
        }
        // Only the latest matters: of a revision that changes a hundred times while a link is busy, one order
        // is sent.
        let known = self.latest.remove(&revision);
        let (sent_at, due_before) = known.map_or((None, None), |entry| (entry.sent_at, entry.due));
        if let Some(due) = due_before {
            self.due.remove(&(due, revision.clone()));
        }
        let due = match urgency {
            Urgency::AtOnce => now,
            Urgency::Soon => sent_at.map_or(now, |sent_at| now.max(sent_at + FRAME_EVERY)),
        };
        // An urgent change that has not left yet makes the change that replaces it urgent.
        let due = due_before.map_or(due, |before| due.min(before));
        self.due.insert((due, revision.clone()));
        self.latest.insert(revision, OutboxEntry { slot: Some(slot), sent_at, due: Some(due) });
    }

    fn begin_sync(&mut self, now: Timestamp) -> BucketSync {
        self.phase = SyncPhase::Synced;
        let sync = std::mem::take(&mut self.sync);
        for assignment in &sync.assignments {
            let entry = self.latest.entry(assignment.revision.clone());
            // What changed since the sync was made is here already and stays due, behind the sync: it is
            // newer.
            entry.or_insert(OutboxEntry { slot: None, sent_at: None, due: None }).sent_at = Some(now);
        }
        sync
    }

    fn pop_due(&mut self, now: Timestamp) -> NextStep {
        // Before any assignment: an activator that is leaving waits for this word, and for no other.
        if !self.released.is_empty() {
            return NextStep::Release(std::mem::take(&mut self.released));
        }
        let Some((due, _)) = self.due.first() else { return NextStep::Wait(None) };
        if *due > now {
            return NextStep::Wait(Some(*due));
        }
        let (_, revision) = self.due.pop_first().expect("the first was just seen");
        let entry = self.latest.get_mut(&revision).expect("what is due has a slot");
        entry.due = None;
        entry.sent_at = Some(now);
        let slot = entry.slot.take().expect("what is due has not left");
        if matches!(slot, AssignmentSlot::Unassigned(..)) {
            self.latest.remove(&revision);
        }
        NextStep::Send(slot)
    }
}

#[cfg(test)]
mod tests;
