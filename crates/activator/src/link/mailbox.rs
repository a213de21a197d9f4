//! What one link must still tell its owner: one slot per revision, in which only the latest counts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use vocabulary::{ActivatorWord, RevisionName, Version};

use crate::assigned_revision::AssignedRevision;

/// What was put for one link and has not left yet.
#[derive(Default)]
pub(super) struct Mailbox {
    news: RefCell<BTreeMap<RevisionName, RevisionNews>>,
    added: Notify,
}

/// What there is to say of one revision.
#[derive(Default)]
struct RevisionNews {
    /// It holds more or less than the owner was told; how much is asked when it may be said.
    present: Option<Arc<AssignedRevision>>,
    /// The newest version that is acted upon.
    acknowledged: Option<Version>,
    /// Others serve it, and it holds nothing any more.
    is_emptied: bool,
}

impl Mailbox {
    pub(super) fn present(&self, revision: &Arc<AssignedRevision>) {
        self.add(&revision.name, |news| news.present = Some(Arc::clone(revision)));
    }

    pub(super) fn acknowledged(&self, revision: &RevisionName, version: Version) {
        self.add(revision, |news| news.acknowledged = news.acknowledged.max(Some(version)));
    }

    pub(super) fn emptied(&self, revision: &RevisionName) {
        self.add(revision, |news| news.is_emptied = true);
    }

    /// Waits until something was added. Cancel-safe; what is added while nobody waits is kept.
    pub(super) async fn changed(&self) {
        self.added.notified().await;
    }

    /// What is to be said of the next revision, as it is now; empty when all was said.
    pub(super) fn next(&self) -> Option<Vec<ActivatorWord>> {
        let (revision, news) = self.news.borrow_mut().pop_first()?;
        let present = news.present.map(|holder| {
            let (count, oldest_wait) = holder.take_early_report();
            ActivatorWord::Present { revision: revision.clone(), count, oldest_wait }
        });
        let acknowledged = news
            .acknowledged
            .map(|version| ActivatorWord::Acknowledged { revision: revision.clone(), version });
        // After the rest: the owner goes by the last word.
        let emptied = news.is_emptied.then_some(ActivatorWord::Emptied { revision });
        Some([present, acknowledged, emptied].into_iter().flatten().collect())
    }

    fn add(&self, revision: &RevisionName, add: impl FnOnce(&mut RevisionNews)) {
        add(self.news.borrow_mut().entry(revision.clone()).or_default());
        self.added.notify_one();
    }
}
