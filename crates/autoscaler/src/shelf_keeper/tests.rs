//! Writes after each other, on a shelf that takes none, or waits.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forecasting::{DemandMinutes, MinuteDemand};
use futures_util::FutureExt as _;
use orchestration::{OrchestratorSettings, PlatformFact};
use parking_lot::Mutex;
use platform::ShelfFuture;
use scaling::DemandDays;
use settings::DemandMetric;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use vocabulary::RevisionName;

use super::*;
use crate::tests::revision;

const NOW: Timestamp = Timestamp::from_secs(100);
const BUCKET: Bucket = Bucket(0);

/// A shelf whose writes each wait for a permit, and fail while that is wanted.
struct GatedShelf {
    permits: Semaphore,
    is_failing: AtomicBool,
    under_way: AtomicUsize,
    /// Whether a write began while another one was under way.
    has_overlapped: AtomicBool,
    /// The days that were taken, in their order.
    taken: Mutex<Vec<u64>>,
}

impl GatedShelf {
    fn with_permits(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            permits: Semaphore::new(permits),
            is_failing: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
            has_overlapped: AtomicBool::new(false),
            taken: Mutex::new(Vec::new()),
        })
    }

    async fn take(&self, day: u64) -> Result<(), ShelfFault> {
        if self.under_way.fetch_add(1, Ordering::SeqCst) > 0 {
            self.has_overlapped.store(true, Ordering::SeqCst);
        }
        self.permits.acquire().await.expect("it is never closed").forget();
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        if self.is_failing.load(Ordering::SeqCst) {
            return Err(ShelfFault::Failed("the test wants it".to_owned()));
        }
        self.taken.lock().push(day);
        Ok(())
    }
}

impl HistoryShelf for GatedShelf {
    fn piece_bytes_max(&self) -> usize {
        1 << 20
    }

    fn read(&self, _bucket: Bucket) -> ShelfFuture<'_, Vec<ShelvedDay>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn write(&self, _fence: Fence, day: ShelvedDay) -> ShelfFuture<'_, ()> {
        Box::pin(self.take(day.day))
    }
}

/// A keeper that has read the one bucket, and the day that runs by then.
async fn keeper_of(shelf: &Arc<GatedShelf>) -> (ShelfKeeper, u64) {
    let mut keeper = ShelfKeeper::new(Arc::<GatedShelf>::clone(shelf), NOW);
    keeper.owns(&Ownership::of_everything(Epoch(1)));
    assert_eq!(ShelfKeeper::was_read(Some(&mut keeper)).await, Some(()));
    let day = keeper.buckets[&BUCKET].unwritten_day;
    (keeper, day)
}

/// One revision that was measured in the first minutes of a day.
fn measured_on(day: u64) -> ControlSnapshot {
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    let since_epoch = Duration::from_secs(day * DAY_SECONDS + 100);
    orchestrator.handle(ControlEvent::WallClockRead { since_epoch }, NOW);
    for fact in [
        PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(1))),
        PlatformFact::ConfigChanged(Arc::default()),
        PlatformFact::RevisionChanged(revision(1)),
        PlatformFact::ActivatorsChanged(Vec::new()),
        PlatformFact::Synced,
    ] {
        orchestrator.handle(ControlEvent::Platform(fact), NOW);
        while orchestrator.next_command().is_some() {}
    }
    orchestrator.snapshot(NOW)
}

/// Writes on this day, and waits for the end of that.
async fn write_on(keeper: &mut ShelfKeeper, day: u64) {
    keeper.write_on(day, measured_on(day), NOW);
    while keeper.writing.as_ref().is_some_and(|writing| !writing.task.is_finished()) {
        yield_now().await;
    }
}

