//! The activator's end of its links: what the owners say is acted upon, and what the activator holds is told
//! to whom it concerns.
//!
//! There may be several autoscalers, each with a link of its own: an owner speaks for its buckets (`claims`),
//! and hears of the revisions in them. The writer of a link never queues messages. It asks what is true when
//! it may write (which seconds were closed, which versions are acted upon, how much is held), so a slow peer
//! gets fewer and newer words. A link that ends changes nothing about what is served.

mod claims;
mod mailbox;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use link::{AcceptedLink, Acceptor, ActivatorOrder, LinkAccess, LinkError, Reader, Writer};
use runtime::vital;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use vocabulary::{
    ActivatorHello, ActivatorWord, Assignment, LinkVersion, Ownership, ReplicaName, RevisionName, Version,
};

use crate::assigned_revision::{AssignedRevision, RevisionRemainder};
use crate::assignments::{AssignmentOutcome, Assignments, ForgetOutcome};
use crate::backends::Backends;
use crate::context::Context;
use crate::metering::PastSeconds;
use crate::revision_ports::{PortChanges, RevisionPorts};

use claims::{Claims, LinkNumber};
use mailbox::Mailbox;

/// Links that may stand at once, each of somebody who knows the token: as many autoscalers as anybody runs,
/// and for each a link that is about to replace another. One more ends the oldest, those first that have not
/// said whose they are.
const LINKS_MAX: usize = 32;

/// What links need to know and to reach.
pub(crate) struct LinkContext {
    context: Arc<Context>,
    assignments: Arc<Assignments>,
    metering: Rc<PastSeconds>,
    backends: Backends,
    ports: RevisionPorts,
    claims: RefCell<Claims>,
    standing: RefCell<BTreeMap<LinkNumber, StandingLink>>,
}

/// A link that stands, for those who write on it. Only [`LinkContext::close`] ends its conversation.
#[derive(Clone)]
struct StandingLink {
    mailbox: Rc<Mailbox>,
    end: CancellationToken,
}

/// A conversation, as the reading side follows it.
struct Conversation {
    link: LinkNumber,
    sync: Option<SyncUnderWay>,
}

/// Between the beginning and the end of a sync.
struct SyncUnderWay {
    /// The buckets that it is everything of.
    claimed: Ownership,
    /// What is known in them and was not named yet.
    unnamed: BTreeSet<RevisionName>,
}

impl LinkContext {
    pub(crate) fn new(
        context: Arc<Context>,
        assignments: Arc<Assignments>,
        metering: Rc<PastSeconds>,
        backends: Backends,
        ports: RevisionPorts,
    ) -> Self {
        let (claims, standing) = (RefCell::default(), RefCell::default());
        Self { context, assignments, metering, backends, ports, claims, standing }
    }

