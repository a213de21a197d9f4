//! The event loop's end of the way to the store of histories: what was read goes to revisions as they appear,
//! and what is measured is written once a minute, on a thread that may wait for a disk.

use std::time::Duration;

use orchestration::{ControlEvent, ControlSnapshot, Orchestrator};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use vocabulary::{RevisionName, Timestamp};

use crate::config::HistorySource;
use crate::history_store::{HistoryStore, UnclaimedHistories, WrittenPart};
use crate::history_write::{end_of_ended_write, end_of_write};
use crate::wall_second::wall_second;

/// How often what was measured is written. A process that is killed loses as much.
const WRITE_EVERY: Duration = Duration::from_secs(60);
/// How long the end of an autoscaler waits for a disk. It is to be over, with all links closed, before the
/// caller's patience ends (`STOP_MAX`).
const LAST_WRITE_MAX: Duration = Duration::from_secs(3);

/// Moves histories from the store to revisions that appear, and from revisions to the store.
#[derive(Debug)]
pub(crate) struct HistoryKeeper {
    store: HistoryStore,
    /// Histories that were read, of revisions that have not appeared yet.
    read: UnclaimedHistories,
    write_at: Timestamp,
    writing: Option<PendingWrite>,
    /// Revisions of which a past was told from elsewhere since the last write.
    imported: Vec<RevisionName>,
    /// Everything that was measured before is in the store.
    written_at: Timestamp,
}

/// A write on its thread.
#[derive(Debug)]
struct PendingWrite {
    begun_at: Timestamp,
    /// Whether the store has it.
    task: JoinHandle<bool>,
}

impl HistoryKeeper {
    /// A keeper for what was read of the store.
    pub(crate) fn new(source: HistorySource, now: Timestamp) -> Self {
        let HistorySource { store, read } = source;
        let write_at = now + WRITE_EVERY;
        Self { store, read, write_at, writing: None, imported: Vec::new(), written_at: now }
    }

    /// The event that gives the next history to its revision, which has appeared since; `None` if none has.
    pub(crate) fn next_restored(&self, orchestrator: &Orchestrator) -> Option<ControlEvent> {
        self.read.next_restored(orchestrator)
    }

    /// A past of this revision was told from elsewhere.
    pub(crate) fn note_import(&mut self, revision: RevisionName) {
        self.imported.push(revision);
    }

    /// When what was measured is to be written.
    pub(crate) fn write_at(&self) -> Timestamp {
        self.write_at
    }

    /// Begins to write. A disk that is slower than a minute is not asked again meanwhile.
    pub(crate) fn write(&mut self, control: ControlSnapshot, now: Timestamp) {
        self.write_at = now + WRITE_EVERY;
        self.note_ended_write();
        if self.writing.is_none() {
            self.writing = Some(self.begin(control, WrittenPart::News, now));
        }
    }

    /// Writes everything a last time. A disk that hangs is not waited for.
    pub(crate) async fn finish(mut self, control: ControlSnapshot, now: Timestamp) {
        let last = self.begin(control, WrittenPart::Whole, now);
        let writes = self.writing.take().into_iter().chain([last]);
        let all_written = async {
            for PendingWrite { begun_at, task } in writes {
                let is_stored = end_of_write(task).await;
                self.note_end(begun_at, is_stored);
            }
        };
        if timeout(LAST_WRITE_MAX, all_written).await.is_err() {
            tracing::error!(
                waited_seconds = LAST_WRITE_MAX.as_secs(),
                lost_seconds = now.saturating_since(self.written_at).as_secs(),
                "the disk with the histories did not answer in time: unless it still does, what was measured of all revisions since the last write is lost"
            );
        }
    }

    /// Takes in the end of the write that was begun last, if it has come.
    fn note_ended_write(&mut self) {
        let ended = self.writing.take_if(|writing| writing.task.is_finished());
        if let Some(PendingWrite { begun_at, task }) = ended {
            self.note_end(begun_at, end_of_ended_write(task));
        }
    }

    /// Notes how a write ended. Why the store does not have it, if so, was logged by then.
    fn note_end(&mut self, begun_at: Timestamp, is_stored: Option<bool>) {
        if is_stored == Some(true) {
            self.written_at = begun_at;
        }
    }

    fn begin(&mut self, control: ControlSnapshot, part: WrittenPart, now: Timestamp) -> PendingWrite {
        let (store, second) = (self.store.clone(), wall_second());
        let imported = std::mem::take(&mut self.imported);
        // It waits for a disk. The keeper looks at its end, also at a panic, before the next write begins and
        // before its own end.
        let task = spawn_blocking(move || {
            store.write_anew(&imported);
            store.write(&control, part, now, second)
        });
        PendingWrite { begun_at: now, task }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(100);

    /// A keeper with this write on its thread, which began before any other.
    fn keeper_with(writing: impl FnOnce() -> bool + Send + 'static) -> HistoryKeeper {
        let (store, read) = (HistoryStore::in_memory(), UnclaimedHistories::default());
        let mut keeper = HistoryKeeper::new(HistorySource { store, read }, Timestamp::ZERO);
        // The keeper notices its end.
        let task = spawn_blocking(writing);
        keeper.writing = Some(PendingWrite { begun_at: Timestamp::from_secs(50), task });
        keeper
    }

    async fn until_written(keeper: &HistoryKeeper) {
        while keeper.writing.as_ref().is_some_and(|writing| !writing.task.is_finished()) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_does_not_wait_for_a_disk_that_hangs() {
        let (disk, answer) = mpsc::channel::<()>();
        let keeper = keeper_with(move || answer.recv().is_ok());
        let mut ending = Box::pin(keeper.finish(ControlSnapshot::default(), NOW));
        assert!(ending.as_mut().now_or_never().is_none());
        tokio::time::advance(LAST_WRITE_MAX + Duration::from_millis(1)).await;
        ending.await;
        drop(disk);
    }

    #[tokio::test]
    async fn a_write_that_panicked_wrote_nothing_and_the_next_one_begins() {
        let mut keeper = keeper_with(|| panic!("a bug of the store"));
        until_written(&keeper).await;
        keeper.write(ControlSnapshot::default(), NOW);
        assert_eq!(keeper.written_at, Timestamp::ZERO);
        assert!(keeper.writing.as_ref().is_some_and(|writing| writing.begun_at == NOW));
        until_written(&keeper).await;
        keeper.note_ended_write();
        assert_eq!(keeper.written_at, NOW);
        keeper.finish(ControlSnapshot::default(), NOW).await;
    }
}
