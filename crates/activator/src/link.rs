//! The activator's end of its links: orders of the owners are handed to the value that decides about them
//! ([`throttling::ActivatorRevisions`]), and what it has to say is written.
//!
//! There may be several autoscalers, each with a link of its own: an owner speaks for its buckets, and hears
//! of the revisions in them. The writer of a link never queues messages. It asks what is true when it may
//! write (which seconds were closed, which versions are acted upon, how much is held), so a slow peer gets
//! fewer and newer words. A link that ends changes nothing about what is served.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use link::{AcceptedLink, Acceptor, ActivatorOrder, LinkAccess, LinkError, Reader, Writer};
use runtime::vital;
use throttling::{ActivatorEvent, LinkNumber};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use vocabulary::ActivatorWord;

use crate::assignments::{Assignments, LinkDuty, Upkeep};
use crate::backends::Backends;
use crate::context::Context;
use crate::revision_ports::RevisionPorts;

/// What links need to know and to reach.
pub(crate) struct LinkContext {
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    backends: Backends,
    ports: RevisionPorts,
    open_links: RefCell<BTreeMap<LinkNumber, OpenLink>>,
}

/// A link that is open. Only [`LinkContext::close`] ends it.
#[derive(Clone)]
struct OpenLink {
    /// Notified when there are words for the link.
    called: Rc<Notify>,
    end: CancellationToken,
}

impl LinkContext {
    pub(crate) fn new(
        context: Arc<Context>,
        assignments: Arc<Assignments>,
        backends: Backends,
        ports: RevisionPorts,
    ) -> Self {
        Self { context, assignments, backends, ports, open_links: RefCell::default() }
    }

