//! The event loop's end of the way to a shelf of the platform: what an owner before us left of a bucket is
//! read when the bucket becomes ours, and what is measured is written every ten minutes and at the end.
//!
//! A bucket that could not be read is not written, or what stands there would be lost; it is read again when
//! it would be written. Until then its revisions are measured as if there were no past.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlEvent, ControlSnapshot, Fence, Orchestrator};
use platform::{HistoryShelf, ShelfFault, ShelvedDay};
use recording::PastHistories;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use vocabulary::{Bucket, Epoch, Ownership, Timestamp};

use crate::history_store::UnclaimedHistories;
use crate::history_write::{end_of_ended_write, end_of_write};
use crate::shelf_import::{DAY_SECONDS, ImportedPast};
use crate::shelf_write::{ShelfWrite, ShelfWriteOutcome, UnwrittenBucket};
use crate::wall_second::wall_second;

/// How often what was measured is written. An owner that is killed loses as much.
const WRITE_EVERY: Duration = Duration::from_mins(10);
/// How soon a past that was told is written: others may be told with it.
const IMPORT_WRITTEN_WITHIN: Duration = Duration::from_secs(30);
/// How long the end of an autoscaler waits for the platform (`STOP_MAX`).
const LAST_WRITE_MAX: Duration = Duration::from_secs(3);
/// Buckets whose past waits to be taken in.
const READS_MAX: usize = 4;

/// Moves histories from the shelf to revisions of buckets that become ours, and back.
pub(crate) struct ShelfKeeper {
    shelf: Arc<dyn HistoryShelf>,
    buckets: BTreeMap<Bucket, OwnedBucket>,
    /// Histories that were read, of revisions that have not appeared yet.
    read: UnclaimedHistories,
    reads: mpsc::Receiver<BucketRead>,
    reading: mpsc::Sender<BucketRead>,
    write_at: Timestamp,
    writing: Option<PendingShelfWrite>,
    /// Pasts that were told from elsewhere, and are not written yet.
    imports: Vec<ImportedPast>,
    /// Why the shelf could not be read last, which is said once.
    trouble: Option<ShelfFault>,
}

/// A write that was begun.
struct PendingShelfWrite {
    /// The day that ran by then.
    day: u64,
    task: JoinHandle<ShelfWriteOutcome>,
}

/// A bucket that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnedBucket {
    epoch: Epoch,
    state: BucketPast,
    /// The first day of which the shelf may lack an end: that of the last write that succeeded, whose end is
    /// written once more with the day after it.
    unwritten_day: u64,
}

/// How far the past of a bucket is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BucketPast {
    Asked,
    Known,
    Unreadable,
}

/// What a bucket's former owners left.
struct BucketRead {
    fence: Fence,
    past: Result<PastHistories, ShelfFault>,
}

impl ShelfKeeper {
    pub(crate) fn new(shelf: Arc<dyn HistoryShelf>, now: Timestamp) -> Self {
        let (reading, reads) = mpsc::channel(READS_MAX);
        Self {
            shelf,
            buckets: BTreeMap::new(),
            read: UnclaimedHistories::default(),
            reads,
            reading,
            write_at: now + WRITE_EVERY,
            writing: None,
            imports: Vec::new(),
            trouble: None,
        }
    }

    /// These buckets are ours from now on.
    pub(crate) fn owns(&mut self, ownership: &Ownership) {
        self.buckets.retain(|bucket, owned| ownership.epochs.get(bucket) == Some(&owned.epoch));
        for (&bucket, &epoch) in &ownership.epochs {
            if !self.buckets.contains_key(&bucket) {
                self.ask(Fence { bucket, epoch }, today());
            }
        }
    }

    /// Whether nothing more is expected of the shelf.
    pub(crate) fn has_read(&self) -> bool {
        self.buckets.values().all(|owned| owned.state != BucketPast::Asked)
    }

    /// Waits until a bucket was read; `None` where there is no shelf. Cancel-safe: what was not taken stays
    /// in the channel.
    pub(crate) async fn was_read(shelf: Option<&mut Self>) -> Option<()> {
        let keeper = shelf?;
        let read = keeper.reads.recv().await?;
        keeper.take_in(read);
        Some(())
    }

    fn take_in(&mut self, BucketRead { fence, past }: BucketRead) {
        let owned = self.buckets.get_mut(&fence.bucket).filter(|owned| owned.epoch == fence.epoch);
        // Another owner's by now.
        let Some(owned) = owned else { return };
        match past {
            Ok(past) => {
                for fault in &past.faults {
                    tracing::warn!(
                        fault,
                        "a part of the histories was not read, so it counts as not measured"
                    );
                }
                owned.state = BucketPast::Known;
                self.trouble = None;
                self.read.extend(past.histories);
            }
            Err(error) => {
                owned.state = BucketPast::Unreadable;
                if self.trouble.as_ref() != Some(&error) {
                    tracing::warn!(bucket = fence.bucket.0, %error, "histories of former owners cannot be read: revisions begin without a past, and what is measured is kept in memory until they can be");
                    self.trouble = Some(error);
                }
            }
        }
    }

    /// The event that gives the next history to its revision, which has appeared since; `None` if none has.
    pub(crate) fn next_restored(&self, orchestrator: &Orchestrator) -> Option<ControlEvent> {
        self.read.next_restored(orchestrator)
    }