#[tokio::test]
async fn the_end_of_a_day_is_written_until_a_write_of_it_has_succeeded() {
    let shelf = GatedShelf::with_permits(100);
    let (mut keeper, day) = keeper_of(&shelf).await;
    write_on(&mut keeper, day).await;
    shelf.is_failing.store(true, Ordering::SeqCst);
    write_on(&mut keeper, day + 1).await;
    assert_eq!(*shelf.taken.lock(), [day], "nothing more is taken");
    shelf.is_failing.store(false, Ordering::SeqCst);
    write_on(&mut keeper, day + 1).await;
    assert_eq!(*shelf.taken.lock(), [day, day, day + 1]);
    write_on(&mut keeper, day + 1).await;
    assert_eq!(*shelf.taken.lock(), [day, day, day + 1, day + 1]);
    write_on(&mut keeper, day + 2).await;
    assert_eq!(shelf.taken.lock()[4..], [day + 1, day + 2]);
}

#[tokio::test]
async fn a_shelf_that_takes_nothing_for_weeks_is_not_told_of_all_of_them_at_once() {
    let shelf = GatedShelf::with_permits(100);
    let (mut keeper, day) = keeper_of(&shelf).await;
    write_on(&mut keeper, day + 20).await;
    assert_eq!(*shelf.taken.lock(), [day + 17, day + 18, day + 19, day + 20]);
    // A clock that was put back writes the day that it shows.
    write_on(&mut keeper, day).await;
    assert_eq!(shelf.taken.lock()[4..], [day]);
}

/// A past of the last minute of the day before yesterday, and of the first one of yesterday.
fn past_before(today: u64) -> ImportedPast {
    let mut minutes = DemandMinutes::beginning_at((today - 1) * 24 * 60 - 1);
    for mean in [3.0, 4.0] {
        minutes.push(Some(MinuteDemand { mean, maximum: mean }));
    }
    let demand = Arc::new(DemandDays::of(DemandMetric::Concurrency, &minutes));
    let revision = RevisionName::parse("default/service/hello").expect("a name");
    ImportedPast { revision, demand }
}

#[tokio::test]
async fn a_past_that_was_told_is_written_to_its_days_until_the_shelf_takes_it() {
    let shelf = GatedShelf::with_permits(100);
    let (mut keeper, day) = keeper_of(&shelf).await;
    keeper.note_import(past_before(day), NOW);
    assert_eq!(keeper.write_at(), NOW + IMPORT_WRITTEN_WITHIN);
    shelf.is_failing.store(true, Ordering::SeqCst);
    write_on(&mut keeper, day).await;
    assert_eq!(*shelf.taken.lock(), [0; 0]);
    shelf.is_failing.store(false, Ordering::SeqCst);
    write_on(&mut keeper, day).await;
    assert_eq!(*shelf.taken.lock(), [day - 2, day - 1, day]);
    write_on(&mut keeper, day).await;
    assert_eq!(shelf.taken.lock()[3..], [day]);
}

#[tokio::test]
async fn a_past_does_not_wait_where_no_histories_may_be_kept() {
    let shelf = GatedShelf::with_permits(100);
    let (mut keeper, day) = keeper_of(&shelf).await;
    keeper.trouble = Some(ShelfFault::Forbidden("the test wants it".to_owned()));
    keeper.note_import(past_before(day), NOW);
    write_on(&mut keeper, day).await;
    assert_eq!(*shelf.taken.lock(), [day]);
    write_on(&mut keeper, day).await;
    assert!(keeper.imports.is_empty(), "nor does it come back with the end of the write");
}

#[tokio::test]
async fn the_last_write_begins_when_the_write_before_it_has_ended() {
    let shelf = GatedShelf::with_permits(0);
    let (mut keeper, day) = keeper_of(&shelf).await;
    keeper.write_on(day, measured_on(day), NOW);
    while shelf.under_way.load(Ordering::SeqCst) == 0 {
        yield_now().await;
    }
    let mut ending = Box::pin(keeper.finish_on(day, measured_on(day), NOW));
    for _ in 0..1000 {
        assert!(ending.as_mut().now_or_never().is_none(), "the former write has not ended");
        yield_now().await;
    }
    shelf.permits.add_permits(2);
    ending.await;
    assert_eq!(*shelf.taken.lock(), [day, day]);
    assert!(!shelf.has_overlapped.load(Ordering::SeqCst), "the older one might have won");
}
