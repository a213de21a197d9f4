//! One write to a shelf of the platform: the histories of buckets, a day after the other, up to the day that
//! runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{ControlSnapshot, Fence};
use platform::{HistoryShelf, ShelfFault, ShelvedDay};
use recording::{HistoryPieces, StoredHistory};
use tokio::task::spawn_blocking;
use vocabulary::{Bucket, Timestamp};

use crate::shelf_import::{DAY_SECONDS, ImportedPast, add_pasts};

/// A shelf has so many days before the one that runs.
const DAYS_KEPT: u64 = 15;
/// Days before this one that are written again, where writes of them failed. Each day is packed from all
/// histories, and a platform that takes nothing for longer has greater troubles.
const FORMER_DAYS_MAX: u64 = 3;

/// What is known at `now`, and is to be written.
#[derive(Clone)]
pub(crate) struct ShelfWrite {
    pub(crate) control: ControlSnapshot,
    pub(crate) now: Timestamp,
    /// The day that runs, counted since that of 1970.
    pub(crate) day: u64,
    pub(crate) buckets: Vec<UnwrittenBucket>,
    /// Pasts that were told since the last write.
    pub(crate) imports: Vec<ImportedPast>,
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) struct ShelfWriteOutcome {
    /// The buckets of which nothing has to be written again.
    pub(crate) fences: Vec<Fence>,
    /// Pasts that the shelf does not have yet.
    pub(crate) imports_left: Vec<ImportedPast>,
}

/// A bucket that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnwrittenBucket {
    pub(crate) fence: Fence,
    /// The first day of which the shelf may lack an end.
    pub(crate) since: u64,
}

impl UnwrittenBucket {
    /// The first day that is written. A clock that was put back may make it the day that runs.
    fn first_day(&self, today: u64) -> u64 {
        self.since.clamp(today.saturating_sub(FORMER_DAYS_MAX), today)
    }
}

impl ShelfWrite {
    /// Writes all days, the oldest first.
    pub(crate) async fn carry_out(mut self, history_shelf: &Arc<dyn HistoryShelf>) -> ShelfWriteOutcome {
        let today = self.day;
        let imports_left = self.write_imports(history_shelf).await;
        let mut written: Vec<Fence> = self.buckets.iter().map(|bucket| bucket.fence).collect();
        let first = self.buckets.iter().map(|bucket| bucket.first_day(today)).min().unwrap_or(today);
        for day in first..=today {
            let failed = self.write_day(history_shelf, day).await;
            written.retain(|fence| !failed.contains(fence));
        }
        ShelfWriteOutcome { fences: written, imports_left }
    }

    /// Writes what was told of the days before those that are written anyway. Returns what is to be told
    /// again; what is not ours by now is another owner's.
    async fn write_imports(&mut self, history_shelf: &Arc<dyn HistoryShelf>) -> Vec<ImportedPast> {
        let mut of_buckets = BTreeMap::<Bucket, Vec<ImportedPast>>::new();
        for past in std::mem::take(&mut self.imports) {
            let fence = self.control.view(&past.revision, self.now).and_then(|view| view.fence());
            if let Some(fence) = fence {
                of_buckets.entry(fence.bucket).or_default().push(past);
            }
        }
        for bucket in &self.buckets {
            let Some(pasts) = of_buckets.get(&bucket.fence.bucket).cloned() else { continue };
            let days = self.day.saturating_sub(DAYS_KEPT)..bucket.first_day(self.day);
            match add_pasts(history_shelf, bucket.fence, days, pasts).await {
                Ok(()) | Err(ShelfFault::NotOwner | ShelfFault::Forbidden(_)) => {
                    of_buckets.remove(&bucket.fence.bucket);
                }
                Err(error @ (ShelfFault::Full { .. } | ShelfFault::Failed(_))) => {
                    tracing::warn!(bucket = bucket.fence.bucket.0, %error, "a past that was told is in memory alone; it is tried again in ten minutes");
                }
            }
        }
        of_buckets.into_values().flatten().collect()
    }

    /// Writes one day, and returns the buckets of which the shelf did not take it.
    async fn write_day(&self, history_shelf: &Arc<dyn HistoryShelf>, day: u64) -> Vec<Fence> {
        let due = self.buckets.iter().filter(|bucket| bucket.first_day(self.day) <= day);
        let fences: Vec<Fence> = due.map(|bucket| bucket.fence).collect();
        let (packing, bytes_max) = (self.clone(), history_shelf.piece_bytes_max());
        // Its end is waited for here, and its panic goes on here.
        let packed = spawn_blocking(move || packing.packed(day, bytes_max)).await;
        let mut packed = match packed {
            Ok(packed) => packed,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_stopped) => return fences,
        };
        let mut failed = Vec::new();
        for fence in fences {
            let Some(pieces) = packed.remove(&fence.bucket) else { continue };
            for revision in &pieces.too_large {
                tracing::warn!(%revision, "its history of a day is too large for the platform's store, and is kept in memory");
            }
            match history_shelf.write(fence, ShelvedDay { day, pieces: pieces.pieces }).await {
                // The next owner writes it; a right that is missing was told of when nothing could be read.
                Ok(()) | Err(ShelfFault::NotOwner | ShelfFault::Forbidden(_)) => {}
                Err(error @ (ShelfFault::Full { .. } | ShelfFault::Failed(_))) => {
                    tracing::warn!(bucket = fence.bucket.0, day, %error, "histories are kept in memory alone, and another owner would begin without them; it is tried again in ten minutes");
                    failed.push(fence);
                }
            }
        }
        failed
    }

    /// The histories of each bucket since the beginning of a day.
    fn packed(&self, day: u64, bytes_max: usize) -> BTreeMap<Bucket, HistoryPieces> {
        let mut of_buckets = BTreeMap::<Bucket, Vec<StoredHistory>>::new();
        let since = day.saturating_mul(DAY_SECONDS);
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
