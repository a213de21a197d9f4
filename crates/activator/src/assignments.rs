//! What the autoscalers assigned to this activator, for all of its threads: which revisions, under which
//! hosts.
//!
//! Which assignment is in force, and which owner speaks on which link, is decided by a value
//! ([`throttling::ActivatorRevisions`]). The thread of the links hands it events, with a lock that no request
//! takes: requests find their revision under its host, in a map that the value's commands change. Until the
//! revisions of every bucket were named once, no host is known to be unknown.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;
use throttling::{
    ActivatorCommand, ActivatorEvent, ActivatorIdentity, ActivatorRevisions, LinkNumber, QueueLimits,
    UpkeepId,
};
use tokio::sync::watch;
use vocabulary::{ActivatorWord, BootId, HeadSizeLimit, RevisionName, Timestamp};

use crate::context::{Context, random_number};
use crate::host_search;
use crate::shared_revision::{RevisionHandle, SharedRevision};

/// How many callers one word names at most, whatever the number of revisions.
const CALLERS_PER_WORD_MAX: usize = 1000;

/// What an event asks of the thread of the links.
pub(crate) enum LinkDuty {
    /// End a link that stands.
    Close(LinkNumber),
    /// Write on a link what is to be said there.
    Write(LinkNumber),
    /// Do what an assignment asks for before it is acknowledged.
    CarryOut(Upkeep),
}

/// Work that an assignment asks for before it is acknowledged.
pub(crate) struct Upkeep {
    pub(crate) id: UpkeepId,
    pub(crate) revision: RevisionName,
    /// The revision, if it is still known.
    pub(crate) known: Option<Arc<SharedRevision>>,
    /// Pods that are left: no idle connection to them may be kept.
    pub(crate) closed: Vec<SocketAddr>,
    /// All ports of the revision.
    pub(crate) ports: BTreeSet<u16>,
}

/// All revisions of an activator.
pub(crate) struct Assignments {
    context: Arc<Context>,
    /// The revision of each host.
    by_host: DashMap<String, Arc<SharedRevision>>,
    /// How often one of them has changed. Every request reads it.
    host_changes: AtomicU64,
    /// Taken by the thread of the links, and by a look at what the activator holds.
    known: Mutex<ActivatorRevisions<RevisionHandle>>,
    /// How large a head may be while its revision is not known, in bytes. Read before every head.
    head_size_max: AtomicU32,
    /// Changes whenever a host may have become known, or unknown for certain.
    news: watch::Sender<AssignmentNews>,
}

/// The state of the assignments that a request for an unknown host waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AssignmentNews {
    /// Whether the revisions of every bucket were named at least once.
    pub(crate) is_synced: bool,
    changes: u64,
}

