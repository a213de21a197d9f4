//! The one task that owns the index: watches, orders and answers come in; facts and requests go out. It never waits for the API server: requests run beside
//! it, one per object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Entrance, Fence, Order, OrderId, OrderOutcome, PlatformOrder, RouteInForce};
use scaling::RevisionOrigin;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vocabulary::{Bucket, Epoch, PodName, ReplicaName, RevisionName, Timestamp};

use crate::audience::Listener;
use crate::desk::{Desk, SeatId};
use crate::index::Index;
use crate::lease::{LeaseKeeper, LeaseRecord};
use crate::port_book::WallSeconds;
use crate::requests::{Failure, Requests, ScaleErrand};
use crate::resources::ObjectKey;
use crate::routes::{Giver, RouteWork};
use crate::secrets::Secrets;
use crate::slices::SliceChange;
use crate::watches::{Change, News};
use crate::work::Work;

/// News that are taken in before anything follows from them.
const NEWS_PER_TURN_MAX: usize = 256;

/// Kinds of objects that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Config,
    Service,
    Workload,
    Pod,
    Activator,
    Autoscaler,
    Slice,
    Lease,
}

/// What a request came to.
enum Answer {
    Scaled(RevisionName, Result<OrderOutcome, Failure>),
    SlicesWritten(RevisionName, Vec<(SliceChange, Option<EndpointSlice>)>, Result<(), Failure>),
    LeaseWritten(Result<LeaseRecord, Failure>),
}

pub(crate) struct Task {
    desk: Arc<Desk>,
    requests: Requests,
    index: Index,
    lease: LeaseKeeper,
    listener: Option<Listener>,
    /// Kinds whose first list is not complete: until it is, nobody is told anything.
    unlisted: BTreeSet<Kind>,
    /// Keys that a list has to name, or they are gone.
    known: BTreeMap<Kind, BTreeSet<ObjectKey>>,
    scales: BTreeMap<RevisionName, Work<ScaleErrand>>,
    routes: BTreeMap<RevisionName, RouteWork>,
    answers: JoinSet<Answer>,
    /// The epoch in which ports are given.
    ports_since: Option<Epoch>,
}

impl Task {
    pub(crate) fn new(name: ReplicaName, requests: Requests, secrets: Secrets, desk: Arc<Desk>) -> Self {
        let kinds = [
            Kind::Config,
            Kind::Service,
            Kind::Workload,
            Kind::Pod,
            Kind::Activator,
            Kind::Autoscaler,
            Kind::Slice,
            Kind::Lease,
        ];
        Self {
            desk,
            requests,
            index: Index::new(secrets.hop_keys, secrets.activator_token),
            lease: LeaseKeeper::new(name),
            listener: None,
            unlisted: kinds.into(),
            known: BTreeMap::new(),
            scales: BTreeMap::new(),
            routes: BTreeMap::new(),
            answers: JoinSet::new(),
            ports_since: None,
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
                Some(answer) = self.answers.join_next() => {
                    if let Ok(answer) = answer {
                        self.take_answer(answer);
                    }
                }
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
        self.keep_ports(now);
        self.keep_lease(now);
        self.write_slices(now);
        self.write_counts(now);
        let right = self.lease.right(now);
        if let Some(listener) = &mut self.listener {
            listener.say(&mut self.index, right, now);
        }
        if self.listener.is_none() && self.lease.has_left() {
            self.desk.given_up.notify_one();
        }
    }

    fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.unlisted.is_empty() {
            return None;
        }
        let scales = self.scales.values().filter_map(Work::next_deadline);
        let routes = self.routes.values().filter_map(|route| route.work.next_deadline());
        let ports = self.index.next_port_deadline().filter(|_| self.ports_since.is_some());
        scales.chain(routes).chain(self.lease.next_deadline(now)).chain(ports).min()
    }

