//! The words that one link has not sent yet: one slot per revision, in which only the latest word counts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Notify;
use vocabulary::{ActivatorWord, RevisionName, Version};

use crate::assigned_revision::AssignedRevision;

/// The words for one link that have not left yet.
#[derive(Default)]
pub(super) struct Mailbox {
    news: RefCell<BTreeMap<RevisionName, RevisionNews>>,
    added: Notify,
}

/// The words about one revision.
#[derive(Default)]
struct RevisionNews {
    /// The revision holds more or less than was reported; the count is taken when it is sent.
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

    /// Waits until something was added. Cancel-safe; what is added while no task waits is kept.
    pub(super) async fn changed(&self) {
        self.added.notified().await;
    }

    /// The words about the next revision, with the counts of this moment; `None` when nothing is left to
    /// send.
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
