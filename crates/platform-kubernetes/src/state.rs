//! The one task that owns the index: watches, orders and answers come in; facts and requests go out. It never
//! waits for the API server: requests run beside it, one per object.

mod counts;
mod events;
mod intake;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Entrance, Order, OrderId, OrderOutcome, PlatformOrder, RouteInForce};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vocabulary::{Bucket, Epoch, ReplicaName, RevisionName, Timestamp};

use crate::buckets::{AutoscalerLease, Buckets, epochs};
use crate::cluster_inbox::{ClusterInbox, SeatNumber};
use crate::count_writer::CountWrite;
use crate::drained_pods::DrainedPods;
use crate::event_book::EventBook;
use crate::fact_feed::FactFeed;
use crate::index::{Index, Takeover};
use crate::lease::LeaseRecord;
use crate::port_book::WallSeconds;
use crate::requests::{Failure, Requests, ScaleAnswer};
use crate::resources::ObjectKey;
use crate::resources::kind::WorkloadKind;
use crate::routes::RouteWork;
use crate::secrets::Secrets;
use crate::slices::SliceChange;
use crate::watches::{News, Watches};
use crate::write_pace::WritePace;

/// The number of news that are taken in before facts and requests follow from them.
const NEWS_PER_TURN_MAX: usize = 256;

/// Kinds of objects that are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Config,
    Observability,
    Service,
    Workload(WorkloadKind),
    Pod,
    Activator,
    Autoscaler,
    Node,
    Slice,
    OtherSlice,
    Endpoints,
    Lease,
}

/// How a request to the API server ended.
enum Answer {
    Scaled(RevisionName, Result<ScaleAnswer, Failure>),
    SlicesWritten(RevisionName, Vec<(SliceChange, Option<EndpointSlice>)>, Result<(), Failure>),
    TakenOver(RevisionName, Takeover, Result<Option<Vec<EndpointSubset>>, Failure>),
    LeaseWritten(AutoscalerLease, Result<LeaseRecord, Failure>),
    EventWritten(Result<(), Failure>),
}

pub(crate) struct ClusterTask {
    name: ReplicaName,
    inbox: Arc<ClusterInbox>,
    requests: Requests,
    watches: Watches,
    index: Index,
    buckets: Buckets,
    feed: Option<FactFeed>,
    /// Kinds whose first list is not complete. Until all lists are, no facts, Events or writes go out.
    unlisted: BTreeSet<Kind>,
    /// The keys of the objects that are known. An object that a complete list does not name is gone.
    known: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    routes: BTreeMap<RevisionName, RouteWork>,
    pace: WritePace,
    answers: JoinSet<Answer>,
    /// The buckets of which this autoscaler gives ports of activators, and since which epoch.
    port_allocator_epochs: BTreeMap<Bucket, Epoch>,
    events: EventBook,
    /// Pods of which the app alone is left.
    drained: DrainedPods,
    /// The buckets of ours about whose objects people were told everything, and since which epoch.
    notified_epochs: BTreeMap<Bucket, Epoch>,
    /// The buckets that this autoscaler owns, so that routes are ordered here, and since which epoch.
    owned_epochs: BTreeMap<Bucket, Epoch>,
}

impl ClusterTask {
    pub(crate) fn new(
        buckets: Buckets,
        requests: Requests,
        watches: Watches,
        secrets: Secrets,
        inbox: Arc<ClusterInbox>,
    ) -> Self {
        let kinds = [
            Kind::Config,
            Kind::Observability,
            Kind::Service,
            Kind::Workload(WorkloadKind::Deployment),
            Kind::Pod,
            Kind::Activator,
            Kind::Autoscaler,
            Kind::Node,
            Kind::Slice,
            Kind::OtherSlice,
            Kind::Endpoints,
            Kind::Lease,
        ];
        Self {
            inbox,
            requests,
            watches,
            index: Index::new(secrets, buckets.count()),
            name: buckets.name().clone(),
            buckets,
            feed: None,
            unlisted: kinds.into(),
            known: BTreeMap::new(),
            routes: BTreeMap::new(),
            pace: WritePace::default(),
            answers: JoinSet::new(),
            port_allocator_epochs: BTreeMap::new(),
            events: EventBook::new(salt()),
            drained: DrainedPods::default(),
            notified_epochs: BTreeMap::new(),
            owned_epochs: BTreeMap::new(),
        }
    }

    /// Turns until the watches end, which they do not.
    pub(crate) async fn run(mut self, mut news: mpsc::Receiver<News>) {
        loop {
            let now = self.requests.clock.now();
            self.settle(now);
            let deadline = self.next_deadline(now);
            let is_full = self.feed.as_ref().is_some_and(FactFeed::is_full);
            // Every arm is cancel-safe: what was not taken stays in its channel, slot or set.
            tokio::select! {
                Some(first) = news.recv() => {
                    let now = self.requests.clock.now();
                    self.take_news(first, now);
                    for _ in 1..NEWS_PER_TURN_MAX {
                        let Ok(more) = news.try_recv() else { break };
                        self.take_news(more, now);
                    }
                }
                () = self.inbox.updated.notified() => self.take_orders(),
                Some(answer) = self.answers.join_next() => match answer {
                    Ok(answer) => self.take_answer(answer),
                    // After a panic the write would count as under way for ever. Requests are stopped only
                    // with this task.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_stopped) => {}
                },
                // Only while it is full: with room to spare this is ready at once, and the loop would never
                // rest.
                () = room_in_feed(self.feed.as_ref()), if is_full => {}
                () = self.requests.clock.sleep_until(deadline.unwrap_or_default()), if deadline.is_some() => {}
            }
        }
    }

