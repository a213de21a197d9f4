//! The one task that owns the index: watches, orders and answers come in; facts and requests go out. It never
//! waits for the API server: requests run beside it, one per object.

mod events;
mod intake;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::EndpointSubset;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Entrance, Order, OrderId, OrderOutcome, PlatformOrder, RouteInForce};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vocabulary::{Bucket, Epoch, ReplicaName, RevisionName, Timestamp};

use crate::buckets::{AutoscalerLease, Buckets, epochs};
use crate::cluster_inbox::{ClusterDesk, SeatNumber};
use crate::drained_pods::DrainedPods;
use crate::event_book::EventBook;
use crate::fact_feed::Listener;
use crate::index::{Index, Takeover};
use crate::lease::LeaseRecord;
use crate::own_counts::OwnCounts;
use crate::port_book::WallSeconds;
use crate::requests::{Failure, Requests, ScaleAnswer, ScaleErrand, ScaleSubject};
use crate::resources::ObjectKey;
use crate::resources::kind::WorkloadKind;
use crate::routes::RouteWork;
use crate::secrets::Secrets;
use crate::slices::SliceChange;
use crate::watches::{News, Watches};
use crate::write_pace::WritePace;
use crate::write_queue::Work;

/// News that are taken in before anything follows from them.
const NEWS_PER_TURN_MAX: usize = 256;

/// A count is written once in so long, and after a rest once more at once. The first of many requests that
/// come at once brings the first order, and by the second one all of them are known: it must not wait until
/// the first pod takes the processor. What lay between later ones would be writes more, and counts to which
/// nobody scaled.
const COUNT_EVERY: Duration = Duration::from_millis(20);

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

/// What a request came to.
enum Answer {
    Scaled(RevisionName, Result<ScaleAnswer, Failure>),
    SlicesWritten(RevisionName, Vec<(SliceChange, Option<EndpointSlice>)>, Result<(), Failure>),
    TakenOver(RevisionName, Takeover, Result<Option<Vec<EndpointSubset>>, Failure>),
    LeaseWritten(AutoscalerLease, Result<LeaseRecord, Failure>),
    EventWritten(Result<(), Failure>),
}

pub(crate) struct ClusterTask {
    name: ReplicaName,
    desk: Arc<ClusterDesk>,
    requests: Requests,
    watches: Watches,
    index: Index,
    buckets: Buckets,
    listener: Option<Listener>,
    /// Kinds whose first list is not complete: until it is, nobody is told anything.
    unlisted: BTreeSet<Kind>,
    /// Keys that a list has to name, or they are gone.
    known: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    scales: BTreeMap<RevisionName, Work<ScaleErrand>>,
    /// What was asked of the API server and may yet come back by the watch.
    own_counts: OwnCounts,
    routes: BTreeMap<RevisionName, RouteWork>,
    pace: WritePace,
    answers: JoinSet<Answer>,
    /// The buckets of which ports are given, and since which epoch.
    gives_ports: BTreeMap<Bucket, Epoch>,
    events: EventBook,
    /// Pods of which the app alone is left.
    drained: DrainedPods,
    /// The buckets of ours of which people were told what is so.
    tells: BTreeMap<Bucket, Epoch>,
    /// The buckets of ours in which routes are ordered here.
    decides: BTreeMap<Bucket, Epoch>,
}

