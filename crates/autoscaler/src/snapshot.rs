//! How does the event loop tell readers everything without doing anything for them?
//!
//! It publishes a [`Snapshot`]: one more reference to what is new, in the place of the one before. A reader
//! takes whatever stands there, keeps it as long as it needs, and does all the work of an answer in a task of
//! its own. Facts and decisions that change something are published within [`NEWS_WITHIN`], measurements and
//! signs of life within [`SWEEP_EVERY`].
//!
//! What is published does not prove that its loop still turns. So the loop publishes at least once in
//! [`SWEEP_EVERY`], and one whose snapshot is older than [`SILENT_AFTER`] hangs, or is gone.

use std::sync::Arc;
use std::time::Duration;

use orchestration::ControlSnapshot;
use runtime::Clock;
use tokio::sync::watch;
use vocabulary::{ReplicaName, RevisionName, SharedMap, Timestamp};

use crate::caller_memory::Callers;
use crate::metric_sources::AskedMetric;

/// Within what time a reader finds facts and decisions. A storm of them is published ten times a second.
pub(crate) const NEWS_WITHIN: Duration = Duration::from_millis(100);
/// How often what was measured is written for readers, on the page of metrics too: as often as a pod with
/// traffic measures.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// A loop that takes in a whole cluster at once publishes nothing for a second or two.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// Everything that one autoscaler knows, as it was at the end of one turn of its loop.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The autoscaler that published the snapshot.
    pub(crate) owner: ReplicaName,
    /// When the turn of the loop ended.
    pub(crate) at: Timestamp,
    /// What it knows of revisions, links and problems.
    pub(crate) control: ControlSnapshot,
    /// Class hpa: the metrics that were asked for last.
    pub(crate) asked: SharedMap<RevisionName, Arc<[AskedMetric]>>,
    /// The clients that sent requests lately, by revision.
    pub(crate) callers: Callers,
}

/// The event loop's end of the way to its readers.
#[derive(Debug)]
pub(crate) struct SnapshotWriter {
    latest: watch::Sender<Arc<Snapshot>>,
}

/// A reader's end of the way from the event loop.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotReader {
    clock: Clock,
    latest: watch::Receiver<Arc<Snapshot>>,
}

/// Both ends, for an autoscaler that knows nothing yet.
pub(crate) fn snapshots(owner: ReplicaName, clock: Clock) -> (SnapshotWriter, SnapshotReader) {
    let (control, asked) = (ControlSnapshot::default(), SharedMap::default());
    let callers = Callers::default();
    let (writer, latest) =
        watch::channel(Arc::new(Snapshot { owner, at: clock.now(), control, asked, callers }));
    (SnapshotWriter { latest: writer }, SnapshotReader { clock, latest })
}

impl Snapshot {
    /// The number of the snapshot: its time in microseconds, which a number of JavaScript holds exactly.
    pub(crate) fn number(&self) -> u64 {
        self.at.as_nanos() / 1000
    }
}

impl SnapshotWriter {
    /// One more reader of the same snapshots.
    pub(crate) fn reader(&self, clock: Clock) -> SnapshotReader {
        SnapshotReader { clock, latest: self.latest.subscribe() }
    }

    /// Puts a snapshot in the place of the one before.
    pub(crate) fn publish(&self, snapshot: Snapshot) {
        // A reader holds the place for as long as one more reference takes. What no reader holds of the
        // former snapshot ends here: as much as was new in this one.
        self.latest.send_replace(Arc::new(snapshot));
    }
}

impl SnapshotReader {
    /// The latest snapshot, even if the loop that publishes them hangs; `None` if it has ended.
    pub(crate) fn latest(&self) -> Option<Arc<Snapshot>> {
        // That its sender is gone a channel says by this error alone.
        self.latest.has_changed().ok()?;
        Some(Arc::clone(&self.latest.borrow()))
    }

    /// The latest snapshot; `None` if the loop that publishes them hangs or has ended.
    pub(crate) fn read(&self) -> Option<Arc<Snapshot>> {
        let latest = self.latest()?;
        (self.now().saturating_since(latest.at) <= SILENT_AFTER).then_some(latest)
    }

    /// The present time, from which ages count.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at: Timestamp) -> Snapshot {
        let (control, asked) = (ControlSnapshot::default(), SharedMap::default());
        Snapshot { owner: ReplicaName::new("autoscaler"), at, control, asked, callers: Callers::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_keeps_the_snapshot_that_it_has_and_finds_the_latest_one_next_time() {
        let clock = Clock::start();
        let (writer, reader) = snapshots(ReplicaName::new("autoscaler"), clock);
        let held = reader.read().expect("the loop has just begun");
        let at = clock.now() + Duration::from_millis(1);
        writer.publish(snapshot(at));
        assert_eq!(reader.read().map(|latest| latest.at), Some(at));
        assert!(held.at < at && Arc::strong_count(&held) == 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_publishes_no_more_is_silent() {
        let clock = Clock::start();
        let (writer, reader) = snapshots(ReplicaName::new("autoscaler"), clock);
        tokio::time::sleep(SILENT_AFTER).await;
        assert!(reader.read().is_some());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(reader.read().is_none(), "it hangs");
        writer.publish(snapshot(clock.now()));
        assert!(reader.read().is_some(), "it goes on");
        drop(writer);
        assert!(reader.read().is_none(), "it has ended");
    }
}
