//! Everything of a cluster that concerns us, as one value: what watches show, orders and answers come in;
//! facts for the autoscaler and writes for the API server come out.
//!
//! ```text
//!   ClusterEvent ──handle──► ClusterState ──next_fact──► autoscaler
//!                               │      ▲
//!                     next_write▼      │ClusterEvent::Answered
//!                              API server
//! ```
//!
//! Several events may be taken in before [`ClusterState::settle`] decides what follows from all of them. One
//! write is under way per object. Nothing here waits, reads a clock or writes a log.

mod counts;
mod events;
mod intake;
mod kind;
mod revisions;
mod routes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use orchestration::{Entrance, Order, OrderId, OrderOutcome, PlatformFact, PlatformOrder, RouteInForce};
use vocabulary::{Bucket, Epoch, PodCount, ReplicaName, RevisionName, Timestamp};

use crate::buckets::{Buckets, Rights, epochs};
use crate::count_writer::CountWrite;
use crate::drained_pods::DrainedPods;
use crate::event_book::EventBook;
use crate::fact_feed::FactFeed;
use crate::hop_keys::ClusterKeys;
use crate::incident::ClusterIncident;
use crate::index::Index;
use crate::installation::Installation;
use crate::moment::Moment;
use crate::news::News;
use crate::port_book::WallSeconds;
use crate::resources::ObjectKey;
use crate::resources::kind::WorkloadKind;
use crate::routes::{OrderKey, RouteWork};
use crate::seat::SeatNumber;
use crate::target::TargetRecord;
use crate::write::{ClusterWrite, WriteAnswer};
use crate::write_pace::WritePace;
use kind::Kind;

/// Something that has happened to a cluster.
#[derive(Debug)]
pub enum ClusterEvent {
    /// A watch has shown objects, or that they are gone. Boxed, for a record of a pod is far larger than any
    /// other event.
    Shown(Box<News>),
    /// The request of a write has ended.
    Answered(WriteAnswer),
    /// The autoscaler takes a seat, and is told everything from then on.
    SeatTaken(SeatNumber),
    /// The autoscaler has left a seat, perhaps one before its present one.
    SeatLeft(SeatNumber),
    /// The autoscaler says that it still decides.
    SeatRenewed(SeatNumber),
    /// The autoscaler gives an order from its seat.
    OrderGiven(SeatNumber, PlatformOrder),
    /// A later order took the place of this one before either was given here.
    OrderReplaced(SeatNumber, OrderId),
    /// The autoscaler has decided about a revision, whether an order follows from that or not.
    Decided {
        /// The seat from which it was said.
        seat: SeatNumber,
        /// The revision that was decided about.
        revision: RevisionName,
        /// The count after bounds and the rules around zero; `None` where none is known.
        intended: Option<PodCount>,
        /// How many activators are to serve the revision.
        activators: PodCount,
    },
    /// Histories of revisions were kept where they outlive this autoscaler; or not, and why.
    HistoriesKept(Result<(), String>),
}

/// A change of what the shell has to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindWatch {
    /// All workloads of the kind are to be shown from now on.
    Begin(WorkloadKind),
    /// The kind need not be watched any more; once it is not, that is news.
    End(WorkloadKind),
}

/// The names, keys and limits that a [`ClusterState`] needs from the start.
#[derive(Debug)]
pub struct ClusterStateConfig {
    /// This autoscaler's name, by which it holds Leases.
    pub name: ReplicaName,
    /// The installation that the autoscaler decides in, with its buckets.
    pub installation: Installation,
    /// The keys that all autoscalers share.
    pub keys: ClusterKeys,
    /// A number that no autoscaler had before, so that names of Events are unique.
    pub salt: u64,
}

