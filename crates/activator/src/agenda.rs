//! Revisions at which the thread of the links is to look, at a time: there is news for their owner, or time
//! has freed something.
//!
//! There is at most one entry of each revision, so the list needs no other bound.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use runtime::Clock;
use tokio::sync::Notify;
use vocabulary::{RevisionName, Timestamp};

/// Revisions by the time at which each is due; one task takes them.
#[derive(Default)]
pub(crate) struct Agenda {
    entries: Mutex<Entries>,
    changed: Notify,
}

/// The time of an entry, and a number that tells entries of one instant apart.
type EntryKey = (Timestamp, u64);

#[derive(Default)]
struct Entries {
    by_time: BTreeMap<EntryKey, RevisionName>,
    by_revision: BTreeMap<RevisionName, EntryKey>,
    /// The number of entries added so far.
    added: u64,
}

impl Agenda {
    /// The revision is due at `at`, or earlier if it was already; wakes the waiting task if no other entry
    /// comes first.
    pub(crate) fn add(&self, at: Timestamp, revision: &RevisionName) {
        let mut entries = self.entries.lock();
        if entries.put(at, revision) {
            drop(entries);
            self.changed.notify_one();
        }
    }

    /// Waits for the first entry to be due and takes it. Cancel-safe: nothing is taken before the call
    /// returns.
    pub(crate) async fn next(&self, clock: &Clock) -> RevisionName {
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

    /// Takes the first entry that is due; else says when the next one is.
    pub(crate) fn take_due(&self, now: Timestamp) -> Result<RevisionName, Timestamp> {
        let mut entries = self.entries.lock();
        let revision = match entries.by_time.first_entry() {
            Some(first) if first.key().0 <= now => first.remove(),
            Some(first) => return Err(first.key().0),
            None => return Err(Timestamp::MAX),
        };
        entries.by_revision.remove(&revision);
        Ok(revision)
    }
}

impl Entries {
    /// Notes the time, unless the revision is due earlier. Returns whether the entry is the first.
    fn put(&mut self, at: Timestamp, revision: &RevisionName) -> bool {
        if let Some(known) = self.by_revision.get(revision) {
            if known.0 <= at {
                return false;
            }
            self.by_time.remove(known);
        }
        self.added += 1;
        let key = (at, self.added);
        self.by_time.insert(key, revision.clone());
        self.by_revision.insert(revision.clone(), key);
        self.by_time.first_key_value().is_some_and(|(first, _)| *first == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_due_once_at_the_earliest_of_its_times() {
        let agenda = Agenda::default();
        let name = |name: &str| RevisionName::new("default", "service", name).expect("a name");
        let at = Timestamp::from_secs;
        for (seconds, revision) in [(5, "one"), (3, "two"), (2, "one"), (4, "one"), (7, "two")] {
            agenda.add(at(seconds), &name(revision));
        }
        assert_eq!(agenda.take_due(at(1)), Err(at(2)));
        assert_eq!(agenda.take_due(at(9)), Ok(name("one")));
        assert_eq!(agenda.take_due(at(9)), Ok(name("two")));
        assert_eq!(agenda.take_due(at(9)), Err(Timestamp::MAX));
        agenda.add(at(8), &name("one"));
        assert_eq!(agenda.take_due(at(9)), Ok(name("one")), "a revision may be due again");
    }
}