impl Assignments {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        let identity = ActivatorIdentity { name: context.name.clone(), boot: BootId(random_number()) };
        let limits = QueueLimits {
            per_revision: context.limits.waiting_per_revision,
            in_all: context.limits.waiting_in_all,
        };
        let (seed, now) = (random_number(), context.clock.now());
        let known = ActivatorRevisions::new(identity, limits, Arc::clone(&context), seed, now);
        Self {
            context,
            by_host: DashMap::new(),
            host_changes: AtomicU64::new(0),
            known: Mutex::new(known),
            head_size_max: AtomicU32::new(HeadSizeLimit::MAX.bytes()),
            news: watch::Sender::new(AssignmentNews::default()),
        }
    }

    /// The revision behind a host: lower case, without port; empty for a request without one. The host itself
    /// wins over a wildcard.
    pub(crate) fn find(&self, host: &str) -> Option<Arc<SharedRevision>> {
        let at = |host: &str| self.by_host.get(host).map(|entry| Arc::clone(entry.value()));
        at(host).or_else(|| host_search::stand_ins(host).find_map(|host| at(&host)))
    }

    /// How often the answers of [`Assignments::find`] may have changed so far.
    pub(crate) fn host_changes(&self) -> u64 {
        self.host_changes.load(Ordering::Acquire)
    }

    /// How large the head of a request may be while its revision is not known.
    pub(crate) fn head_size_max(&self) -> HeadSizeLimit {
        let bytes = self.head_size_max.load(Ordering::Relaxed);
        HeadSizeLimit::new(bytes).expect("nothing but limits is stored")
    }

    /// Whether the revisions of every bucket were named at least once.
    pub(crate) fn is_synced(&self) -> bool {
        self.news.borrow().is_synced
    }

    /// Tells of every change that may let [`Assignments::find`] answer otherwise.
    pub(crate) fn news(&self) -> watch::Receiver<AssignmentNews> {
        self.news.subscribe()
    }

    /// All revisions that are known, in the order of their names.
    pub(crate) fn revisions(&self) -> Vec<Arc<SharedRevision>> {
        self.known.lock().cells().map(|(_, handle)| Arc::clone(handle.shared())).collect()
    }

    /// Something happened. What concerns requests is done before the return; the rest is returned.
    pub(crate) fn handle(&self, event: ActivatorEvent) -> Vec<LinkDuty> {
        let now = self.context.clock.now();
        let mut known = self.known.lock();
        if let ActivatorEvent::RevisionIsDue { revision } = &event
            && let Some(handle) = known.cell(revision)
        {
            handle.shared().note_due();
        }
        known.handle(event, now);
        let mut duties = Vec::new();
        while let Some(command) = known.next_command() {
            duties.extend(self.carry_out(&known, command));
        }
        duties
    }

    /// When [`ActivatorEvent::TimePassed`] is to be said next.
    pub(crate) fn next_deadline(&self) -> Timestamp {
        self.known.lock().next_deadline()
    }

    /// The next words for a link that can be written to; nothing if there are none.
    pub(crate) fn next_words(&self, link: LinkNumber) -> Vec<ActivatorWord> {
        let now = self.context.clock.now();
        self.known.lock().next_words(link, now)
    }

    /// Adds the latest callers of each revision to a word about the load of a second.
    pub(crate) fn name_callers(&self, word: &mut ActivatorWord) {
        let ActivatorWord::Loads { loads, .. } = word else { return };
        let (now, known) = (self.context.clock.now(), self.known.lock());
        let mut left = CALLERS_PER_WORD_MAX;
        for load in loads {
            let Some(handle) = known.cell(&load.revision) else { continue };
            load.callers = handle.shared().callers.lately(now);
            load.callers.truncate(left);
            left -= load.callers.len();
        }
    }

    /// A host leads elsewhere from now on. Counted after the change: what is found before it counts was found
    /// under the number before.
    fn note_host_change(&self) {
        self.host_changes.fetch_add(1, Ordering::Release);
        self.news.send_modify(|news| news.changes += 1);
    }

    /// Carries out a command, unless it is the duty of the thread of the links.
    fn carry_out(
        &self,
        known: &ActivatorRevisions<RevisionHandle>,
        command: ActivatorCommand,
    ) -> Option<LinkDuty> {
        match command {
            ActivatorCommand::CloseLink { link } => return Some(LinkDuty::Close(link)),
            ActivatorCommand::Write { link } => return Some(LinkDuty::Write(link)),
            ActivatorCommand::CarryOut { upkeep: id, revision, closed, ports } => {
                let known = known.cell(&revision).map(|handle| Arc::clone(handle.shared()));
                return Some(LinkDuty::CarryOut(Upkeep { id, revision, known, closed, ports }));
            }
            ActivatorCommand::LeadHost { host, revision } => {
                if let Some(handle) = known.cell(&revision) {
                    let former = self.by_host.insert(host, Arc::clone(handle.shared()));
                    // Each change of a pod brings an assignment, which names all hosts of its revision again.
                    if former.is_none_or(|former| !Arc::ptr_eq(&former, handle.shared())) {
                        self.note_host_change();
                    }
                }
            }
            ActivatorCommand::ReleaseHost { host } => {
                self.by_host.remove(&host);
                self.note_host_change();
            }
            ActivatorCommand::LimitHeads { limit } => {
                self.head_size_max.store(limit.bytes(), Ordering::Relaxed);
            }
            ActivatorCommand::NoteSynced => self.news.send_modify(|news| {
                news.is_synced = true;
                news.changes += 1;
            }),
            ActivatorCommand::NoteReleased => self.context.released.cancel(),
            ActivatorCommand::CountStaleOrder => {
                self.context.metrics.stale_assignments.inc();
            }
            // Of revisions behind a lock none comes here: each was carried out under the lock.
            ActivatorCommand::Grant { .. } | ActivatorCommand::Refuse { .. } => {}
        }
        None
    }
}