/// One autoscaler's view of a cluster, with the writes that are on their way there.
#[derive(Debug)]
pub struct ClusterState {
    index: Index,
    buckets: Buckets,
    feed: Option<FactFeed>,
    /// Kinds whose first list is not complete. Until all lists are, no facts, Events or writes go out.
    unlisted: BTreeSet<Kind>,
    /// The keys of the objects that are known. An object that a complete list does not name is gone.
    known: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    routes: BTreeMap<RevisionName, RouteWork>,
    pace: WritePace,
    /// Writes that are to begin, in this order.
    writes: VecDeque<ClusterWrite>,
    kind_watches: Vec<KindWatch>,
    incidents: Vec<ClusterIncident>,
    /// The buckets of which this autoscaler gives ports of activators, and since which epoch.
    port_allocator_epochs: BTreeMap<Bucket, Epoch>,
    events: EventBook,
    /// Pods of which the app alone is left.
    drained: DrainedPods,
    /// The buckets of ours about whose objects people were told everything, and since which epoch.
    notified_epochs: BTreeMap<Bucket, Epoch>,
    /// Revisions whose people were told that histories are not kept as they should be.
    without_histories: BTreeSet<RevisionName>,
    /// The buckets that this autoscaler owns, so that routes are ordered here, and since which epoch.
    owned_epochs: BTreeMap<Bucket, Epoch>,
    /// The orders of routes of Knative's revisions that are not in force yet.
    revision_routes: BTreeMap<RevisionName, OrderKey>,
    /// Whether ports of activators are given: an installed Knative needs none.
    gives_ports: bool,
}

impl ClusterState {
    /// A state that knows of no object yet.
    pub fn new(config: ClusterStateConfig) -> Self {
        let ClusterStateConfig { name, installation, keys, salt } = config;
        let buckets = Buckets::new(&name, installation.buckets()).with_names(installation.lease_names());
        let unlisted = Kind::of_installation(&installation);
        let gives_ports = matches!(installation, Installation::Ebb { .. });
        let index = Index::new(keys, buckets.count());
        let index = match installation {
            Installation::Ebb { .. } => index,
            Installation::Knative { domain, .. } => index.in_place_of_knatives(domain),
        };
        Self {
            index,
            buckets,
            feed: None,
            unlisted,
            known: BTreeMap::new(),
            routes: BTreeMap::new(),
            pace: WritePace::default(),
            writes: VecDeque::new(),
            kind_watches: Vec::new(),
            incidents: Vec::new(),
            port_allocator_epochs: BTreeMap::new(),
            events: EventBook::new(salt),
            drained: DrainedPods::default(),
            notified_epochs: BTreeMap::new(),
            without_histories: BTreeSet::new(),
            owned_epochs: BTreeMap::new(),
            revision_routes: BTreeMap::new(),
            gives_ports,
        }
    }

    /// Takes in what has happened.
    pub fn handle(&mut self, event: ClusterEvent, moment: Moment) {
        match event {
            ClusterEvent::Shown(news) => self.take_news(*news, moment.axis),
            ClusterEvent::Answered(answer) => self.take_answer(answer, moment.axis),
            ClusterEvent::SeatTaken(seat) => {
                self.feed = Some(FactFeed::new(seat, &mut self.index));
                self.buckets.enter();
            }
            // A seat that is left late must not take the place of a newer one.
            ClusterEvent::SeatLeft(seat) if self.is_seated(seat) => {
                self.feed = None;
                self.buckets.leave();
            }
            ClusterEvent::SeatRenewed(seat) if self.is_seated(seat) => self.buckets.renew(),
            ClusterEvent::Decided { seat, revision, intended, activators } if self.is_seated(seat) => {
                self.index.note_decision(&revision, intended, activators);
            }
            ClusterEvent::SeatLeft(_) | ClusterEvent::SeatRenewed(_) | ClusterEvent::Decided { .. } => {}
            ClusterEvent::OrderGiven(seat, order) => self.take_order(seat, order, moment),
            ClusterEvent::OrderReplaced(seat, order) => {
                self.order_ended((seat, order), OrderOutcome::Superseded);
            }
            ClusterEvent::HistoriesKept(kept) => self.note_histories(kept.err(), moment.axis),
        }
    }

    fn is_seated(&self, seat: SeatNumber) -> bool {
        self.feed.as_ref().is_some_and(|feed| feed.seat == seat)
    }

    /// Decides what follows from everything that was taken in: writes and facts.
    pub fn settle(&mut self, moment: Moment) {
        if !self.unlisted.is_empty() {
            return;
        }
        let (now, wall) = (moment.axis, WallSeconds::of(moment.wall));
        let begin = self.index.take_kinds_to_watch().into_iter().map(KindWatch::Begin);
        self.kind_watches.extend(begin);
        let end = self.index.take_kinds_to_leave(now).into_iter().map(KindWatch::End);
        self.kind_watches.extend(end);
        self.keep_ports(now, wall);
        // After the ports, so that what was given just now is in the write that begins here.
        self.keep_leases(now);
        self.index.turn_hop_keys(now, wall);
        self.index.pass(now);
        self.write_slices(now);
        self.write_revisions(moment);
        self.write_counts(now);
        self.report_pods_ignoring_sigterm(now);
        self.write_events(now);
    }

