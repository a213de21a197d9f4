//! The event loop's end of the way to the store of histories: what was read goes to revisions as they appear,
//! and what is measured is written once a minute, on a thread that may wait for a disk.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use orchestration::{ControlEvent, ControlSnapshot, Orchestrator};
use runtime::wall_time;
use scaling::RevisionHistory;
use tokio::task::{JoinHandle, spawn_blocking};
use vocabulary::{RevisionName, Timestamp};

use crate::history_store::{HistoryStore, WrittenPart};

/// How often what was measured is written. A process that is killed loses as much.
const WRITE_EVERY: Duration = Duration::from_secs(60);

/// Moves histories from the store to revisions that appear, and from revisions to the store.
#[derive(Debug)]
pub(crate) struct HistoryKeeper {
    store: HistoryStore,
    /// Histories that were read, of revisions that have not appeared yet.
    read: BTreeMap<RevisionName, RevisionHistory>,
    write_at: Timestamp,
    writing: Option<JoinHandle<()>>,
}

impl HistoryKeeper {
    /// A keeper for what was read of the store.
    pub(crate) fn new(
        store: HistoryStore,
        read: BTreeMap<RevisionName, RevisionHistory>,
        now: Timestamp,
    ) -> Self {
        Self { store, read, write_at: now + WRITE_EVERY, writing: None }
    }

    /// The event that gives the next history to its revision, which has appeared since; `None` if none has.
    pub(crate) fn next_restored(&mut self, orchestrator: &Orchestrator) -> Option<ControlEvent> {
        let name = self.read.keys().find(|name| orchestrator.decides_about(name))?.clone();
        let history = Box::new(self.read.remove(&name)?);
        Some(ControlEvent::HistoryRestored { revision: name, history })
    }

    /// When what was measured is to be written.
    pub(crate) fn write_at(&self) -> Timestamp {
        self.write_at
    }

    /// Begins to write. A disk that is slower than a minute is not asked again meanwhile.
    pub(crate) fn write(&mut self, control: ControlSnapshot, now: Timestamp) {
        self.write_at = now + WRITE_EVERY;
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.writing = Some(self.begin(control, WrittenPart::News, now));
        }
    }

    /// Writes everything a last time.
    pub(crate) async fn finish(mut self, control: ControlSnapshot, now: Timestamp) {
        let last = self.begin(control, WrittenPart::Whole, now);
        for writing in self.writing.take().into_iter().chain([last]) {
            if let Err(error) = writing.await {
                tracing::error!(error = &error as &dyn std::error::Error, "histories were not written");
            }
        }
    }

    fn begin(&self, control: ControlSnapshot, part: WrittenPart, now: Timestamp) -> JoinHandle<()> {
        let store = self.store.clone();
        // A clock before 1970 stamps nothing.
        let second = wall_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // A panic is seen by the keeper, which waits for the write.
        spawn_blocking(move || store.write(&control, part, now, second))
    }
}
