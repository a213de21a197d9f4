//! Histories in the turns of the loop: from a store, or from the platform's shelf, to revisions that appear,
//! and back.

use std::sync::Arc;

use orchestration::ControlEvent;
use vocabulary::Timestamp;

use super::EventLoop;
use crate::history_keeper::HistoryKeeper;
use crate::shelf_import::ImportedPast;
use crate::shelf_keeper::ShelfKeeper;

impl EventLoop {
    /// Gives revisions that have appeared what a store has of them, before anything is decided about them.
    pub(super) fn restore_histories(&mut self) {
        while let Some(event) = self.next_restored() {
            self.tell(event);
        }
    }

    fn next_restored(&self) -> Option<ControlEvent> {
        let orchestrator = &self.orchestrator;
        let kept = self.keeper.as_ref().and_then(|keeper| keeper.next_restored(orchestrator));
        kept.or_else(|| self.shelf.as_ref()?.next_restored(orchestrator))
    }

    /// A past that was told from elsewhere is kept, too, though it is older than what was written last.
    pub(super) fn note_import(&mut self, event: &ControlEvent, now: Timestamp) {
        let ControlEvent::DemandImported { revision, demand } = event else { return };
        if let Some(keeper) = &mut self.keeper {
            keeper.note_import(revision.clone());
        }
        if let Some(shelf) = &mut self.shelf {
            let past = ImportedPast { revision: revision.clone(), demand: Arc::clone(demand) };
            shelf.note_import(past, now);
        }
    }

    /// When what was measured is to be written, if it is.
    pub(super) fn write_histories_at(&self) -> Option<Timestamp> {
        let kept = self.keeper.as_ref().map(HistoryKeeper::write_at);
        let shelved = self.shelf.as_ref().map(ShelfKeeper::write_at);
        kept.into_iter().chain(shelved).min()
    }

    /// Begins to write what was measured, where that is due.
    pub(super) fn write_histories(&mut self, now: Timestamp) {
        if let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.write_at() <= now) {
            keeper.write(self.orchestrator.snapshot(now), now);
        }
        if let Some(shelf) = self.shelf.as_mut().filter(|shelf| shelf.write_at() <= now) {
            shelf.write(self.orchestrator.snapshot(now), now);
        }
    }

    /// Writes histories a last time, for the next owner.
    pub(super) async fn finish_histories(&mut self) {
        let now = self.clock.now();
        self.orchestrator.sweep(now);
        if let Some(keeper) = self.keeper.take() {
            keeper.finish(self.orchestrator.snapshot(now), now).await;
        }
        if let Some(shelf) = self.shelf.take() {
            shelf.finish(self.orchestrator.snapshot(now), now).await;
        }
    }
}