    /// Serves links, for ever.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, access: LinkAccess) -> Infallible {
        let refused = self.context.metrics.refused_links.clone();
        let mut acceptor = Acceptor::new(listener, access, refused);
        let mut conversations = JoinSet::new();
        let mut accepted_links = 0;
        loop {
            // Cancel-safe: the acceptor and the set keep what was not taken, and a revision that is due is
            // looked up anew.
            tokio::select! {
                accepted = acceptor.accept() => {
                    accepted_links += 1;
                    let conversation = Rc::clone(&self).converse(LinkNumber(accepted_links), accepted);
                    conversations.spawn_local(vital("a link of the activator", conversation));
                }
                // How it ended was said by itself.
                Some(_) = conversations.join_next() => {}
                revision = self.context.presence.next(&self.context.clock) => self.tell_present(&revision),
                revision = self.context.emptied.next(&self.context.clock) => self.see_what_remains(&revision),
            }
        }
    }

    async fn converse(
        self: Rc<Self>,
        link: LinkNumber,
        accepted: AcceptedLink<ActivatorOrder, ActivatorWord>,
    ) {
        let AcceptedLink { first, reader, writer } = accepted;
        info!(link = link.0, "an autoscaler's link is up");
        let (standing, _up) = self.open(link);
        let conversation = Conversation { link, sync: None };
        // Whichever ends first cancels the other for good: half a frame that it read or wrote ends with the
        // connection.
        let ended = tokio::select! {
            () = standing.end.cancelled() => return info!(link = link.0, "another link has taken its place"),
            ended = self.read(conversation, first, reader) => ended,
            ended = self.write(link, &standing.mailbox, writer) => ended,
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

    /// From now on the link hears of what happens, so what its hello says is never older than what follows.
    fn open(self: &Rc<Self>, link: LinkNumber) -> (StandingLink, UpLink) {
        let too_many = {
            let claims = self.claims.borrow();
            let nameless = claims.links().find(|(_, is_named)| !is_named);
            let oldest = nameless.or_else(|| claims.links().next()).map(|(oldest, _)| oldest);
            oldest.filter(|_| claims.links().count() >= LINKS_MAX)
        };
        if let Some(oldest) = too_many {
            self.close(oldest);
        }
        let standing = StandingLink { mailbox: Rc::default(), end: CancellationToken::new() };
        self.claims.borrow_mut().opened(link);
        self.standing.borrow_mut().insert(link, standing.clone());
        self.context.metrics.link_connected.inc();
        (standing, UpLink { links: Rc::clone(self), link })
    }

    /// Ends a link, if it stands.
    fn close(&self, link: LinkNumber) {
        self.claims.borrow_mut().closed(link);
        if let Some(standing) = self.standing.borrow_mut().remove(&link) {
            self.context.metrics.link_connected.dec();
            standing.end.cancel();
        }
    }

    async fn read(
        self: &Rc<Self>,
        mut conversation: Conversation,
        first: ActivatorOrder,
        mut reader: Reader<ActivatorOrder>,
    ) -> Result<(), LinkError> {
        self.obey(&mut conversation, first);
        while let Some(order) = reader.next().await? {
            self.obey(&mut conversation, order);
        }
        Ok(())
    }

    fn obey(self: &Rc<Self>, conversation: &mut Conversation, order: ActivatorOrder) {
        match order {
            ActivatorOrder::SyncBegin { owner, ownership } => {
                conversation.sync = Some(self.sync_begin(conversation.link, &owner, ownership));
            }
            ActivatorOrder::Assign(assignment) => {
                if self.is_late(&assignment.revision, assignment.version) {
                    return;
                }
                if let Some(sync) = &mut conversation.sync {
                    sync.unnamed.remove(&assignment.revision);
                }
                self.assign(&assignment);
            }
            ActivatorOrder::Remove { revision, version } => {
                if !self.is_late(&revision, version) {
                    match self.assignments.remove(&revision, version) {
                        Some(removed) => self.let_go(removed, version),
                        None => self.acknowledge(&revision, version),
                    }
                }
            }
            ActivatorOrder::Forget { revision, version } => {
                if !self.is_late(&revision, version) {
                    self.forget(&revision, version);
                }
            }
            ActivatorOrder::SyncEnd => {
                if let Some(sync) = conversation.sync.take() {
                    self.sync_end(conversation.link, sync);
                }
            }
            ActivatorOrder::Released { buckets } => {
                if self.claims.borrow_mut().released(conversation.link, &buckets) {
                    self.context.released.cancel();
                }
            }
            ActivatorOrder::Heartbeat => {}
        }
    }

    fn sync_begin(&self, link: LinkNumber, owner: &ReplicaName, ownership: Ownership) -> SyncUnderWay {
        let (claimed, former) = self.claims.borrow_mut().claim(link, owner, ownership);
        if let Some(former) = former {
            self.close(former);
        }
        debug!(link = link.0, %owner, buckets = claimed.epochs.len(), of = claimed.buckets, "an owner tells its buckets");
        let unnamed = self.assignments.names_in(&claimed);
        SyncUnderWay { claimed, unnamed }
    }

    /// What an owner did not name others serve, as far as it is still the one to say so. What is retired and
    /// holds nothing it hears of (again).
    fn sync_end(self: &Rc<Self>, link: LinkNumber, sync: SyncUnderWay) {
        let mut claims = self.claims.borrow_mut();
        let told = claims.told_all(link, sync.claimed);
        let is_everything = claims.is_everything_synced();
        drop(claims);
        let unnamed = sync.unnamed.into_iter().filter(|name| told.epoch_of(name).is_some());
        self.assignments.retire(unnamed);
        if is_everything {
            self.assignments.note_synced();
        }
        for revision in self.assignments.all_in(&told) {
            self.see_what_remains(&revision);
        }
    }

    fn forget(self: &Rc<Self>, name: &RevisionName, version: Version) {
        match self.assignments.forget(name, version) {
            ForgetOutcome::Planned(revision) => self.see_what_remains(&revision),
            ForgetOutcome::Unknown => self.acknowledge(name, version),
            ForgetOutcome::Stale => {}
        }
    }

    /// A retired revision that holds nothing is told of, or forgotten.
    fn see_what_remains(self: &Rc<Self>, revision: &Arc<AssignedRevision>) {
        match revision.remains() {
            RevisionRemainder::Something => {}
            RevisionRemainder::Nothing => {
                self.tell(&revision.name, |mailbox| mailbox.emptied(&revision.name));
            }
            RevisionRemainder::NoMemory(version) => {
                self.assignments.forgotten(revision);
                self.let_go(Arc::clone(revision), version);
            }
        }
    }

    /// Whether an owner said this that is none any more.
    fn is_late(&self, revision: &RevisionName, version: Version) -> bool {
        let is_late = self.claims.borrow().is_late(revision, version);
        if is_late {
            self.context.metrics.stale_assignments.inc();
        }
        is_late
    }

    /// A revision is not known here any more, which is acknowledged once nobody listens for it.
    fn let_go(self: &Rc<Self>, revision: Arc<AssignedRevision>, version: Version) {
        let ports = self.ports.of(&revision);
        if ports.is_empty() {
            return self.acknowledge(&revision.name, version);
        }
        let this = Rc::clone(self);
        // Ends when every worker has answered.
        tokio::task::spawn_local(vital("an order of the activator's link", async move {
            this.ports.close(ports).await;
            this.acknowledge(&revision.name, version);
        }));
    }

    fn assign(self: &Rc<Self>, assignment: &Assignment) {
        match self.assignments.assign(assignment) {
            AssignmentOutcome::Applied { revision, lost } => {
                let ports = self.ports.changes(&revision);
                if lost.is_empty() && ports.is_empty() {
                    if let Some(version) = revision.acted_upon() {
                        self.acknowledge(&revision.name, version);
                    }
                } else {
                    self.keep_up(Arc::clone(&revision), lost, ports);
                }
                self.see_what_remains(&revision);
            }
            AssignmentOutcome::Repeated(revision) => {
                revision.repeated(assignment.standing);
                if let Some(version) = revision.acted_upon() {
                    self.acknowledge(&revision.name, version);
                }
                self.see_what_remains(&revision);
            }
            AssignmentOutcome::Stale => {}
        }
    }

    /// Does what an assignment asks for, and acknowledges it then.
    fn keep_up(self: &Rc<Self>, revision: Arc<AssignedRevision>, lost: Vec<SocketAddr>, ports: PortChanges) {
        // Before the task exists: an assignment that repeats this one must not be acknowledged while the work
        // is under way.
        revision.upkeep_begins();
        let this = Rc::clone(self);
        // Ends when every worker has answered and each port could be had, or a newer assignment does without;
        // at most one such task per assignment.
        tokio::task::spawn_local(vital("an order of the activator's link", async move {
            this.backends.close_idle(lost).await;
            this.ports.apply(&revision, ports).await;
            if let Some(version) = revision.upkeep_ended() {
                this.acknowledge(&revision.name, version);
            }
        }));
    }

    /// Whoever owns the revision now hears it. If that link is down nobody does: its next sync repeats what
    /// it wants acknowledged.
    fn acknowledge(&self, revision: &RevisionName, version: Version) {
        self.tell(revision, |mailbox| mailbox.acknowledged(revision, version));
    }

    /// Without a hearer nothing is said: the next hello tells what is held.
    fn tell_present(&self, revision: &Arc<AssignedRevision>) {
        if !self.tell(&revision.name, |mailbox| mailbox.present(revision)) {
            revision.tell();
        }
    }

    /// Puts something for every link that hears of a revision, and says whether there is one.
    fn tell(&self, revision: &RevisionName, put: impl Fn(&Mailbox)) -> bool {
        let (claims, standing) = (self.claims.borrow(), self.standing.borrow());
        let mut hearers = standing.iter().filter(|&(&link, _)| claims.hears(link, revision)).peekable();
        let is_heard = hearers.peek().is_some();
        hearers.for_each(|(_, link)| put(&link.mailbox));
        is_heard
    }

    async fn write(
        &self,
        link: LinkNumber,
        mailbox: &Mailbox,
        mut writer: Writer<ActivatorWord>,
    ) -> Result<(), LinkError> {
        let mut closings = self.metering.closings();
        let mut next_second = self.metering.open_second();
        writer.send(&ActivatorWord::Hello(self.hello(next_second))).await?;
        let mut has_said_goodbye = false;
        loop {
            // Cancel-safe: each only waits for something to say. What is written is written in the arms'
            // bodies, which nobody cancels.
            tokio::select! {
                () = self.context.leaving.cancelled(), if !has_said_goodbye => {
                    has_said_goodbye = true;
                    writer.send(&ActivatorWord::Draining).await?;
                }
                () = mailbox.changed() => {
                    while let Some(words) = mailbox.next() {
                        for word in words {
                            writer.send(&word).await?;
                        }
                    }
                }
                // The sender lives as long as `self`. A second without loads is said too: it shows that the
                // link lives.
                _ = closings.changed() => {
                    for (second, mut loads) in self.metering.since(next_second) {
                        next_second = second + 1;
                        loads.retain(|load| self.claims.borrow().hears(link, &load.revision));
                        writer.send(&ActivatorWord::Loads { second, loads }).await?;
                    }
                }
            }
        }
    }

    /// Of all buckets: an owner may be about to take over any of them.
    fn hello(&self, current_second: u64) -> ActivatorHello {
        let active = self.context.active.lock();
        let present = active.iter().map(|(name, revision)| (name.clone(), Arc::clone(revision)));
        let present: Vec<_> = present.collect();
        drop(active);
        ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: self.context.name.clone(),
            boot: self.context.boot,
            current_second,
            history: self.metering.history(),
            present: present.into_iter().map(|(name, revision)| (name, revision.present())).collect(),
            routings: self.assignments.routings(),
        }
    }
}

/// A link that stands while this lives.
struct UpLink {
    links: Rc<LinkContext>,
    link: LinkNumber,
}

impl Drop for UpLink {
    fn drop(&mut self) {
        self.links.close(self.link);
    }
}
