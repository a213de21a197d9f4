//! The activator's end of its links: orders of the owners are carried out, and the activator's counts are
//! reported to the owners of the revisions.
//!
//! There may be several autoscalers, each with a link of its own: an owner speaks for its buckets
//! ([`throttling::Claims`]), and hears of the revisions in them. The writer of a link never queues messages.
//! It asks what is true when it may write (which seconds were closed, which versions are acted upon, how much
//! is held), so a slow peer gets fewer and newer words. A link that ends changes nothing about what is served.

mod mailbox;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use link::{AcceptedLink, Acceptor, ActivatorOrder, LinkAccess, LinkError, Reader, Writer};
use runtime::vital;
use throttling::{Claims, LinkNumber};
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

use mailbox::Mailbox;

/// Links that may stand at once, each of a caller that knows the token: more autoscalers than a cluster runs,
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
    open_links: RefCell<BTreeMap<LinkNumber, OpenLink>>,
}

/// A link that is open, with the words that are to be written on it. Only [`LinkContext::close`] ends it.
#[derive(Clone)]
struct OpenLink {
    mailbox: Rc<Mailbox>,
    end: CancellationToken,
}

/// The state of the reading side of one link.
struct LinkReading {
    link: LinkNumber,
    sync: Option<SyncUnderWay>,
}