impl ClusterTask {
    pub(crate) fn new(
        buckets: Buckets,
        requests: Requests,
        watches: Watches,
        secrets: Secrets,
        desk: Arc<ClusterDesk>,
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
            desk,
            requests,
            watches,
            index: Index::new(secrets, buckets.count()),
            name: buckets.name().clone(),
            buckets,
            listener: None,
            unlisted: kinds.into(),
            known: BTreeMap::new(),
            scales: BTreeMap::new(),
            own_counts: OwnCounts::default(),
            routes: BTreeMap::new(),
            pace: WritePace::default(),
            answers: JoinSet::new(),
            gives_ports: BTreeMap::new(),
            events: EventBook::new(salt()),
            drained: DrainedPods::default(),
            tells: BTreeMap::new(),
            decides: BTreeMap::new(),
        }
    }

    /// Turns until the watches end, which they do not.
    pub(crate) async fn run(mut self, mut news: mpsc::Receiver<News>) {
        loop {
            let now = self.requests.clock.now();
            self.settle(now);
            let deadline = self.next_deadline(now);
            let is_full = self.listener.as_ref().is_some_and(Listener::is_full);
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
                () = self.desk.something_new.notified() => self.take_orders(),
                Some(answer) = self.answers.join_next() => match answer {
                    Ok(answer) => self.take_answer(answer),
                    // What it wrote would count as under way for ever. None is stopped but with this task.
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_stopped) => {}
                },
                // Only while it is full: with room to spare this is ready at once, and the loop would never
                // rest.
                () = room(self.listener.as_ref()), if is_full => {}
                () = self.requests.clock.sleep_until(deadline.unwrap_or_default()), if deadline.is_some() => {}
            }
        }
    }

    /// Does what follows from everything that was taken in.
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
        self.tell_people(now);
        let ownership = self.buckets.ownership(now);
        if let Some(listener) = &mut self.listener {
            listener.say(&mut self.index, &ownership, now);
        }
        if self.listener.is_none() && self.buckets.has_left() {
            self.desk.given_up.notify_one();
        }
    }

    fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.unlisted.is_empty() {
            return None;
        }
        let scales = self.scales.values().filter_map(Work::next_deadline);
        let routes = self.routes.values().filter_map(|route| route.work.next_deadline()).min();
        // Those that wait for answers begin when one comes.
        let routes = routes.zip(self.pace.next_turn()).map(|(due, turn)| due.max(turn));
        let ports = self.index.next_port_deadline().filter(|_| !self.gives_ports.is_empty());
        let own = [
            self.index.next_deadline(),
            self.buckets.next_deadline(now),
            self.events_deadline(now),
            self.drained.next_deadline(),
            ports,
        ];
        scales.chain(routes).chain(own.into_iter().flatten()).min()
    }

    /// Whoever owns nothing writes no Events.
    fn events_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.events.next_deadline().filter(|_| !self.buckets.rights(now).is_empty())
    }

    /// Ports are the owner's to give, and what it has given stands on the bucket's Lease before anybody uses
    /// it.
    fn keep_ports(&mut self, now: Timestamp) {
        let wall = WallSeconds::now();
        let former = std::mem::take(&mut self.gives_ports);
        for (bucket, epoch) in epochs(&self.buckets.rights(now)) {
            let Some(noted) = self.buckets.noted(bucket).cloned() else { continue };
            // Also where it was ours before: between two epochs somebody else may have given ports.
            if former.get(&bucket) != Some(&epoch) {
                self.index.take_over_ports(bucket, &noted, &self.buckets.noted_elsewhere(bucket), wall);
            }
            self.gives_ports.insert(bucket, epoch);
            self.index.ports_noted(bucket, &noted);
        }
        for bucket in former.into_keys().filter(|bucket| !self.gives_ports.contains_key(bucket)) {
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
        let decides = epochs(&rights);
        *self.requests.rights.lock() = rights;
        let changed = changed(&self.decides, &decides);
        self.decides = decides;
        if !changed.is_empty() {
            self.index.decider_changed(&changed);
        }
    }

    fn take_orders(&mut self) {
        let left = self.desk.take();
        // One that leaves late must not unseat whoever has come since.
        if let Some(seat) = left.departed
            && self.listener.as_ref().is_some_and(|listener| listener.seat == seat)
        {
            self.listener = None;
            self.buckets.leave();
        }
        if let Some(arrival) = left.arrival {
            self.listener = Some(Listener::new(arrival, &mut self.index));
            self.buckets.enter();
        }
        let is_seated = |seat| self.listener.as_ref().is_some_and(|listener| listener.seat == seat);
        if left.renewed.is_some_and(is_seated) {
            self.buckets.renew();
        }
        for (seat, order) in left.superseded {
            self.ended((seat, order), OrderOutcome::Superseded);
        }
        for ((_, seat), order) in left.orders {
            self.take_order(seat, order);
        }
        for (revision, reply) in left.questions {
            // Whoever asked may have lost patience.
            let _ = reply.send(self.index.target(&revision));
        }
    }

    fn take_order(&mut self, seat: SeatNumber, order: PlatformOrder) {
        let PlatformOrder { id, fence, what } = order;
        let now = self.requests.clock.now();
        let right = self.buckets.rights(now).get(&fence.bucket).copied();
        if right.is_none_or(|right| right.epoch != fence.epoch) {
            return self.ended((seat, id), OrderOutcome::NotOwner);
        }
        match what {
            Order::ScaleTo { revision, from, to, because, end_first } => {
                let name = revision.clone();
                let mut errand =
                    ScaleErrand { order: id, seat, fence, revision, from, to, end_first, because };
                let work = self.scales.entry(name).or_insert_with(|| Work::paced(COUNT_EVERY));
                if let Some(waiting) = work.waiting_mut() {
                    errand.stand_in_for(waiting);
                }
                let replaced = work.put(errand);
                self.superseded(replaced);
            }
            Order::Route { revision, routing, activators } => {
                self.take_route((seat, id), revision, RouteInForce { routing, activators });
            }
            Order::ReleasePod { pod, .. } => self.release_pod((seat, id), pod),
            Order::NotePodState { pod, state, .. } => {
                self.index.note_state(&pod, state);
                self.ended((seat, id), OrderOutcome::Done);
            }
            Order::NotePodReach { pod, reach } => {
                self.index.note_reach(&pod, reach);
                self.ended((seat, id), OrderOutcome::Done);
            }
            Order::NoteDrained { revision, pod } => {
                if let Some(record) = self.index.pod_record(&pod) {
                    self.drained.note(record, revision, now);
                }
                self.ended((seat, id), OrderOutcome::Done);
            }
            Order::ReleaseEntrance { entrance, .. } => {
                match entrance {
                    Entrance::Port(port) => self.index.release_port(port, WallSeconds::now()),
                    // Nobody is known by its host here.
                    Entrance::Host(_) => {}
                }
                self.ended((seat, id), OrderOutcome::Done);
            }
            Order::Tell { about, reason, text } => {
                self.told(&about, reason, text, now);
                self.ended((seat, id), OrderOutcome::Done);
            }
        }
    }

    fn write_counts(&mut self, now: Timestamp) {
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for (revision, work) in &mut self.scales {
            let Some(errand) = work.begin(now) else { continue };
            let Some(target) = self.index.record_of(revision).map(ScaleSubject::of) else {
                work.done();
                gone.push((errand.seat, errand.order));
                continue;
            };
            if !self.index.may_change(revision, errand.from, errand.to) {
                work.done();
                kept.push((errand.seat, errand.order, errand.from));
                continue;
            }
            if errand.from != errand.to {
                self.own_counts.written(revision, errand.to);
            }
            self.index.count_begins(revision, errand.to);
            let is_smaller = errand.to < errand.from;
            let hints = is_smaller.then(|| self.index.deletion_hints(revision, errand.to, &errand.end_first));
            let (requests, revision) = (self.requests.clone(), revision.clone());
            // A panic in it is ours.
            self.answers.spawn(async move {
                // Before the count: whoever ends pods chooses them as soon as that is smaller.
                requests.hint(errand.fence, revision.namespace(), &hints.unwrap_or_default()).await;
                let answer = requests.scale(&errand, &target).await;
                Answer::Scaled(revision, answer)
            });
        }
        for giver in gone {
            self.ended(giver, OrderOutcome::Gone);
        }
        // The count stays as if somebody had written it again; why, the Service's problems say.
        for (seat, order, found) in kept {
            self.ended((seat, order), OrderOutcome::Conflict { found });
        }
        self.scales.retain(|_, work| !work.is_idle(now));
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

    fn scaled(&mut self, revision: &RevisionName, answer: Result<ScaleAnswer, Failure>, now: Timestamp) {
        let version = answer.as_ref().ok().and_then(|answer| answer.version);
        self.index.count_ended(revision, version);
        let outcome = answer.map(|answer| answer.outcome);
        let Some(work) = self.scales.get_mut(revision) else { return };
        let Some(errand) = work.under_way() else { return };
        let giver = (errand.seat, errand.order);
        let errand = errand.clone();
        self.note_scaling(&errand, &outcome, now);
        let Some(work) = self.scales.get_mut(revision) else { return };
        let replaced = match &outcome {
            Err(Failure::Passing { after, .. }) => work.failed(*after, now),
            // Whether it is gone is the watch's to say, and before the next attempt the index is asked.
            Err(Failure::Conflict | Failure::Gone(_) | Failure::Refused(_) | Failure::Forbidden(_)) => {
                work.failed(None, now)
            }
            Ok(_) | Err(Failure::NotOwner) => {
                work.done();
                None
            }
        };
        if let (Ok(OrderOutcome::Done), Some(waiting)) = (&outcome, work.waiting_mut()) {
            waiting.come_after(&errand);
        }
        if let (Some(replaced), Some(waiting)) = (&replaced, work.waiting_mut()) {
            waiting.stand_in_for(replaced);
        }
        let outcome = outcome.unwrap_or_else(|failure| {
            tracing::warn!(%revision, ?failure, "the count could not be written");
            failure.outcome()
        });
        self.ended(giver, outcome);
        self.superseded(replaced);
    }

    fn superseded(&mut self, errand: Option<ScaleErrand>) {
        if let Some(errand) = errand {
            self.ended((errand.seat, errand.order), OrderOutcome::Superseded);
        }
    }

    /// Whoever gave the order may have left; then nobody else is told.
    fn ended(&mut self, (seat, order): (SeatNumber, OrderId), outcome: OrderOutcome) {
        if let Some(listener) = self.listener.as_mut().filter(|listener| listener.seat == seat) {
            listener.ended(order, outcome);
        }
    }
}

/// Those that are somebody else's than before, or ours anew.
fn changed(before: &BTreeMap<Bucket, Epoch>, now: &BTreeMap<Bucket, Epoch>) -> BTreeSet<Bucket> {
    let all = before.keys().chain(now.keys()).copied();
    all.filter(|bucket| before.get(bucket) != now.get(bucket)).collect()
}

/// Unlike that of any autoscaler before, so that names of Events are.
fn salt() -> u64 {
    let since = runtime::wall_time().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}

async fn room(listener: Option<&Listener>) {
    match listener {
        Some(listener) => listener.room().await,
        None => std::future::pending().await,
    }
}