    /// Ports are the owner's to give, and what it has given stands on the lease before anybody uses it.
    fn keep_ports(&mut self, now: Timestamp) {
        let epoch = self.lease.right(now).map(|right| right.epoch);
        let Some(noted) = self.lease.noted().filter(|_| epoch.is_some()).cloned() else {
            self.ports_since = None;
            return;
        };
        if self.ports_since != epoch {
            self.ports_since = epoch;
            self.index.take_over_ports(&noted, wall_seconds());
        }
        self.index.ports_noted(&noted);
        self.index.settle_ports(now, wall_seconds());
        if let Some(notes) = self.index.port_notes() {
            self.lease.note(notes);
        }
    }

    fn keep_lease(&mut self, now: Timestamp) {
        if let Some(write) = self.lease.next_write(now) {
            let requests = self.requests.clone();
            self.answers.spawn(async move { Answer::LeaseWritten(requests.write_lease(&write).await) });
        }
        *self.requests.right.lock() = self.lease.right(now);
    }

    fn take_orders(&mut self) {
        let left = self.desk.take();
        if let Some(seat) = left.departed
            && self.listener.as_ref().is_some_and(|listener| listener.seat == seat)
        {
            self.listener = None;
            self.lease.leave();
        }
        if let Some(arrival) = left.arrival {
            self.listener = Some(Listener::new(arrival, &mut self.index));
            self.lease.enter();
        }
        let is_seated = |seat| self.listener.as_ref().is_some_and(|listener| listener.seat == seat);
        if left.renewed.is_some_and(is_seated) {
            self.lease.renew();
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

    fn take_order(&mut self, seat: SeatId, order: PlatformOrder) {
        let PlatformOrder { id, fence, what } = order;
        let right = self.lease.right(self.requests.clock.now());
        if right.is_none_or(|right| right.epoch != fence.epoch) || fence.bucket != Bucket(0) {
            return self.ended((seat, id), OrderOutcome::NotOwner);
        }
        match what {
            Order::ScaleTo { revision, from, to, .. } => {
                let errand = ScaleErrand { order: id, seat, fence, revision: revision.clone(), from, to };
                let replaced = self.scales.entry(revision).or_default().put(errand);
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
            Order::ReleaseEntrance { entrance, .. } => {
                match entrance {
                    Entrance::Port(port) => self.index.release_port(port, wall_seconds()),
                    // Nobody is known by its host here.
                    Entrance::Host(_) => {}
                }
                self.ended((seat, id), OrderOutcome::Done);
            }
            Order::Tell { about, reason, text } => {
                tracing::warn!(?about, %reason, "{text}");
                self.ended((seat, id), OrderOutcome::Done);
            }
        }
    }

    fn take_route(&mut self, giver: Giver, revision: RevisionName, route: RouteInForce) {
        if !self.index.is_revision(&revision) {
            return self.ended(giver, OrderOutcome::Gone);
        }
        self.index.set_route(&revision, route);
        let replaced = self.routes.entry(revision).or_default().ordered_by.replace(giver);
        if let Some(replaced) = replaced {
            self.ended(replaced, OrderOutcome::Superseded);
        }
    }

    fn release_pod(&mut self, giver: Giver, pod: PodName) {
        let Some(revision) = self.index.revision_of_pod(&pod) else {
            return self.ended(giver, OrderOutcome::Gone);
        };
        let replaced = self.routes.entry(revision).or_default().release(pod, giver);
        if let Some(replaced) = replaced {
            self.ended(replaced, OrderOutcome::Superseded);
        }
    }

    /// Begins to write whatever slices are not as they should be. Who waits for them is told once nothing is left to be written.
    fn write_slices(&mut self, now: Timestamp) {
        for revision in self.index.take_unrouted() {
            self.routes.entry(revision).or_default().work.put(());
        }
        let right = self.lease.right(now);
        let mut ended = Vec::new();
        for (revision, route) in &mut self.routes {
            if route.work.begin(now).is_none() {
                continue;
            }
            let changes = self.index.slice_changes(revision);
            let Some(right) = right else {
                route.work.done();
                ended.extend(route.give_up().into_iter().map(|giver| (giver, OrderOutcome::NotOwner)));
                continue;
            };
            if changes.is_empty() {
                route.work.done();
                let settled = route.settle(revision, &self.index);
                ended.extend(settled.into_iter().map(|giver| (giver, OrderOutcome::Done)));
                continue;
            }
            let fence = Fence { bucket: Bucket(0), epoch: right.epoch };
            let (requests, revision) = (self.requests.clone(), revision.clone());
            self.answers.spawn(async move {
                let (written, how) = requests.write_slices(fence, changes).await;
                Answer::SlicesWritten(revision, written, how)
            });
        }
        self.routes.retain(|_, route| !route.is_idle());
        for (giver, outcome) in ended {
            self.ended(giver, outcome);
        }
    }

    fn write_counts(&mut self, now: Timestamp) {
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for (revision, work) in &mut self.scales {
            let Some(errand) = work.begin(now) else { continue };
            let Some(uid) = self.index.uid_of(revision).map(str::to_owned) else {
                work.done();
                gone.push((errand.seat, errand.order));
                continue;
            };
            if errand.to < errand.from && self.index.stays_direct(revision) {
                work.done();
                kept.push((errand.seat, errand.order, errand.from));
                continue;
            }
            let (requests, revision) = (self.requests.clone(), revision.clone());
            self.answers.spawn(async move {
                let outcome = requests.scale(&errand, &uid).await;
                Answer::Scaled(revision, outcome)
            });
        }
        for giver in gone {
            self.ended(giver, OrderOutcome::Gone);
        }
        // The count stays as if somebody had written it again; why, the Service's problems say.
        for (seat, order, found) in kept {
            self.ended((seat, order), OrderOutcome::Conflict { found });
        }
        self.scales.retain(|_, work| !work.is_idle());
    }

    fn take_answer(&mut self, answer: Answer) {
        let now = self.requests.clock.now();
        match answer {
            Answer::LeaseWritten(Ok(lease)) => {
                self.lease.written(lease.resource_version, now);
                *self.requests.right.lock() = self.lease.right(now);
            }
            Answer::LeaseWritten(Err(failure)) => {
                tracing::warn!(?failure, "the lease could not be written");
                self.lease.failed(now);
            }
            Answer::Scaled(revision, outcome) => self.scaled(&revision, outcome, now),
            Answer::SlicesWritten(revision, written, how) => {
                self.slices_written(&revision, written, how, now);
            }
        }
    }

    fn scaled(&mut self, revision: &RevisionName, outcome: Result<OrderOutcome, Failure>, now: Timestamp) {
        let Some(work) = self.scales.get_mut(revision) else { return };
        let Some(errand) = work.under_way() else { return };
        let giver = (errand.seat, errand.order);
        let replaced = match &outcome {
            Err(Failure::Passing { after, .. }) => work.failed(*after, now),
            Err(Failure::Conflict | Failure::Forbidden(_)) => work.failed(None, now),
            Ok(_) | Err(Failure::NotOwner | Failure::Gone(_) | Failure::Refused(_)) => {
                work.done();
                None
            }
        };
        let outcome = outcome.unwrap_or_else(|failure| {
            tracing::warn!(%revision, ?failure, "the count could not be written");
            failure.outcome()
        });
        self.ended(giver, outcome);
        self.superseded(replaced);
    }

    fn slices_written(
        &mut self,
        revision: &RevisionName,
        written: Vec<(SliceChange, Option<EndpointSlice>)>,
        how: Result<(), Failure>,
        now: Timestamp,
    ) {
        for (change, slice) in written {
            let (SliceChange::Create(former) | SliceChange::Replace(former) | SliceChange::Delete(former)) =
                change;
            match slice {
                Some(slice) => self.index.put_slice(slice),
                None => self.index.remove_slice(&ObjectKey::of(&former.metadata)),
            }
        }
        let Some(route) = self.routes.get_mut(revision) else { return };
        let Err(failure) = how else {
            // Whether that was all is asked anew, for pods may have changed meanwhile.
            route.work.done();
            route.work.put(());
            return;
        };
        tracing::warn!(%revision, ?failure, "slices could not be written");
        let after = match &failure {
            Failure::Passing { after, .. } => *after,
            Failure::NotOwner
            | Failure::Gone(_)
            | Failure::Conflict
            | Failure::Refused(_)
            | Failure::Forbidden(_) => None,
        };
        route.work.failed(after, now);
        // It is tried again, whatever it was: who serves must become true.
        if let Some(giver) = route.ordered_by {
            let outcome = OrderOutcome::Retrying(format!("{failure:?}"));
            self.ended(giver, outcome);
        }
    }

    fn superseded(&mut self, errand: Option<ScaleErrand>) {
        if let Some(errand) = errand {
            self.ended((errand.seat, errand.order), OrderOutcome::Superseded);
        }
    }

    /// Whoever gave the order may have left; then nobody else is told.
    fn ended(&mut self, (seat, order): (SeatId, OrderId), outcome: OrderOutcome) {
        if let Some(listener) = self.listener.as_mut().filter(|listener| listener.seat == seat) {
            listener.ended(order, outcome);
        }
    }

    fn take_news(&mut self, news: News, now: Timestamp) {
        match news {
            News::Config(change) => {
                self.take(Kind::Config, change, |task, _, data| {
                    task.index.put_config(&data.unwrap_or_default());
                });
            }
            News::Service(change) => self.take(Kind::Service, change, |task, key, service| match service {
                Some(service) => task.index.put_service(&key, service),
                None => task.index.remove_service(&key),
            }),
            News::Workload(change) => {
                let is_first = self.unlisted.contains(&Kind::Workload);
                let origin = if is_first { RevisionOrigin::Found } else { RevisionOrigin::New };
                self.take(Kind::Workload, change, |task, key, workload| match workload.flatten() {
                    Some(workload) => task.index.put_workload(workload, origin),
                    None => {
                        if let Ok(revision) = RevisionName::new(&key.namespace, "deployment", &key.name) {
                            task.index.remove_workload(&revision);
                        }
                    }
                });
            }
            News::Pod(change) => self.take(Kind::Pod, change, |task, key, pod| match pod {
                Some(pod) => task.index.put_pod(pod, now),
                None => task.index.remove_pod(&PodName::new(&format!("{}/{}", key.namespace, key.name))),
            }),
            News::Activator(change) => self.take(Kind::Activator, change, |task, key, pod| match pod {
                Some(pod) => task.index.put_activator(&pod),
                None => task.index.remove_activator(&ReplicaName::new(&key.name)),
            }),
            News::Autoscaler(change) => {
                self.take(Kind::Autoscaler, change, |task, key, record| {
                    task.index.put_autoscaler(key, record);
                });
            }
            News::Slice(change) => self.take(Kind::Slice, change, |task, key, slice| match slice {
                Some(slice) => task.index.put_slice(*slice),
                None => task.index.remove_slice(&key),
            }),
            News::Lease(change) => {
                if matches!(&change, Change::Listed(keys) if keys.is_empty()) {
                    self.lease.observe(None, now);
                }
                self.take(Kind::Lease, change, |task, _, lease| task.lease.observe(lease, now));
            }
        }
    }

    /// Puts each record in, and takes out (`None`) what is gone.
    fn take<Record>(
        &mut self,
        kind: Kind,
        change: Change<Record>,
        mut put: impl FnMut(&mut Self, ObjectKey, Option<Record>),
    ) {
        match change {
            Change::Put(key, record) => {
                self.known.entry(kind).or_default().insert(key.clone());
                put(self, key, Some(record));
            }
            Change::Gone(key) => {
                self.known.entry(kind).or_default().remove(&key);
                put(self, key, None);
            }
            Change::Listed(keys) => {
                let former = self.known.insert(kind, keys.clone()).unwrap_or_default();
                for gone in former.difference(&keys) {
                    put(self, gone.clone(), None);
                }
                self.unlisted.remove(&kind);
            }
        }
    }
}

async fn room(listener: Option<&Listener>) {
    match listener {
        Some(listener) => listener.room().await,
        None => std::future::pending().await,
    }
}

fn wall_seconds() -> WallSeconds {
    let since_1970 = runtime::wall_time().duration_since(std::time::UNIX_EPOCH);
    WallSeconds(since_1970.map(|duration| duration.as_secs()).unwrap_or_default())
}