    /// The write to begin now, if any.
    pub fn next_write(&mut self) -> Option<ClusterWrite> {
        self.writes.pop_front()
    }

    /// The next fact for the autoscaler that has the seat, if anything has changed.
    pub fn next_fact(&mut self, now: Timestamp) -> Option<PlatformFact> {
        if !self.unlisted.is_empty() {
            return None;
        }
        let ownership = self.buckets.ownership(now);
        self.feed.as_mut()?.next_fact(&mut self.index, &ownership, now)
    }

    /// Takes the changes of what is to be watched.
    pub fn take_kind_watches(&mut self) -> Vec<KindWatch> {
        std::mem::take(&mut self.kind_watches)
    }

    /// Takes what should stand in the log.
    pub fn take_incidents(&mut self) -> Vec<ClusterIncident> {
        let mut incidents = std::mem::take(&mut self.incidents);
        incidents.extend(self.index.take_incidents());
        incidents.extend(self.buckets.take_mismatch());
        incidents.extend(self.buckets.take_followed());
        incidents
    }

    /// The rights to write that are in force now. Each request looks at them immediately before it is sent.
    pub fn rights(&self, now: Timestamp) -> Rights {
        self.buckets.rights(now)
    }

    /// Whether no autoscaler has the seat, and nothing of ours is left to be written on the way out.
    pub fn has_left(&self) -> bool {
        self.unlisted.is_empty() && self.feed.is_none() && self.buckets.has_left()
    }

    /// The pods of a workload of class hpa; `None` for a workload that is not there.
    pub fn target(&self, revision: &RevisionName) -> Option<TargetRecord> {
        self.index.target(revision)
    }

