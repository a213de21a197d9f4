//! Does the host of a peer whose link is silent or broken still take connections?
//!
//! A link says whether a process talks. A process that stalls talks no more, but its kernel accepts
//! connections, and so do clients' connections find it. A host without power or network accepts none. So
//! where a link is late or broke, its port is dialled beside it, as far as TCP, and the event loop hears when
//! two of these looks in a row failed. What follows from that is decided there, from the looks at all peers.
//!
//! ```text
//!   linked ── late, or broken ──► suspected ── two looks failed ──► told `Unreachable`, and again
//!     ▲                             │   ▲                               │
//!     └─────────── a frame ─────────┴───┴── a look was accepted ────────┘
//! ```

use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use link::Dial;
use orchestration::{ControlEvent, LinkId, LinkNews};
use runtime::Clock;
use tokio::sync::{Semaphore, mpsc, watch};
use vocabulary::{LinkAddress, Timestamp};

/// How long a look may take, and how far two of them lie apart: a refusal comes at once, and two within a
/// millisecond would be one.
const LOOK_WITHIN: Duration = Duration::from_millis(500);
/// The wait between two looks once one was accepted, or once two have failed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The least time until the event loop is told again: it may have put the word aside while it was cut off.
const TOLD_EVERY: Duration = Duration::from_secs(2);
/// So many failures in a row are told.
const FAILURES_TOLD: u32 = 2;
/// Looks under way at once, of all links: the pods of two full nodes. They have no turn of the pacer's, which
/// the same dead node's links may hold.
pub(super) const LOOKS_AT_ONCE_MAX: usize = 256;

/// Dials one peer beside its silent link, to learn whether its host lives.
pub(super) struct Lookout {
    pub(super) link: LinkId,
    pub(super) address: LinkAddress,
    pub(super) clock: Clock,
    pub(super) dialler: Arc<dyn Dial>,
    pub(super) events: mpsc::Sender<ControlEvent>,
    /// One turn for each look under way, of all links together.
    pub(super) turns: Arc<Semaphore>,
    /// Since when the peer should have been heard; `None` while all is well.
    pub(super) trouble: watch::Receiver<Option<Timestamp>>,
    pub(super) spell: LookSpell,
}

/// The looks during one trouble.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LookSpell {
    /// Since when the peer should have been heard, by which a spell is known.
    since: Timestamp,
    /// When the last look was accepted.
    accepted_at: Option<Timestamp>,
    /// Looks that failed, in a row.
    failures: u32,
    told_at: Option<Timestamp>,
}

/// How a look beside a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookAnswer {
    Accepted,
    Failed,
    /// The look itself did not come about.
    Unknown,
}

impl Lookout {
    /// Does the work, and looks meanwhile as long as there is trouble.
    pub(super) async fn beside<Work: Future>(&mut self, work: Work) -> Work::Output {
        // In a box of its own, which is there only while a link is not well.
        let look = Box::pin(self.look());
        // Cancel-safe: a look that is dropped is made again, and what the earlier ones found stays.
        tokio::select! {
            biased;
            done = work => done,
            never = look => match never {},
        }
    }

    async fn look(&mut self) -> Infallible {
        loop {
            let since = self.troubled_since().await;
            if self.spell.since != since {
                self.spell = LookSpell { since, ..LookSpell::default() };
            }
            let began = self.clock.now();
            let wait = match self.look_once().await {
                LookAnswer::Accepted => self.note_accepted().await,
                LookAnswer::Failed => self.note_failed(began).await,
                LookAnswer::Unknown => LOOK_EVERY,
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn troubled_since(&mut self) -> Timestamp {
        if let Ok(trouble) = self.trouble.wait_for(Option::is_some).await
            && let Some(since) = *trouble
        {
            return since;
        }
        // The link's task has ended, and this with it.
        std::future::pending().await
    }

    async fn look_once(&self) -> LookAnswer {
        let _turn = self.turns.acquire().await.expect("the semaphore is never closed");
        let Ok(reached) = tokio::time::timeout(LOOK_WITHIN, self.dialler.reach(self.address)).await else {
            return LookAnswer::Failed;
        };
        match reached.map_err(|error| error.kind()) {
            Ok(()) => LookAnswer::Accepted,
            Err(
                ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::TimedOut,
            ) => LookAnswer::Failed,
            // No descriptor or port was left here, which says nothing of the peer.
            Err(_) => LookAnswer::Unknown,
        }
    }

    async fn note_accepted(&mut self) -> Duration {
        let is_first = self.spell.accepted_at.replace(self.clock.now()).is_none();
        if is_first || self.spell.failures >= FAILURES_TOLD {
            self.tell(LinkNews::Accepting).await;
        }
        self.spell.failures = 0;
        LOOK_EVERY
    }

    async fn note_failed(&mut self, began: Timestamp) -> Duration {
        let now = self.clock.now();
        self.spell.failures += 1;
        if self.spell.failures < FAILURES_TOLD {
            return LOOK_WITHIN.saturating_sub(now.saturating_since(began));
        }
        let LookSpell { since, accepted_at, told_at, .. } = self.spell;
        if told_at.is_none_or(|at| now.saturating_since(at) >= TOLD_EVERY) {
            // It was heard, in a way, when it accepted; and what is told again is what was found since.
            let since = [Some(since), accepted_at, told_at].into_iter().flatten().max().unwrap_or(since);
            self.spell.told_at = Some(now);
            self.tell(LinkNews::Unreachable { since }).await;
        }
        LOOK_EVERY
    }

    async fn tell(&self, news: LinkNews) {
        // The receiver goes only when the event loop ends, and all links with it.
        let _ = self.events.send(ControlEvent::LinkChanged { link: self.link, news }).await;
    }
}
