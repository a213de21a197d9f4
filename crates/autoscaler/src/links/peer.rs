//! The peer of one link: how it is dialled, when people hear that it cannot be reached, and when the next
//! attempt comes.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use link::{Dial, HEARTBEAT_EVERY, LATE_AFTER, LinkError, Message, Reader, Reception, Writer};
use orchestration::{ControlEvent, LinkId, LinkNews, Priority};
use runtime::{Backoff, Clock, ErrorChain};
use tokio::sync::{Semaphore, mpsc, watch};
use vocabulary::{LinkAddress, Timestamp};

use super::lookout::{LookSpell, Lookout};
use super::pacer::Pacer;
use crate::metrics::{AutoscalerMetrics, LinkEnding, PeerKind};

/// The first and the largest wait between two attempts.
pub(super) const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// The largest wait before the first link to a pod that requests wait for: its address is known a moment
/// before it listens, and what its first request may lose by a wait is half of it.
const AWAITED_WAIT_MAX: Duration = Duration::from_millis(10);
/// How long waits stay so short. A pod that does not listen by then has other troubles.
pub(super) const AWAITED_FOR: Duration = Duration::from_secs(5);
/// A link that lived this long was a good one: the next attempt begins with the least wait.
const GOOD_LINK: Duration = Duration::from_secs(5);
/// Two refused attempts within this time mean that the port is closed.
pub(super) const REFUSALS_WITHIN: Duration = Duration::from_millis(200);
/// The wait between these two, at most.
const SECOND_LOOK_AFTER: Duration = Duration::from_millis(50);
/// An attempt without an answer for this long gives its turn to others: a dead node's pods would hold all
/// turns for the ten seconds that an attempt may take.
const TURN_MAX: Duration = Duration::from_millis(500);
/// Without a link for this long, people are told.
const BLOCKED_AFTER: Duration = Duration::from_secs(60);

/// The pod or activator that a link task dials.
pub(super) struct LinkTarget {
    pub(super) id: LinkId,
    pub(super) kind: PeerKind,
    pub(super) name: String,
    pub(super) address: LinkAddress,
    pub(super) priority: Priority,
}

/// Whether a process listens where a link stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalSpell {
    /// No link stood yet, so a refusal says nothing: it may not listen yet.
    NeverLinked,
    /// No attempt was refused since the link stood.
    No,
    /// One attempt was refused, then.
    Once { at: Timestamp },
    /// Another one too, and the event loop knows.
    Told,
}

/// The peer that a link task dials, with everything for dialling it.
pub(super) struct LinkPeer {
    pub(super) target: LinkTarget,
    pub(super) clock: Clock,
    pub(super) dialler: Arc<dyn Dial>,
    pub(super) metrics: AutoscalerMetrics,
    pub(super) events: mpsc::Sender<ControlEvent>,
    pub(super) pacer: Pacer,
    pub(super) looks: Arc<Semaphore>,
    /// Since when the peer should have been heard; `None` while all is well.
    pub(super) trouble: watch::Sender<Option<Timestamp>>,
    pub(super) backoff: Backoff,
    pub(super) failing: Option<FailureSpell>,
    pub(super) refusing: RefusalSpell,
}

/// Since when there has been no link, and whether people were told.
pub(super) struct FailureSpell {
    since: Timestamp,
    is_told: bool,
}

impl LinkPeer {
    /// Dials until the peer takes the connection.
    pub(super) async fn connect<In: Message, Out: Message>(&mut self) -> (Reader<In>, Writer<Out>) {
        loop {
            match self.dial().await {
                Ok(ends) => return ends,
                Err(error) => {
                    self.suspect(self.clock.now());
                    self.note_refusal(&error).await;
                    let why = ErrorChain(&error).to_string();
                    self.failed(why).await;
                }
            }
        }
    }

    /// One attempt, at its turn.
    async fn dial<In: Message, Out: Message>(&self) -> Result<(Reader<In>, Writer<Out>), LinkError> {
        let turn = self.pacer.turn(self.target.priority).await;
        let mut dialling = std::pin::pin!(link::dial_with(&*self.dialler, self.target.address));
        let answer = tokio::time::timeout(TURN_MAX, &mut dialling).await;
        // A turn is for dialling. What follows may wait for a second, and would keep others from it.
        drop(turn);
        if let Ok(dialled) = answer {
            return dialled;
        }
        self.suspect(self.clock.now());
        dialling.await
    }

    /// What looks at this peer while its link is not well.
    pub(super) fn lookout(&self) -> Lookout {
        Lookout {
            link: self.target.id,
            address: self.target.address,
            clock: self.clock,
            dialler: Arc::clone(&self.dialler),
            events: self.events.clone(),
            turns: Arc::clone(&self.looks),
            trouble: self.trouble.subscribe(),
            spell: LookSpell::default(),
        }
    }

    /// The peer should have been heard since then.
    fn suspect(&self, since: Timestamp) {
        self.trouble.send_if_modified(|trouble| {
            let is_news = trouble.is_none();
            trouble.get_or_insert(since);
            is_news
        });
    }

