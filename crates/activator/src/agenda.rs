//! Revisions that something is to be done for, at a time.
//!
//! Each revision remembers whether it is on an agenda, so there is at most one entry of each, and the list
//! needs no other bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime::Clock;
use tokio::sync::Notify;
use vocabulary::Timestamp;

use crate::assigned_revision::AssignedRevision;

/// Revisions by the time at which each is due; one task takes them.
#[derive(Default)]
pub(crate) struct Agenda {
    entries: Mutex<Entries>,
    changed: Notify,
}

#[derive(Default)]
struct Entries {
    by_time: BTreeMap<(Timestamp, u64), Arc<AssignedRevision>>,
    /// The number of entries added so far, which tells entries of one instant apart.
    added: u64,
}

impl Agenda {
    /// Adds an entry that is due at `at`; wakes the waiting task if it is the first.
    pub(crate) fn add(&self, at: Timestamp, revision: Arc<AssignedRevision>) {
        let mut entries = self.entries.lock();
        entries.added += 1;
        let key = (at, entries.added);
        entries.by_time.insert(key, revision);
        let is_first = entries.by_time.first_key_value().is_some_and(|(first, _)| *first == key);
        drop(entries);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits for the first entry to be due and takes it. Cancel-safe: nothing is taken before the call
    /// returns.
    pub(crate) async fn next(&self, clock: &Clock) -> Arc<AssignedRevision> {
        loop {
            let first_at = match self.take_due(clock.now()) {
                Ok(revision) => return revision,
                Err(first_at) => first_at,
            };
            // Cancelling loses nothing: the due entry is looked up anew, and a notice without a waiting task
            // is kept.
            tokio::select! {
                () = self.changed.notified() => {}
                () = clock.sleep_until(first_at) => {}
            }
        }
    }

    fn take_due(&self, now: Timestamp) -> Result<Arc<AssignedRevision>, Timestamp> {
        let mut entries = self.entries.lock();
        match entries.by_time.first_entry() {
            Some(first) if first.key().0 <= now => Ok(first.remove()),
            Some(first) => Err(first.key().0),
            None => Err(Timestamp::MAX),
        }
    }
}
