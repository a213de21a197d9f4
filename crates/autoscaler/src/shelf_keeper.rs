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
use recording::{HistoryPieces, PastHistories, StoredHistory};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use vocabulary::{Bucket, Epoch, Ownership, Timestamp};

use crate::history_store::UnclaimedHistories;
use crate::history_write::{end_of_ended_write, end_of_write};
use crate::wall_second::wall_second;

/// How often what was measured is written. An owner that is killed loses as much.
const WRITE_EVERY: Duration = Duration::from_mins(10);
/// How long the end of an autoscaler waits for the platform (`STOP_MAX`).
const LAST_WRITE_MAX: Duration = Duration::from_secs(3);
const DAY_SECONDS: u64 = 86_400;
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
    writing: Option<JoinHandle<()>>,
    /// The day that was written last: its end is written once more with the next one.
    day: Option<u64>,
    /// Why the shelf could not be read last, which is said once.
    trouble: Option<ShelfFault>,
}

/// A bucket that is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnedBucket {
    epoch: Epoch,
    state: BucketPast,
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
            day: None,
            trouble: None,
        }
    }

    /// These buckets are ours from now on.
    pub(crate) fn owns(&mut self, ownership: &Ownership) {
        self.buckets.retain(|bucket, owned| ownership.epochs.get(bucket) == Some(&owned.epoch));
        for (&bucket, &epoch) in &ownership.epochs {
            if !self.buckets.contains_key(&bucket) {
                self.ask(Fence { bucket, epoch });
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

    /// When what was measured is to be written.
    pub(crate) fn write_at(&self) -> Timestamp {
        self.write_at
    }

    /// Begins to write what is measured of buckets that were read, and to read others again. A platform that
    /// is slower than ten minutes is not asked again meanwhile.
    pub(crate) fn write(&mut self, control: ControlSnapshot, now: Timestamp) {
        self.write_at = now + WRITE_EVERY;
        for fence in self.fences_with(BucketPast::Unreadable) {
            self.ask(fence);
        }
        if let Some(ended) = self.writing.take_if(|writing| writing.is_finished()) {
            end_of_ended_write(ended);
        }
        if self.writing.is_none() {
            self.writing = Some(self.begin(control, now));
        }
    }

    /// Writes everything a last time, while what is ours is still ours.
    pub(crate) async fn finish(mut self, control: ControlSnapshot, now: Timestamp) {
        let (former, last) = (self.writing.take(), self.begin(control, now));
        let all_written = async {
            for writing in former.into_iter().chain([last]) {
                end_of_write(writing).await;
            }
        };
        if timeout(LAST_WRITE_MAX, all_written).await.is_err() {
            tracing::warn!(
                "the platform took the last histories too slowly: what was measured since the last write is lost"
            );
        }
    }

    /// The buckets of ours whose past is in this state.
    fn fences_with(&self, state: BucketPast) -> Vec<Fence> {
        let buckets = self.buckets.iter().filter(|(_, owned)| owned.state == state);
        buckets.map(|(&bucket, owned)| Fence { bucket, epoch: owned.epoch }).collect()
    }

    fn ask(&mut self, fence: Fence) {
        self.buckets.insert(fence.bucket, OwnedBucket { epoch: fence.epoch, state: BucketPast::Asked });
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

    fn begin(&mut self, control: ControlSnapshot, now: Timestamp) -> JoinHandle<()> {
        let today = wall_second() / DAY_SECONDS;
        let first = self.day.replace(today).filter(|day| *day + 1 == today).unwrap_or(today);
        let (to, fences) = (Arc::clone(&self.shelf), self.fences_with(BucketPast::Known));
        // The keeper waits for its end, or finds that it has come, by a panic too, before the next one
        // begins.
        tokio::spawn(async move {
            for day in first..=today {
                write_day(&to, &fences, DayWrite { control: control.clone(), now, day }).await;
            }
        })
    }
}

/// What is known at `now`, of this day and what came after.
#[derive(Clone)]
struct DayWrite {
    control: ControlSnapshot,
    now: Timestamp,
    day: u64,
}

async fn write_day(shelf: &Arc<dyn HistoryShelf>, fences: &[Fence], write: DayWrite) {
    let (bytes_max, day) = (shelf.piece_bytes_max(), write.day);
    // Its end is waited for here, and its panic goes on here.
    let packed = spawn_blocking(move || write.packed(bytes_max)).await;
    let mut packed = match packed {
        Ok(packed) => packed,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_stopped) => return,
    };
    for fence in fences {
        let Some(pieces) = packed.remove(&fence.bucket) else { continue };
        for revision in &pieces.too_large {
            tracing::warn!(%revision, "its history of a day is too large for the platform's store, and is kept in memory");
        }
        let day = ShelvedDay { day, pieces: pieces.pieces };
        match shelf.write(*fence, day).await {
            // The next owner writes it; a right that is missing was told of when nothing could be read.
            Ok(()) | Err(ShelfFault::NotOwner | ShelfFault::Forbidden(_)) => {}
            Err(error @ (ShelfFault::Full { .. } | ShelfFault::Failed(_))) => {
                tracing::warn!(bucket = fence.bucket.0, %error, "histories are kept in memory alone, and another owner would begin without them; it is tried again in ten minutes");
            }
        }
    }
}

impl DayWrite {
    /// The histories of each bucket since the beginning of the day.
    fn packed(&self, bytes_max: usize) -> BTreeMap<Bucket, HistoryPieces> {
        let mut of_buckets = BTreeMap::<Bucket, Vec<StoredHistory>>::new();
        let since = self.day.saturating_mul(DAY_SECONDS);
        for (revision, record) in self.control.history_records_since(self.now, |_| Some(since)) {
            let fence = self.control.view(revision, self.now).and_then(|view| view.fence());
            if let Some(fence) = fence {
                let part = StoredHistory { revision: revision.clone(), record };
                of_buckets.entry(fence.bucket).or_default().push(part);
            }
        }
        let packed = of_buckets.into_iter().filter_map(|(bucket, histories)| {
            // It was made a moment ago: numbers and bytes can be written.
            Some((bucket, HistoryPieces::of(&histories, bytes_max).ok()?))
        });
        packed.collect()
    }
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