    /// Accepts links and serves them until the activator ends.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, access: LinkAccess) -> Infallible {
        let refused = self.context.metrics.refused_links.clone();
        let mut acceptor = Acceptor::new(listener, access, refused);
        let mut sessions = JoinSet::new();
        let mut accepted_links = 0;
        let mut is_leaving = false;
        loop {
            // Cancel-safe: the acceptor and the set keep what was not taken, and a revision that is due is
            // looked up anew.
            tokio::select! {
                accepted = acceptor.accept() => {
                    accepted_links += 1;
                    let session = Rc::clone(&self).serve_link(LinkNumber(accepted_links), accepted);
                    sessions.spawn_local(vital("a link of the activator", session));
                }
                // The session logs its own end.
                Some(_) = sessions.join_next() => {}
                revision = self.context.agenda.next(&self.context.clock) => {
                    self.handle(ActivatorEvent::RevisionIsDue { revision });
                }
                () = self.context.leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    self.handle(ActivatorEvent::LeavingBegan);
                }
            }
        }
    }

    /// Waits until the activator's time has come (its second ends), and does what is due then.
    pub(crate) async fn pass_time(self: &Rc<Self>) {
        self.context.clock.sleep_until(self.assignments.next_deadline()).await;
        // Before the second is closed: what became active in it is to be in it, however late this is.
        let now = self.context.clock.now();
        while let Ok(revision) = self.context.agenda.take_due(now) {
            self.handle(ActivatorEvent::RevisionIsDue { revision });
        }
        self.handle(ActivatorEvent::TimePassed);
    }

    /// Something happened: what the value makes of it is done, or begun, before the return.
    pub(crate) fn handle(self: &Rc<Self>, event: ActivatorEvent) {
        for duty in self.assignments.handle(event) {
            match duty {
                LinkDuty::Close(link) => self.close(link),
                LinkDuty::Write(link) => {
                    if let Some(open_link) = self.open_links.borrow().get(&link) {
                        open_link.called.notify_one();
                    }
                }
                LinkDuty::CarryOut(upkeep) => self.carry_out(upkeep),
            }
        }
    }

    async fn serve_link(
        self: Rc<Self>,
        link: LinkNumber,
        accepted: AcceptedLink<ActivatorOrder, ActivatorWord>,
    ) {
        let AcceptedLink { first, reader, writer } = accepted;
        info!(link = link.0, "an autoscaler's link is up");
        let (open_link, _guard) = self.open(link);
        // The side that ends first cancels the other for good: half a frame that it read or wrote ends with
        // the connection.
        let ended = tokio::select! {
            () = open_link.end.cancelled() => return info!(link = link.0, "another link has taken the place of this link"),
            ended = self.read(link, first, reader) => ended,
            ended = self.write(link, &open_link.called, writer) => ended,
        };
        match ended {
            Ok(()) => info!(link = link.0, "the autoscaler closed its link; serving on with what is known"),
            Err(error) => warn!(
                link = link.0,
                error = &error as &dyn std::error::Error,
                "an autoscaler's link ended; serving on with what is known"
            ),
        }
    }

    fn open(self: &Rc<Self>, link: LinkNumber) -> (OpenLink, OpenLinkGuard) {
        let open_link = OpenLink { called: Rc::default(), end: CancellationToken::new() };
        self.open_links.borrow_mut().insert(link, open_link.clone());
        self.context.metrics.link_connected.inc();
        let guard = OpenLinkGuard { links: Rc::clone(self), link };
        self.handle(ActivatorEvent::LinkOpened { link });
        (open_link, guard)
    }

    /// Ends a link, if it stands.
    fn close(&self, link: LinkNumber) {
        if let Some(open_link) = self.open_links.borrow_mut().remove(&link) {
            self.context.metrics.link_connected.dec();
            open_link.end.cancel();
        }
    }

    async fn read(
        self: &Rc<Self>,
        link: LinkNumber,
        first: ActivatorOrder,
        mut reader: Reader<ActivatorOrder>,
    ) -> Result<(), LinkError> {
        self.execute(link, first);
        while let Some(order) = reader.next().await? {
            self.execute(link, order);
        }
        Ok(())
    }

    fn execute(self: &Rc<Self>, link: LinkNumber, order: ActivatorOrder) {
        if let Some(event) = event(link, order) {
            self.handle(event);
        }
    }

    /// Closes connections and changes ports as an assignment asks, and says so then.
    fn carry_out(self: &Rc<Self>, upkeep: Upkeep) {
        let Upkeep { id, revision, known, closed, ports } = upkeep;
        // Before the task exists: later the name may be that of another life of the revision.
        let changes = match &known {
            Some(known) => self.ports.changes(known, &ports),
            None => self.ports.all_of(&revision),
        };
        let this = Rc::clone(self);
        // Ends when every worker has answered and each port could be had, or a newer assignment does without;
        // at most one such task per assignment.
        tokio::task::spawn_local(vital("an order of the activator's link", async move {
            this.backends.close_idle(closed).await;
            this.ports.apply(changes).await;
            this.handle(ActivatorEvent::UpkeepEnded { upkeep: id });
        }));
    }

    async fn write(
        &self,
        link: LinkNumber,
        called: &Notify,
        mut writer: Writer<ActivatorWord>,
    ) -> Result<(), LinkError> {
        loop {
            // A call that comes while this writes is kept.
            called.notified().await;
            loop {
                let words = self.assignments.next_words(link);
                if words.is_empty() {
                    break;
                }
                for mut word in words {
                    self.assignments.name_callers(&mut word);
                    writer.send(&word).await?;
                }
            }
        }
    }
}

/// What an order of an owner is to the activator; `None` if it only shows that the link lives.
fn event(link: LinkNumber, order: ActivatorOrder) -> Option<ActivatorEvent> {
    Some(match order {
        ActivatorOrder::SyncBegin { owner, ownership } => {
            debug!(link = link.0, %owner, buckets = ownership.epochs.len(), of = ownership.buckets, "an owner names its buckets");
            ActivatorEvent::SyncBegan { link, owner, ownership }
        }
        ActivatorOrder::Assign(assignment) => {
            ActivatorEvent::Assigned { link, assignment: Arc::from(assignment) }
        }
        ActivatorOrder::Remove { revision, version } => ActivatorEvent::Removed { link, revision, version },
        ActivatorOrder::Forget { revision, version } => {
            ActivatorEvent::ForgettingAllowed { link, revision, version }
        }
        ActivatorOrder::SyncEnd => ActivatorEvent::SyncEnded { link },
        ActivatorOrder::Released { buckets } => ActivatorEvent::Released { link, buckets },
        ActivatorOrder::Heartbeat => return None,
    })
}

/// Closes the link when it is dropped.
struct OpenLinkGuard {
    links: Rc<LinkContext>,
    link: LinkNumber,
}

impl Drop for OpenLinkGuard {
    fn drop(&mut self) {
        self.links.close(self.link);
        self.links.handle(ActivatorEvent::LinkClosed { link: self.link });
    }
}