    /// When [`ClusterState::settle`] has something to decide without any event.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.unlisted.is_empty() {
            return None;
        }
        let routes = self.routes.values().filter_map(|route| route.queue.next_deadline());
        let paced_writes = routes.chain(self.index.next_revision_deadline()).min();
        // Writes that wait for a turn begin when another one is answered.
        let paced_writes = paced_writes.zip(self.pace.next_turn()).map(|(due, turn)| due.max(turn));
        let ports = self.index.next_port_deadline().filter(|_| !self.port_allocator_epochs.is_empty());
        let own = [
            self.index.next_deadline(),
            self.index.next_count_deadline(),
            self.buckets.next_deadline(now),
            self.events_deadline(now),
            self.drained.next_deadline(),
            ports,
            paced_writes,
        ];
        own.into_iter().flatten().min()
    }

    /// An autoscaler that owns no bucket writes no Events, so it need not wake for them.
    fn events_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.events.next_deadline().filter(|_| !self.buckets.rights(now).is_empty())
    }

    /// Only the owner of a bucket gives ports, and a port stands on the bucket's Lease before activators or
    /// slices use it.
    fn keep_ports(&mut self, now: Timestamp, wall: WallSeconds) {
        if !self.gives_ports {
            return;
        }
        let former = std::mem::take(&mut self.port_allocator_epochs);
        for (bucket, epoch) in epochs(&self.buckets.rights(now)) {
            let Some(noted) = self.buckets.noted(bucket).cloned() else { continue };
            // Also where the bucket was ours before: between two epochs another owner may have given ports.
            if former.get(&bucket) != Some(&epoch) {
                self.index.take_over_ports(bucket, &noted, &self.buckets.noted_elsewhere(bucket), wall);
            }
            self.port_allocator_epochs.insert(bucket, epoch);
            self.index.ports_noted(bucket, &noted);
        }
        for bucket in former.into_keys().filter(|bucket| !self.port_allocator_epochs.contains_key(bucket)) {
            self.index.give_up_ports(bucket);
        }
        self.index.settle_ports(now, wall);
        for (bucket, notes) in self.index.port_notes() {
            self.buckets.note(bucket, notes);
        }
    }

    fn keep_leases(&mut self, now: Timestamp) {
        while let Some((which, write)) = self.buckets.next_write(now) {
            let name = self.buckets.names().name_of(which);
            self.writes.push_back(ClusterWrite::Lease(which, name, write));
        }
        let owned = epochs(&self.buckets.rights(now));
        let changed = changed(&self.owned_epochs, &owned);
        self.owned_epochs = owned;
        if !changed.is_empty() {
            self.index.decider_changed(&changed);
        }
    }

    fn take_order(&mut self, seat: SeatNumber, order: PlatformOrder, moment: Moment) {
        let PlatformOrder { id, fence, what } = order;
        let now = moment.axis;
        let right = self.buckets.rights(now).get(&fence.bucket).copied();
        if right.is_none_or(|right| right.epoch != fence.epoch) {
            return self.order_ended((seat, id), OrderOutcome::NotOwner);
        }
        match what {
            Order::ScaleTo { revision, from, to, because, end_first } => {
                let write = CountWrite { order: id, seat, fence, revision, from, to, end_first, because };
                if let Some(replaced) = self.index.want_count(write) {
                    self.order_ended((replaced.seat, replaced.order), OrderOutcome::Superseded);
                }
            }
            Order::Route { revision, routing, activators } => {
                let route = RouteInForce { routing, activators };
                if self.index.note_revision_route(&revision, routing) {
                    self.take_revision_route((seat, id), revision, route);
                } else {
                    self.take_route((seat, id), revision, route);
                }
            }
            Order::ReleasePod { pod, .. } => self.release_pod((seat, id), pod),
            Order::NotePodState { pod, state, .. } => {
                self.index.note_state(&pod, state);
                self.order_ended((seat, id), OrderOutcome::Done);
            }
            Order::NotePodReach { pod, reach } => {
                self.index.note_reach(&pod, reach);
                self.order_ended((seat, id), OrderOutcome::Done);
            }
            Order::NoteDrained { revision, pod } => {
                if let Some(record) = self.index.pod_record(&pod) {
                    self.drained.note(record, revision, now);
                }
                self.order_ended((seat, id), OrderOutcome::Done);
            }
            Order::ReleaseEntrance { entrance, .. } => {
                match entrance {
                    Entrance::Port(port) => self.index.release_port(port, WallSeconds::of(moment.wall)),
                    // On Kubernetes a revision has ports, and no host names, as entrances.
                    Entrance::Host(_) => {}
                }
                self.order_ended((seat, id), OrderOutcome::Done);
            }
            Order::Tell { about, reason, text } => {
                self.report(&about, reason, text, now);
                self.order_ended((seat, id), OrderOutcome::Done);
            }
        }
    }

    fn take_answer(&mut self, answer: WriteAnswer, now: Timestamp) {
        match answer {
            WriteAnswer::Lease(which, Ok(lease)) => {
                self.buckets.written(which, lease.resource_version, now);
            }
            WriteAnswer::Lease(which, Err(_)) => self.buckets.failed(which, now),
            WriteAnswer::Count(revision, answer) => self.scaled(&revision, answer, now),
            WriteAnswer::Takeover(revision, takeover, how) => {
                self.taken_over(&revision, &takeover, how, now);
            }
            WriteAnswer::Event(_) => {}
            WriteAnswer::Revision(revision, object, how) => {
                self.revision_written(&revision, object, &how, now);
            }
            WriteAnswer::Slices(revision, written, how) => {
                self.slices_written(&revision, written, how, now);
            }
        }
    }

    /// Tells the autoscaler how an order ended. An autoscaler that has left the seat from
    /// which it gave the order is not told.
    fn order_ended(&mut self, (seat, order): (SeatNumber, OrderId), outcome: OrderOutcome) {
        if let Some(feed) = self.feed.as_mut().filter(|feed| feed.seat == seat) {
            feed.order_ended(order, outcome);
        }
    }
}

/// The buckets that have another owner than before, or are ours in a new epoch.
fn changed(before: &BTreeMap<Bucket, Epoch>, now: &BTreeMap<Bucket, Epoch>) -> BTreeSet<Bucket> {
    let all = before.keys().chain(now.keys()).copied();
    all.filter(|bucket| before.get(bucket) != now.get(bucket)).collect()
}
