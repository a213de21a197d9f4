//! All revisions of one activator: which assignment of each is in force, which owner speaks for it on which
//! link, what is acknowledged and reported, and when a revision is forgotten.
//!
//! Everything is state, nothing an edge: an assignment is a whole revision, only a greater version replaces
//! it, and a repeat does no harm. Until the revisions of every bucket were named once, no host is known to be
//! unknown. A link that ends changes nothing about what is served.
//!
//! | rule | where |
//! |---|---|
//! | an order of an earlier owner changes nothing, nor one of an older version | `is_late`, `assigned` |
//! | a version is acknowledged when no upkeep of its revision is under way | `acknowledge_if_done` |
//! | a revision that its owner did not name is retired, not refused | `sync_ended` |
//! | a retired revision says whenever it is empty, and is forgotten then if it may be | `report_or_forget` |
//! | a host that another revision took over is not released | `release_host` |
//!
//! Each revision lies in a [`RevisionCell`]. Where requests run on several threads that is a lock of its own,
//! which threads that serve reach without this value: it belongs to the thread of the links, and no request
//! takes a lock over all of it. Such a cell carries out grants and refusals itself and hands the value one
//! event for all that it has to say ([`ActivatorEvent::RevisionIsDue`]), so this value works per change and
//! per second, never per request. Plainly held revisions make it the whole activator, as laws and simulations
//! drive it: then requests come by [`ActivatorEvent::Request`].

mod cell;
mod events;
mod head_sizes;
mod outbox;
mod owners;
mod past_loads;
mod questions;
mod reports;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use vocabulary::{Assignment, Ownership, RevisionName, Timestamp, Version};

use crate::claims::{Claims, LinkNumber};
use crate::load_meter::ReporterSeconds;
use crate::revision::{
    ActivatorRevision, RequestEvent, RetiredRemainder, RevisionCommand, RevisionSeed, kept_addresses,
};
use crate::ticket::Ticket;
pub use cell::RevisionCell;
pub use events::{ActivatorCommand, ActivatorEvent, ActivatorIdentity, QueueLimits, UpkeepId};
use head_sizes::HeadSizeTally;
use outbox::LinkOutbox;
use past_loads::PastLoads;
pub use questions::RequestWay;

/// A revision that is known, and the work for it that is under way.
#[derive(Clone, Debug)]
struct KnownRevision<R> {
    cell: R,
    assignment: Arc<Assignment>,
    /// Where idle connections may be kept.
    kept: BTreeSet<SocketAddr>,
    /// Nothing is acknowledged while there is any.
    upkeep: BTreeSet<UpkeepId>,
}

/// Between the beginning and the end of a sync.
#[derive(Clone, Debug)]
struct RunningSync {
    /// The buckets whose revisions the sync names completely.
    claimed: Ownership,
    /// The known revisions of these buckets that the sync has not named yet.
    unnamed: BTreeSet<RevisionName>,
}

/// An open link to an autoscaler.
#[derive(Clone, Debug)]
struct ActivatorLink {
    outbox: LinkOutbox,
    sync: Option<RunningSync>,
}

/// What one activator was assigned, and the words that its owners are still to hear.
#[derive(Clone, Debug)]
pub struct ActivatorRevisions<R: RevisionCell = ActivatorRevision> {
    identity: ActivatorIdentity,
    limits: QueueLimits,
    shared: R::Shared,
    random: SmallRng,
    seconds: ReporterSeconds,
    /// The first second that is not closed yet.
    open_second: u64,
    past: PastLoads,
    known: BTreeMap<RevisionName, KnownRevision<R>>,
    /// Those with something to report in this second.
    active: BTreeSet<RevisionName>,
    /// Revisions that are known no more and had something to report in this second.
    departed: BTreeMap<RevisionName, R>,
    hosts: BTreeMap<String, RevisionName>,
    head_sizes: HeadSizeTally,
    claims: Claims,
    links: BTreeMap<LinkNumber, ActivatorLink>,
    /// The revision of each work that is under way, departures aside.
    under_way: BTreeMap<UpkeepId, RevisionName>,
    /// Revisions that are known no more, with the version that is acknowledged once that work is done.
    departures: BTreeMap<UpkeepId, (RevisionName, Version)>,
    next_upkeep: u64,
    is_leaving: bool,
    is_synced: bool,
    commands: VecDeque<ActivatorCommand>,
}