    /// The next message, and looks at the peer while it is late.
    pub(super) async fn next<In: Message>(
        &self,
        reader: &mut Reader<In>,
        lookout: &mut Lookout,
    ) -> Result<Option<In>, LinkError> {
        match reader.received().await? {
            Reception::Message(message) => return Ok(Some(message)),
            Reception::End => return Ok(None),
            Reception::Late => {}
        }
        // What was due is the heartbeat.
        self.suspect(self.clock.now() - LATE_AFTER.saturating_sub(HEARTBEAT_EVERY));
        let message = lookout.beside(reader.next()).await?;
        if message.is_some() {
            self.trouble.send_replace(None);
        }
        Ok(message)
    }

    /// Says something to the event loop; waits if that has much to do.
    pub(super) async fn say(&self, event: ControlEvent) {
        // The receiver goes only when the event loop ends, and all links with it.
        let _ = self.events.send(event).await;
    }

    async fn tell_news(&self, news: LinkNews) {
        self.say(ControlEvent::LinkChanged { link: self.target.id, news }).await;
    }

    /// Two refusals in a row, soon after each other, where a link stood: the process that listened there has
    /// ended or is being restarted.
    async fn note_refusal(&mut self, error: &LinkError) {
        let is_refusal =
            matches!(error, LinkError::Connect(error) if error.kind() == ErrorKind::ConnectionRefused);
        let now = self.clock.now();
        self.refusing = match self.refusing {
            RefusalSpell::NeverLinked | RefusalSpell::Told => return,
            // Silence may be the network's. A refusal is the host's own word that no process listens.
            RefusalSpell::No | RefusalSpell::Once { .. } if !is_refusal => RefusalSpell::No,
            RefusalSpell::Once { at } if now.saturating_since(at) <= REFUSALS_WITHIN => {
                self.tell_news(LinkNews::Refused).await;
                RefusalSpell::Told
            }
            RefusalSpell::No | RefusalSpell::Once { .. } => RefusalSpell::Once { at: now },
        };
    }

    /// The peer said hello. The guard counts the link as up while it lives.
    pub(super) fn up(&mut self) -> UpCount {
        self.failing = None;
        self.refusing = RefusalSpell::No;
        self.trouble.send_replace(None);
        tracing::debug!(peer = %self.target.name, address = %self.target.address.socket, "linked");
        self.metrics.link_up(self.target.kind);
        UpCount {
            since: self.clock.now(),
            kind: self.target.kind,
            metrics: self.metrics.clone(),
            end: LinkEnding::Closed,
        }
    }

    /// A conversation ended, in order (`Ok`) or not: tells, and waits before the next attempt. `up` is what
    /// [`LinkPeer::up`] gave, if it came to that.
    pub(super) async fn ended(&mut self, up: Option<UpCount>, how: Result<(), LinkError>) {
        let reason = match &how {
            Ok(()) => "the peer closed the link".to_owned(),
            Err(error) => ErrorChain(error).to_string(),
        };
        self.suspect(self.clock.now());
        let Some(mut up) = up else { return self.failed(reason).await };
        // A peer that takes each link and drops it at once would else be dialled without a pause.
        if self.clock.now().saturating_since(up.since) >= GOOD_LINK {
            self.backoff.reset();
        }
        if how.is_err() {
            up.end = LinkEnding::Lost;
            tracing::info!(peer = %self.target.name, reason, "link lost");
        } else {
            tracing::debug!(peer = %self.target.name, "link closed by the peer");
        }
        // Before the event loop hears of it: metrics that are scraped then show the link down as well.
        drop(up);
        self.tell_news(LinkNews::Lost).await;
        self.failed(reason).await;
    }

    /// An attempt failed: after a while people are told, once.
    async fn failed(&mut self, reason: String) {
        let now = self.clock.now();
        let failing = self.failing.get_or_insert(FailureSpell { since: now, is_told: false });
        let failed_for = now.saturating_since(failing.since);
        let is_awaited = self.target.priority == Priority::Awaited && failed_for < AWAITED_FOR;
        let is_blocked = failed_for >= BLOCKED_AFTER;
        if is_blocked && !std::mem::replace(&mut failing.is_told, true) {
            tracing::warn!(peer = %self.target.name, address = %self.target.address.socket, reason, "no link to the peer for a minute; the peer's load and state are unknown");
            self.tell_news(LinkNews::Blocked(reason)).await;
        }
        let wait = self.backoff.next_wait();
        let wait = match self.refusing {
            // Waits have grown to more than the two may lie apart where many attempts came before a link that
            // soon broke: no owner would ever hear that its peer has ended.
            RefusalSpell::Once { .. } => wait.min(SECOND_LOOK_AFTER),
            RefusalSpell::NeverLinked if is_awaited => wait.min(AWAITED_WAIT_MAX),
            RefusalSpell::NeverLinked | RefusalSpell::No | RefusalSpell::Told => wait,
        };
        tokio::time::sleep(wait).await;
    }
}

/// Counts a link as up.
pub(super) struct UpCount {
    since: Timestamp,
    kind: PeerKind,
    metrics: AutoscalerMetrics,
    end: LinkEnding,
}

impl Drop for UpCount {
    fn drop(&mut self) {
        self.metrics.link_down(self.kind, self.end);
    }
}

/// The peer did something that the protocol does not have.
pub(super) fn breach(problem: impl Into<String>) -> LinkError {
    LinkError::Garbage(link::WireError::BadValue { field: "its message", problem: problem.into() })
}
