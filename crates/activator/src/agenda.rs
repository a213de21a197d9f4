//! Revisions at which the thread of the links is to look, at a time: there is news for their owner, or time
//! has freed something.
//!
//! There is at most one entry of each revision, and one more until it is due of a revision that was removed
//! and assigned again, so the list needs no other bound. The revision knows its entry: so no entry is looked
//! up by a name, which takes far longer to compare than a time, and which a revision that seldom has a
//! request would cost that request.

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

/// An entry: its time, and a number that tells entries of one instant apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgendaEntry {
    at: Timestamp,
    number: u64,
}

#[derive(Default)]
struct Entries {
    by_time: BTreeMap<AgendaEntry, RevisionName>,
    /// The number of entries added so far.
    added: u64,
}

impl AgendaEntry {
    /// When the revision is due.
    pub(crate) fn at(self) -> Timestamp {
        self.at
    }
}

impl Agenda {
    /// The revision is due at `at`, in the place of its former entry if that stands here still; wakes the
    /// waiting task if no other entry comes first.
    pub(crate) fn add(
        &self,
        at: Timestamp,
        revision: &RevisionName,
        former: Option<AgendaEntry>,
    ) -> AgendaEntry {
        let mut entries = self.entries.lock();
        if let Some(former) = former {
            entries.by_time.remove(&former);
        }
        entries.added += 1;
        let entry = AgendaEntry { at, number: entries.added };
        entries.by_time.insert(entry, revision.clone());
        let is_first = entries.by_time.first_key_value().is_some_and(|(first, _)| *first == entry);
        drop(entries);
        if is_first {
            self.changed.notify_one();
        }
        entry
    }

    /// Whether an entry stands here still: it was not taken, and no other has its place.
    pub(crate) fn holds(&self, entry: AgendaEntry) -> bool {
        self.entries.lock().by_time.contains_key(&entry)
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
        match self.entries.lock().by_time.first_entry() {
            Some(first) if first.key().at <= now => Ok(first.remove()),
            Some(first) => Err(first.key().at),
            None => Err(Timestamp::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_due_once_at_the_last_of_its_times() {
        let agenda = Agenda::default();
        let name = |name: &str| RevisionName::new("default", "service", name).expect("a name");
        let at = Timestamp::from_secs;
        let former = agenda.add(at(5), &name("one"), None);
        let two = agenda.add(at(3), &name("two"), None);
        let one = agenda.add(at(2), &name("one"), Some(former));
        assert_eq!([former, two, one].map(|entry| agenda.holds(entry)), [false, true, true]);
        assert_eq!(agenda.take_due(at(1)), Err(at(2)));
        assert_eq!(agenda.take_due(at(9)), Ok(name("one")));
        assert_eq!(agenda.take_due(at(9)), Ok(name("two")));
        assert_eq!(agenda.take_due(at(9)), Err(Timestamp::MAX));
        let again = agenda.add(at(8), &name("one"), Some(one));
        assert_eq!((again.at(), agenda.holds(one), agenda.holds(again)), (at(8), false, true));
        assert_eq!(agenda.take_due(at(9)), Ok(name("one")), "a revision may be due again");
    }

    /// What follows such a revision knows nothing of the entry from before, and keeps its own.
    #[test]
    fn an_entry_from_before_a_removal_takes_no_later_one_along() {
        let agenda = Agenda::default();
        let name = RevisionName::new("default", "service", "one").expect("a name");
        let at = Timestamp::from_secs;
        let former = agenda.add(at(2), &name, None);
        let present = agenda.add(at(5), &name, None);
        assert_eq!(agenda.take_due(at(3)), Ok(name.clone()));
        assert_eq!([former, present].map(|entry| agenda.holds(entry)), [false, true]);
        // What is left of the removed one may have news yet.
        let late = agenda.add(at(4), &name, Some(former));
        assert_eq!([late, present].map(|entry| agenda.holds(entry)), [true, true]);
        assert_eq!(agenda.take_due(at(9)), Ok(name.clone()));
        assert_eq!(agenda.take_due(at(9)), Ok(name));
        assert_eq!(agenda.take_due(at(9)), Err(Timestamp::MAX));
    }
}