    /// Sends the facts and begins the requests that follow from everything that was taken in.
    fn settle(&mut self, now: Timestamp) {
        if !self.unlisted.is_empty() {
            return;
        }
        for kind in self.index.take_kinds_to_watch() {
            self.watches.watch_kind(kind);
        }
        for kind in self.index.take_kinds_to_leave(now) {
            self.watches.leave_kind(&kind);
        }
        self.keep_ports(now);
        // After the ports, so that what was given just now is in the write that begins here.
        self.keep_leases(now);
        self.index.turn_hop_keys(now, WallSeconds::now());
        self.index.pass(now);
        self.write_slices(now);
        self.write_counts(now);
        self.report_pods_ignoring_sigterm(now);
        self.write_events(now);
        let ownership = self.buckets.ownership(now);
        if let Some(feed) = &mut self.feed {
            feed.send_facts(&mut self.index, &ownership, now);
        }
        if self.feed.is_none() && self.buckets.has_left() {
            self.inbox.given_up.notify_one();
        }
    }

    fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.unlisted.is_empty() {
            return None;
        }
        let routes = self.routes.values().filter_map(|route| route.queue.next_deadline()).min();
        // Writes that wait for a turn begin when another one is answered.
        let routes = routes.zip(self.pace.next_turn()).map(|(due, turn)| due.max(turn));
        let ports = self.index.next_port_deadline().filter(|_| !self.port_allocator_epochs.is_empty());
        let own = [
            self.index.next_deadline(),
            self.index.next_count_deadline(),
            self.buckets.next_deadline(now),
            self.events_deadline(now),
            self.drained.next_deadline(),
            ports,
            routes,
        ];
        own.into_iter().flatten().min()
    }

    /// An autoscaler that owns no bucket writes no Events, so it need not wake for them.
    fn events_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.events.next_deadline().filter(|_| !self.buckets.rights(now).is_empty())
    }

    /// Only the owner of a bucket gives ports, and a port stands on the bucket's Lease before activators or
    /// slices use it.
    fn keep_ports(&mut self, now: Timestamp) {
        let wall = WallSeconds::now();
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
            let requests = self.requests.clone();
            // A panic in it is ours; see where answers are taken.
            self.answers.spawn(async move {
                Answer::LeaseWritten(which, requests.write_lease(&which.name(), &write).await)
            });
        }
        let rights = self.buckets.rights(now);
        let owned = epochs(&rights);
        *self.requests.rights.lock() = rights;
        let changed = changed(&self.owned_epochs, &owned);
        self.owned_epochs = owned;
        if !changed.is_empty() {
            self.index.decider_changed(&changed);
        }
    }

    fn take_orders(&mut self) {
        let mut left = self.inbox.take();
        // A seat that is left late must not take the place of a newer one.
        if let Some(seat) = left.departed
            && self.feed.as_ref().is_some_and(|feed| feed.seat == seat)
        {
            self.feed = None;
            self.buckets.leave();
        }
        if let Some(new_seat) = left.new_seat {
            self.feed = Some(FactFeed::new(new_seat, &mut self.index));
            self.buckets.enter();
        }
        let is_seated = |seat| self.feed.as_ref().is_some_and(|feed| feed.seat == seat);
        if left.renewed.is_some_and(is_seated) {
            self.buckets.renew();
        }
        for (seat, order) in left.desk.take_replaced() {
            self.order_ended((seat, order), OrderOutcome::Superseded);
        }
        for (seat, order) in left.desk.into_orders() {
            self.take_order(seat, order);
        }
        for (revision, reply) in left.target_queries {
            // The metric source may have stopped waiting for the reply.
            let _ = reply.send(self.index.target(&revision));
        }
    }

    fn take_order(&mut self, seat: SeatNumber, order: PlatformOrder) {
        let PlatformOrder { id, fence, what } = order;
        let now = self.requests.clock.now();
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
                self.take_route((seat, id), revision, RouteInForce { routing, activators });
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
                    Entrance::Port(port) => self.index.release_port(port, WallSeconds::now()),
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

    fn take_answer(&mut self, answer: Answer) {
        let now = self.requests.clock.now();
        match answer {
            Answer::LeaseWritten(which, Ok(lease)) => {
                self.buckets.written(which, lease.resource_version, now);
                *self.requests.rights.lock() = self.buckets.rights(now);
            }
            Answer::LeaseWritten(which, Err(failure)) => {
                tracing::warn!(lease = which.name(), ?failure, "a Lease could not be written");
                self.buckets.failed(which, now);
            }
            Answer::Scaled(revision, answer) => self.scaled(&revision, answer, now),
            Answer::TakenOver(revision, takeover, how) => self.taken_over(&revision, &takeover, how, now),
            Answer::EventWritten(Ok(())) => {}
            Answer::EventWritten(Err(failure)) => {
                tracing::debug!(?failure, "an Event could not be written");
            }
            Answer::SlicesWritten(revision, written, how) => {
                self.slices_written(&revision, written, how, now);
            }
        }
    }

    /// Tells the autoscaler how an order ended. If it has left the seat from which it gave the order, nobody
    /// is told.
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

/// A number that no autoscaler had before, so that names of Events are unique.
fn salt() -> u64 {
    let since = runtime::wall_time().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

async fn room_in_feed(feed: Option<&FactFeed>) {
    match feed {
        Some(feed) => feed.wait_for_room().await,
        None => std::future::pending().await,
    }
}