/// Between the beginning and the end of a sync.
struct SyncUnderWay {
    /// The buckets whose revisions the sync names completely.
    claimed: Ownership,
    /// The known revisions of these buckets that the sync has not named yet.
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
        let (claims, open_links) = (RefCell::default(), RefCell::default());
        Self { context, assignments, metering, backends, ports, claims, open_links }
    }

    /// Accepts links and serves them until the activator ends.
    pub(crate) async fn run(self: Rc<Self>, listener: TcpListener, access: LinkAccess) -> Infallible {
        let refused = self.context.metrics.refused_links.clone();
        let mut acceptor = Acceptor::new(listener, access, refused);
        let mut sessions = JoinSet::new();
        let mut accepted_links = 0;
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
                revision = self.context.presence.next(&self.context.clock) => self.report_present(&revision),
                revision = self.context.emptied.next(&self.context.clock) => self.report_or_forget(&revision),
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
        let reading = LinkReading { link, sync: None };
        // The side that ends first cancels the other for good: half a frame that it read or wrote ends with
        // the connection.
        let ended = tokio::select! {
            () = open_link.end.cancelled() => return info!(link = link.0, "another link has taken the place of this link"),
            ended = self.read(reading, first, reader) => ended,
            ended = self.write(link, &open_link.mailbox, writer) => ended,
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

    /// From now on words are put into the link's mailbox, so its hello is never older than a word that
    /// follows.
    fn open(self: &Rc<Self>, link: LinkNumber) -> (OpenLink, OpenLinkGuard) {
        let too_many = {
            let claims = self.claims.borrow();
            let nameless = claims.links().find(|(_, is_named)| !is_named);
            let oldest = nameless.or_else(|| claims.links().next()).map(|(oldest, _)| oldest);
            oldest.filter(|_| claims.links().count() >= LINKS_MAX)
        };
        if let Some(oldest) = too_many {
            self.close(oldest);
        }
        let open_link = OpenLink { mailbox: Rc::default(), end: CancellationToken::new() };
        self.claims.borrow_mut().opened(link);
        self.open_links.borrow_mut().insert(link, open_link.clone());
        self.context.metrics.link_connected.inc();
        (open_link, OpenLinkGuard { links: Rc::clone(self), link })
    }

    /// Ends a link, if it stands.
    fn close(&self, link: LinkNumber) {
        self.claims.borrow_mut().closed(link);
        if let Some(open_link) = self.open_links.borrow_mut().remove(&link) {
            self.context.metrics.link_connected.dec();
            open_link.end.cancel();
        }
    }

    async fn read(
        self: &Rc<Self>,
        mut reading: LinkReading,
        first: ActivatorOrder,
        mut reader: Reader<ActivatorOrder>,
    ) -> Result<(), LinkError> {
        self.execute(&mut reading, first);
        while let Some(order) = reader.next().await? {
            self.execute(&mut reading, order);
        }
        Ok(())
    }

    fn execute(self: &Rc<Self>, reading: &mut LinkReading, order: ActivatorOrder) {
        match order {
            ActivatorOrder::SyncBegin { owner, ownership } => {
                reading.sync = Some(self.sync_begin(reading.link, &owner, ownership));
            }
            ActivatorOrder::Assign(assignment) => {
                if self.is_late(&assignment.revision, assignment.version) {
                    return;
                }
                if let Some(sync) = &mut reading.sync {
                    sync.unnamed.remove(&assignment.revision);
                }
                self.assign(&assignment);
            }
            ActivatorOrder::Remove { revision, version } => {
                if !self.is_late(&revision, version) {
                    match self.assignments.remove(&revision, version) {
                        Some(removed) => self.acknowledge_removal(removed, version),
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
                if let Some(sync) = reading.sync.take() {
                    self.sync_end(reading.link, sync);
                }
            }
            ActivatorOrder::Released { buckets } => {
                if self.claims.borrow_mut().released(reading.link, &buckets) {
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
        debug!(link = link.0, %owner, buckets = claimed.epochs.len(), of = claimed.buckets, "an owner names its buckets");
        let unnamed = self.assignments.names_in(&claimed);
        SyncUnderWay { claimed, unnamed }
    }

    /// Revisions that the owner did not name are retired: others serve them. Buckets that a later owner has
    /// claimed meanwhile are left out. Retired revisions that hold nothing are reported (again).
    fn sync_end(self: &Rc<Self>, link: LinkNumber, sync: SyncUnderWay) {
        let mut claims = self.claims.borrow_mut();
        let told = claims.complete_sync(link, sync.claimed);
        let is_everything = claims.is_everything_synced();
        drop(claims);
        let unnamed = sync.unnamed.into_iter().filter(|name| told.epoch_of(name).is_some());
        self.assignments.retire(unnamed);
        if is_everything {
            self.assignments.note_synced();
        }
        for revision in self.assignments.revisions_in(&told) {
            self.report_or_forget(&revision);
        }
    }

    fn forget(self: &Rc<Self>, name: &RevisionName, version: Version) {
        match self.assignments.forget(name, version) {
            ForgetOutcome::Planned(revision) => self.report_or_forget(&revision),
            ForgetOutcome::Unknown => self.acknowledge(name, version),
            ForgetOutcome::Stale => {}
        }
    }

    /// A retired revision that holds nothing is reported to its owner as emptied, or forgotten if its owner
    /// said that it may be.
    fn report_or_forget(self: &Rc<Self>, revision: &Arc<AssignedRevision>) {
        match revision.remainder() {
            RevisionRemainder::Something => {}
            RevisionRemainder::Nothing => {
                self.notify(&revision.name, |mailbox| mailbox.emptied(&revision.name));
            }
            RevisionRemainder::Forgotten(version) => {
                self.assignments.forgotten(revision);
                self.acknowledge_removal(Arc::clone(revision), version);
            }
        }
    }

    /// Whether the order of this version comes from a former owner of the revision.
    fn is_late(&self, revision: &RevisionName, version: Version) -> bool {
        let is_late = self.claims.borrow().is_late(revision, version);
        if is_late {
            self.context.metrics.stale_assignments.inc();
        }
        is_late
    }

    /// A revision is not known here any more. That is acknowledged once its ports are closed.
    fn acknowledge_removal(self: &Rc<Self>, revision: Arc<AssignedRevision>, version: Version) {
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
                    self.carry_out(Arc::clone(&revision), lost, ports);
                }
                self.report_or_forget(&revision);
            }
            AssignmentOutcome::Repeated(revision) => {
                revision.repeated(assignment.standing);
                if let Some(version) = revision.acted_upon() {
                    self.acknowledge(&revision.name, version);
                }
                self.report_or_forget(&revision);
            }
            AssignmentOutcome::Stale => {}
        }
    }

    /// Closes connections and changes ports as an assignment asks, and acknowledges the assignment then.
    fn carry_out(
        self: &Rc<Self>,
        revision: Arc<AssignedRevision>,
        lost: Vec<SocketAddr>,
        ports: PortChanges,
    ) {
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

    /// Tells the present owner of the revision. If the owner's link is down the word is lost: the owner's
    /// next sync repeats what is not acknowledged.
    fn acknowledge(&self, revision: &RevisionName, version: Version) {
        self.notify(revision, |mailbox| mailbox.acknowledged(revision, version));
    }

    /// Without a link for the revision nothing is reported: the next hello says what is held.
    fn report_present(&self, revision: &Arc<AssignedRevision>) {
        if !self.notify(&revision.name, |mailbox| mailbox.present(revision)) {
            revision.take_early_report();
        }
    }

    /// Puts words into the mailbox of every link that receives words of the revision. Returns whether there
    /// is such a link.
    fn notify(&self, revision: &RevisionName, put: impl Fn(&Mailbox)) -> bool {
        let (claims, open_links) = (self.claims.borrow(), self.open_links.borrow());
        let mut receivers =
            open_links.iter().filter(|&(&link, _)| claims.receives(link, revision)).peekable();
        let has_receiver = receivers.peek().is_some();
        receivers.for_each(|(_, link)| put(&link.mailbox));
        has_receiver
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
        let mut has_sent_draining = false;
        loop {
            // Cancel-safe: each only waits for something to say. Messages are written in the arms' bodies,
            // which are not cancelled.
            tokio::select! {
                () = self.context.leaving.cancelled(), if !has_sent_draining => {
                    has_sent_draining = true;
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
                        loads.retain(|load| self.claims.borrow().receives(link, &load.revision));
                        writer.send(&ActivatorWord::Loads { second, loads }).await?;
                    }
                }
            }
        }
    }

    /// The hello names revisions of all buckets: the owner may be about to take over any of them.
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

/// Closes the link when it is dropped.
struct OpenLinkGuard {
    links: Rc<LinkContext>,
    link: LinkNumber,
}

impl Drop for OpenLinkGuard {
    fn drop(&mut self) {
        self.links.close(self.link);
    }
}