impl<R: RevisionCell> ActivatorRevisions<R> {
    /// An activator without revisions and links. All its random choices follow from `seed`.
    pub fn new(
        identity: ActivatorIdentity,
        limits: QueueLimits,
        shared: R::Shared,
        seed: u64,
        now: Timestamp,
    ) -> Self {
        Self {
            identity,
            limits,
            shared,
            random: SmallRng::seed_from_u64(seed),
            // Seconds begin when the process's do: an activator that takes over from another one in the same
            // process then reports the same seconds, and no request is counted in two of them.
            seconds: ReporterSeconds::since(Timestamp::from_secs(now.whole_secs())),
            open_second: 0,
            past: PastLoads::default(),
            known: BTreeMap::new(),
            active: BTreeSet::new(),
            departed: BTreeMap::new(),
            hosts: BTreeMap::new(),
            head_sizes: HeadSizeTally::default(),
            claims: Claims::default(),
            links: BTreeMap::new(),
            under_way: BTreeMap::new(),
            departures: BTreeMap::new(),
            next_upkeep: 0,
            is_leaving: false,
            is_synced: false,
            commands: VecDeque::new(),
        }
    }

    /// Something happened at the activator. Orders of links that are not open are passed over.
    pub fn handle(&mut self, event: ActivatorEvent, now: Timestamp) {
        match event {
            ActivatorEvent::LinkOpened { link } => self.link_opened(link),
            ActivatorEvent::LinkClosed { link } => self.link_closed(link),
            ActivatorEvent::SyncBegan { link, owner, ownership } => self.sync_began(link, &owner, ownership),
            ActivatorEvent::Assigned { link, assignment } => {
                if self.may_order(link, &assignment.revision, assignment.version) {
                    self.assigned(link, &assignment, now);
                }
            }
            ActivatorEvent::Removed { link, revision, version } => {
                if self.may_order(link, &revision, version) {
                    self.removed(&revision, version, now);
                }
            }
            ActivatorEvent::ForgettingAllowed { link, revision, version } => {
                if self.may_order(link, &revision, version) {
                    self.forgetting_allowed(&revision, version, now);
                }
            }
            ActivatorEvent::SyncEnded { link } => self.sync_ended(link, now),
            ActivatorEvent::Released { link, buckets } => {
                if self.claims.released(link, &buckets) {
                    self.commands.push_back(ActivatorCommand::NoteReleased);
                }
            }
            ActivatorEvent::UpkeepEnded { upkeep } => self.upkeep_ended(upkeep),
            ActivatorEvent::RevisionIsDue { revision } => self.look_at(&revision, now),
            ActivatorEvent::Request { revision, event } => {
                self.act(&revision, now, |revision| revision.handle(event, now));
            }
            ActivatorEvent::LeavingBegan => self.leaving_began(),
            ActivatorEvent::TimePassed => self.time_passed(now),
        }
    }

    /// The next thing to do.
    pub fn next_command(&mut self) -> Option<ActivatorCommand> {
        self.commands.pop_front()
    }

    /// When [`ActivatorEvent::TimePassed`] is to be said next.
    pub fn next_deadline(&self) -> Timestamp {
        let revisions = self.known.values().filter_map(|known| known.cell.next_deadline());
        revisions.chain([self.seconds.beginning_of(self.open_second + 1)]).min().unwrap_or(Timestamp::MAX)
    }

    fn assigned(&mut self, link: LinkNumber, assignment: &Arc<Assignment>, now: Timestamp) {
        let name = &assignment.revision;
        if let Some(sync) = self.links.get_mut(&link).and_then(|link| link.sync.as_mut()) {
            sync.unnamed.remove(name);
        }
        // Two owners may speak of one revision for a moment, over links of their own. The version counts,
        // which grows with each owner, and never the order in which the words arrive.
        match self.version_in_force(name) {
            Some(in_force) if assignment.version < in_force => {
                self.commands.push_back(ActivatorCommand::CountStaleOrder);
                return;
            }
            Some(in_force) if assignment.version == in_force => {
                self.act(name, now, |revision| revision.repeat(assignment.standing));
                self.acknowledge_if_done(name);
            }
            Some(_) | None => self.put_in_force(assignment, now),
        }
        self.report_or_forget(name, now);
    }