    /// A past of a revision was told from elsewhere.
    pub(crate) fn note_import(&mut self, past: ImportedPast, now: Timestamp) {
        self.imports.push(past);
        self.write_at = self.write_at.min(now + IMPORT_WRITTEN_WITHIN);
    }

    /// When what was measured is to be written.
    pub(crate) fn write_at(&self) -> Timestamp {
        self.write_at
    }

    /// Begins to write what is measured of buckets that were read, and to read others again. A platform that
    /// is slower than ten minutes is not asked again meanwhile.
    pub(crate) fn write(&mut self, control: ControlSnapshot, now: Timestamp) {
        self.write_on(today(), control, now);
    }

    fn write_on(&mut self, day: u64, control: ControlSnapshot, now: Timestamp) {
        self.write_at = now + WRITE_EVERY;
        for (fence, unwritten_day) in self.buckets_with(BucketPast::Unreadable) {
            self.ask(fence, unwritten_day);
        }
        if let Some(PendingShelfWrite { day, task }) =
            self.writing.take_if(|writing| writing.task.is_finished())
        {
            self.note_written(day, end_of_ended_write(task));
        }
        if self.writing.is_none() {
            self.writing = Some(self.begin(day, control, now));
        }
    }

    /// Writes everything a last time, while what is ours is still ours: after the write that runs, which
    /// knows less and would else take its place.
    pub(crate) async fn finish(self, control: ControlSnapshot, now: Timestamp) {
        self.finish_on(today(), control, now).await;
    }

    async fn finish_on(mut self, day: u64, control: ControlSnapshot, now: Timestamp) {
        let all_written = async {
            if let Some(PendingShelfWrite { day, task }) = self.writing.take() {
                let written = end_of_write(task).await;
                self.note_written(day, written);
            }
            let last = self.begin(day, control, now);
            end_of_write(last.task).await;
        };
        if timeout(LAST_WRITE_MAX, all_written).await.is_err() {
            tracing::warn!(
                "the platform took the last histories too slowly: what was measured since the last write is lost"
            );
        }
    }

    /// The buckets of ours whose past is in this state, with the first day of each that is to be written.
    fn buckets_with(&self, state: BucketPast) -> Vec<(Fence, u64)> {
        let buckets = self.buckets.iter().filter(|(_, owned)| owned.state == state);
        let fence = |(&bucket, owned): (&Bucket, &OwnedBucket)| {
            (Fence { bucket, epoch: owned.epoch }, owned.unwritten_day)
        };
        buckets.map(fence).collect()
    }

    fn ask(&mut self, fence: Fence, unwritten_day: u64) {
        let asked = OwnedBucket { epoch: fence.epoch, state: BucketPast::Asked, unwritten_day };
        self.buckets.insert(fence.bucket, asked);
        let (from, reading) = (Arc::clone(&self.shelf), self.reading.clone());
        // Its end is an answer. After a panic in it none comes, and the bucket is never written.
        tokio::spawn(async move {
            let past = match from.read(fence.bucket).await {
                Ok(days) => histories_of(fence.bucket, days).await,
                Err(error) => Err(error),
            };
            // After the loop's end no receiver takes it in any more.
            let _ = reading.send(BucketRead { fence, past }).await;
        });
    }

    fn begin(&mut self, day: u64, control: ControlSnapshot, now: Timestamp) -> PendingShelfWrite {
        let known = self.buckets_with(BucketPast::Known).into_iter();
        let buckets = known.map(|(fence, since)| UnwrittenBucket { fence, since }).collect();
        let mut imports = std::mem::take(&mut self.imports);
        // A past would wait for ever, and take memory, where nobody lets ebb keep histories.
        if matches!(self.trouble, Some(ShelfFault::Forbidden(_))) {
            imports.clear();
        }
        let (to, write) = (Arc::clone(&self.shelf), ShelfWrite { control, now, day, buckets, imports });
        // The keeper waits for its end, or finds that it has come, by a panic too, before the next one
        // begins.
        PendingShelfWrite { day, task: tokio::spawn(async move { write.carry_out(&to).await }) }
    }

    /// A write of this day has ended: of some buckets the shelf has all days up to it. After a bug of ebb it
    /// has none.
    fn note_written(&mut self, day: u64, written: Option<ShelfWriteOutcome>) {
        let Some(ShelfWriteOutcome { fences, imports_left }) = written else { return };
        self.imports.extend(imports_left);
        for Fence { bucket, epoch } in fences {
            if let Some(owned) = self.buckets.get_mut(&bucket).filter(|owned| owned.epoch == epoch) {
                owned.unwritten_day = day;
            }
        }
    }
}

/// The day that runs, counted since that of 1970.
fn today() -> u64 {
    wall_second() / DAY_SECONDS
}

/// What the days of a bucket come to. Reading them may take a second, which no other task waits for.
async fn histories_of(bucket: Bucket, days: Vec<ShelvedDay>) -> Result<PastHistories, ShelfFault> {
    // Its end is waited for below, where a panic is told as a fault.
    let reading = spawn_blocking(move || {
        let mut past = PastHistories::default();
        for ShelvedDay { day, pieces } in &days {
            for (part, piece) in pieces.iter().enumerate() {
                let place = format!("the histories of bucket {}, day {day}, part {part}", bucket.0);
                past.take_in_piece(&place, piece);
            }
        }
        past
    });
    // A panic in it is a past that cannot be read.
    reading.await.map_err(|error| ShelfFault::Failed(error.to_string()))
}

#[cfg(test)]
mod tests;