    /// Applied before any host leads to it, and former hosts are given back last:
    ///
    /// ```text
    ///     apply ── release the old hosts ── lead the new ones ── upkeep ── acknowledge
    /// ```
    ///
    /// So a request never finds a revision under a host that has not its pods yet.
    fn put_in_force(&mut self, assignment: &Arc<Assignment>, now: Timestamp) {
        let name = &assignment.revision;
        let before = self.known.get(name).map(|known| Arc::clone(&known.assignment));
        match self.known.get_mut(name) {
            Some(known) => {
                known.cell.assign(assignment, now);
                known.assignment = Arc::clone(assignment);
            }
            None => self.insert(assignment, now),
        }
        self.obey(name, now);
        self.head_sizes.add(assignment.head_size_limit);
        if let Some(before) = &before {
            self.head_sizes.take(before.head_size_limit);
            let former = before.hosts.iter().filter(|host| !assignment.hosts.contains(host));
            former.for_each(|host| self.release_host(host, name));
        }
        self.limit_heads();
        for host in &assignment.hosts {
            self.hosts.insert(host.clone(), name.clone());
            let (host, revision) = (host.clone(), name.clone());
            self.commands.push_back(ActivatorCommand::LeadHost { host, revision });
        }
        self.look_after(before.as_deref(), assignment);
        self.acknowledge_if_done(name);
    }

    fn insert(&mut self, assignment: &Arc<Assignment>, now: Timestamp) {
        let depth = self.limits.per_revision;
        let seed = RevisionSeed { depth, seed: self.random.random(), is_leaving: self.is_leaving };
        let revision = ActivatorRevision::new(assignment, seed, now);
        let known = KnownRevision {
            cell: R::holding(revision, &self.shared),
            assignment: Arc::clone(assignment),
            kept: BTreeSet::new(),
            upkeep: BTreeSet::new(),
        };
        self.known.insert(assignment.revision.clone(), known);
    }

    /// Has the work done that an assignment asks for before it is acted upon, if there is any.
    fn look_after(&mut self, before: Option<&Assignment>, assignment: &Assignment) {
        let Some(known) = self.known.get_mut(&assignment.revision) else { return };
        let kept = kept_addresses(assignment);
        let closed: Vec<SocketAddr> = known.kept.difference(&kept).copied().collect();
        known.kept = kept;
        let had_ports = before.is_some_and(|before| before.ports == assignment.ports);
        if closed.is_empty() && (had_ports || (before.is_none() && assignment.ports.is_empty())) {
            return;
        }
        let upkeep = self.carry_out(&assignment.revision, closed, assignment.ports.clone());
        if let Some(known) = self.known.get_mut(&assignment.revision) {
            known.upkeep.insert(upkeep);
            self.under_way.insert(upkeep, assignment.revision.clone());
        }
    }

    fn carry_out(
        &mut self,
        revision: &RevisionName,
        closed: Vec<SocketAddr>,
        ports: BTreeSet<u16>,
    ) -> UpkeepId {
        let upkeep = UpkeepId(self.next_upkeep);
        self.next_upkeep += 1;
        let revision = revision.clone();
        self.commands.push_back(ActivatorCommand::CarryOut { upkeep, revision, closed, ports });
        upkeep
    }

    fn upkeep_ended(&mut self, upkeep: UpkeepId) {
        if let Some((revision, version)) = self.departures.remove(&upkeep) {
            return self.acknowledge(&revision, version);
        }
        let Some(name) = self.under_way.remove(&upkeep) else { return };
        // The work may have been for a former life of the revision.
        if self.known.get_mut(&name).is_some_and(|known| known.upkeep.remove(&upkeep)) {
            self.acknowledge_if_done(&name);
        }
    }

    fn removed(&mut self, revision: &RevisionName, version: Version, now: Timestamp) {
        if self.version_in_force(revision).is_some_and(|in_force| in_force < version) {
            self.act(revision, now, |revision| revision.remove(now));
            self.depart(revision, version);
        } else {
            self.acknowledge(revision, version);
        }
    }

    fn forgetting_allowed(&mut self, revision: &RevisionName, version: Version, now: Timestamp) {
        match self.version_in_force(revision) {
            Some(in_force) if in_force < version => {
                self.act(revision, now, |revision| revision.may_be_forgotten(version));
                self.report_or_forget(revision, now);
            }
            Some(_) => {}
            None => self.acknowledge(revision, version),
        }
    }

    /// A revision is not known here any more. That is acknowledged once its ports are closed.
    fn depart(&mut self, revision: &RevisionName, version: Version) {
        let Some(known) = self.known.remove(revision) else { return };
        self.head_sizes.take(known.assignment.head_size_limit);
        self.limit_heads();
        for host in &known.assignment.hosts {
            self.release_host(host, revision);
        }
        let needs_upkeep = !known.assignment.ports.is_empty() || !known.upkeep.is_empty();
        if self.active.remove(revision) {
            self.departed.insert(revision.clone(), known.cell);
        }
        if !needs_upkeep {
            return self.acknowledge(revision, version);
        }
        let upkeep = self.carry_out(revision, Vec::new(), BTreeSet::new());
        self.departures.insert(upkeep, (revision.clone(), version));
    }

    /// Frees a host, unless another revision has taken it over: two Services may exchange their hosts in two
    /// assignments, and the second must not take away what the first has just given to the other.
    fn release_host(&mut self, host: &str, holder: &RevisionName) {
        if self.hosts.get(host) == Some(holder) {
            self.hosts.remove(host);
            self.commands.push_back(ActivatorCommand::ReleaseHost { host: host.to_owned() });
        }
    }

    fn limit_heads(&mut self) {
        if self.is_synced {
            self.commands.push_back(ActivatorCommand::LimitHeads { limit: self.head_sizes.most() });
        }
    }

    fn version_in_force(&self, revision: &RevisionName) -> Option<Version> {
        self.known.get(revision).map(|known| known.assignment.version)
    }

    fn leaving_began(&mut self) {
        self.is_leaving = true;
        for known in self.known.values_mut() {
            known.cell.with(ActivatorRevision::leave);
        }
        self.call_all();
    }

    /// Lets something happen to a known revision, and does what it asks for.
    fn act(&mut self, name: &RevisionName, now: Timestamp, act: impl FnOnce(&mut ActivatorRevision)) {
        self.change(name, now, |cell| cell.with(act));
    }

    /// Does what a revision asks for.
    fn obey(&mut self, name: &RevisionName, now: Timestamp) {
        self.change(name, now, |_| {});
    }

    /// Changes the place of a known revision, and does what the revision asks for. Its name is searched for
    /// once, and again behind a request that has to wait: among a hundred revisions each search costs as much
    /// as the rest of a request.
    fn change(&mut self, name: &RevisionName, now: Timestamp, change: impl FnOnce(&mut R)) {
        let Some(mut known) = self.known.get_mut(name) else { return };
        change(&mut known.cell);
        let mut has_news = false;
        while let Some(command) = known.cell.next_command() {
            match command {
                RevisionCommand::Grant { dispatch } => {
                    let revision = name.clone();
                    self.commands.push_back(ActivatorCommand::Grant { revision, dispatch });
                }
                RevisionCommand::Refuse { ticket, refusal } => {
                    let revision = name.clone();
                    self.commands.push_back(ActivatorCommand::Refuse { revision, ticket, refusal });
                }
                RevisionCommand::Wait { ticket } => {
                    self.wait(name, ticket, now);
                    let Some(still_known) = self.known.get_mut(name) else { return };
                    known = still_known;
                }
                RevisionCommand::TakeNews => has_news = true,
            }
        }
        if has_news {
            self.take_news(name, now);
        }
    }

    /// A request has to wait: it does if the activator has a place for it.
    fn wait(&mut self, name: &RevisionName, ticket: Ticket, now: Timestamp) {
        let waiting = self.known.values_mut().map(|known| known.cell.with(|held| held.present().waiting));
        if waiting.fold(0, u32::saturating_add) > self.limits.in_all
            && let Some(known) = self.known.get_mut(name)
        {
            known.cell.with(|revision| revision.handle(RequestEvent::PlaceRefused { ticket }, now));
        }
    }

    /// A retired revision that is empty is reported so to its owner, or forgotten if its owner said that it
    /// may be.
    fn report_or_forget(&mut self, name: &RevisionName, now: Timestamp) {
        let Some(known) = self.known.get_mut(name) else { return };
        match known.cell.with(ActivatorRevision::remainder) {
            RetiredRemainder::Something => {}
            RetiredRemainder::Nothing => {
                self.notify(name, |entry| entry.is_emptied = true);
            }
            RetiredRemainder::Forgotten(version) => {
                self.act(name, now, |revision| revision.remove(now));
                self.depart(name, version);
            }
        }
    }
}
