//! The one task that owns all state: it takes in what waits for it, lets the fleet decide, and carries the
//! actions out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orchestration::{Order, OrderOutcome, PlatformOrder, RouteInForce};
use runtime::{Clock, RequestReporting, vital};
use tokio::sync::{mpsc, watch};
use vocabulary::{PodName, PodState, RevisionName, Timestamp};

use super::causes::why;
use super::certified_hosts::CertifiedHosts;
use super::cores::Cores;
use super::fleet::{Fleet, PodNews, TargetPresence};
use super::handover::{HandOverVerdict, Reply};
use super::image_keeper::ImageKeeper;
use super::leases::SeatId;
use super::limits::LimitKeeper;
use super::logs::LogSink;
use super::order_inbox::{OrderInbox, RolloutWish, SeatChange};
use super::outbox::{PlatformStatus, PlatformTopic};
use super::pod::StartWait;
use super::pods_usage::PodsUsage;
use super::process::{self, ProcessHandle, ProcessStart, ProcessWish};
use super::rolled_back::RolledBackService;
use super::start_usage::StartUsage;
use super::starts::{Machine, Starts};
use super::subscribers::Subscribers;
use super::supervised_revision::{Action, CountOrder};
use crate::manifest::{FilesReading, LoadedManifest, Trouble};
use crate::memory::free_kib;
use crate::pod::{PodMessage, PodSpec};

pub(super) struct Supervisor {
    pub(super) inbox: Arc<OrderInbox>,
    pub(super) clock: Clock,
    /// The soft limit of open files of apps; `None`: as `ebb` itself has it.
    pub(super) app_descriptors: Option<u64>,
    /// The executable for pods, if it is not this one.
    pub(super) ebb: Option<PathBuf>,
    pub(super) fleet: Fleet,
    pub(super) subscribers: Subscribers,
    pub(super) status: PlatformStatus,
    /// The manifests that are in force.
    pub(super) loaded: Arc<LoadedManifest>,
    /// The same manifests for the task that reads the files.
    pub(super) last_good: watch::Sender<Arc<LoadedManifest>>,
    /// Which logs, metrics and traces activators write about each request.
    pub(super) reporting: watch::Sender<Arc<RequestReporting>>,
    /// The problems of the files as they are now.
    pub(super) troubles: Vec<Trouble>,
    /// The warnings that were logged, so that each is logged once.
    pub(super) warnings: Vec<Trouble>,
    /// Services that a person removed, each with its file: they come back when that file is written again.
    pub(super) deleted: BTreeMap<RevisionName, PathBuf>,
    /// Services that a person rolled back: their templates come back when their files are written again.
    pub(super) rolled_back: BTreeMap<RevisionName, RolledBackService>,
    pub(super) logs: LogSink,
    pub(super) limits: LimitKeeper,
    pub(super) images: ImageKeeper,
    /// Which hosts a certificate covers, if there are certificates.
    pub(super) certified: Option<CertifiedHosts>,
    /// The pods that wait for their start.
    pub(super) starts: Starts,
    pub(super) cores: Cores,
    pub(super) pods_usage: PodsUsage,
    /// The pods that have a process, each with the channels to its watch.
    pub(super) processes: BTreeMap<PodName, ProcessHandle>,
    /// The end of the channel of news that each new watch gets.
    pub(super) news_in: mpsc::Sender<(PodName, PodNews)>,
}

impl Supervisor {
    pub(super) async fn run(
        mut self,
        mut news: mpsc::Receiver<(PodName, PodNews)>,
        mut readings: mpsc::Receiver<FilesReading>,
    ) {
        // However this task ends, callers of `drain` stop waiting for it.
        let _ended = self.inbox.ended.clone().drop_guard();
        self.apply(&Arc::clone(&self.loaded));
        loop {
            // One turn: the actions of the fleet are carried out, subscribers get what has changed, and then
            // the next event is taken in. So a subscriber never sees something half done.
            self.carry_out_actions();
            let changes = self.fleet.take_changes();
            for (revision, template) in &changes.rolled_out {
                tracing::info!(%revision, template, "rolled out: every older pod is on its way out");
            }
            for removed in &changes.removed {
                self.logs.store().forget(removed);
                self.starts.forget(removed);
            }
            self.subscribers.note_changes(&changes);
            let more_to_say = self.subscribers.deliver(&self.fleet, &self.status);
            if self.fleet.has_ended() && self.processes.is_empty() {
                break;
            }
            let deadlines =
                [self.fleet.next_deadline(), self.starts.next_deadline(), self.subscribers.next_deadline()];
            let deadline = deadlines.into_iter().flatten().min();
            // Every arm is cancel-safe: what was not received stays in its channel or slot.
            tokio::select! {
                () = self.inbox.changed.notified() => {
                    let reply = self.take_orders();
                    if let Some(reply) = reply
                        && self.hand_over(reply, &mut news).await == HandOverVerdict::Given
                    {
                        break;
                    }
                }
                Some((pod, what)) = news.recv() => self.take_news(&pod, &what),
                Some(reading) = readings.recv() => self.take_reading(reading),
                () = self.subscribers.wait_for_room(), if more_to_say => {}
                () = self.clock.sleep_until(deadline.unwrap_or_default()), if deadline.is_some() => {
                    let now = self.clock.now();
                    self.fleet.advance(now);
                    self.subscribers.advance(&self.fleet, now);
                }
            }
        }
        self.logs.flush().await;
    }

    pub(super) fn apply(&mut self, loaded: &LoadedManifest) {
        let hosts = self.certified.as_ref().map(|certified| certified.problems_of(loaded));
        let problems = [self.limits.problems_of(loaded), hosts.unwrap_or_default()].concat();
        if self.status.service_problems != problems {
            self.status.service_problems = problems;
            self.subscribers.note_topic(PlatformTopic::Problems);
        }
        self.fleet.apply(loaded, self.clock.now());
        *self.inbox.longest_drain.lock() = self.fleet.longest_drain();
    }

    /// Takes in all orders; returns the channel of a caller that wants everything handed over.
    fn take_orders(&mut self) -> Option<Reply> {
        let mut orders = std::mem::take(&mut *self.inbox.orders.lock());
        let now = self.clock.now();
        for change in orders.seats {
            match change {
                SeatChange::Taken(arrival) => self.subscribers.take_seat(arrival, &self.fleet, now),
                SeatChange::Left(seat) => self.subscribers.leave_seat(seat, &self.fleet, now),
            }
        }
        if !orders.renewals.is_empty() {
            self.subscribers.renew(orders.renewals, &self.fleet, now);
        }
        if let Some(activators) = orders.activators {
            self.status.activators = activators;
            self.subscribers.note_topic(PlatformTopic::Activators);
        }
        if let Some(problems) = orders.standing_problems
            && self.status.set_standing_problems(problems)
        {
            self.subscribers.note_topic(PlatformTopic::Problems);
        }
        // Told before the orders that took their place, in the order in which they were given.
        for (seat, order) in orders.desk.take_replaced() {
            self.subscribers.order_ended(seat, order, OrderOutcome::Superseded);
        }
        for (seat, order) in orders.desk.into_orders() {
            self.carry_out(seat, &order, now);
        }
        for (service, reply) in orders.delete {
            // The caller may have gone away; the Service is removed all the same.
            let _ = reply.send(self.delete(&service));
        }
        for (service, wish, reply) in orders.rollouts {
            let answer = match wish {
                RolloutWish::Restart => self.restart_pods(&service),
                RolloutWish::Rollback => self.roll_back(&service),
            };
            let _ = reply.send(answer);
        }
        // The caller may have lost patience.
        for call in orders.calls {
            let _ = call.send(());
        }
        match orders.end {
            ProcessWish::Run => {}
            ProcessWish::Terminate => self.drain(now),
            ProcessWish::Kill => self.fleet.kill(now),
        }
        orders.hand_over
    }

    fn drain(&mut self, now: Timestamp) {
        if !self.fleet.is_ending() && !self.processes.is_empty() {
            let limit = vocabulary::format_duration(self.fleet.longest_end());
            let grace = vocabulary::format_duration(self.fleet.longest_grace());
            tracing::info!(
                pods = self.processes.len(),
                "pods end; a pod that has not ended within {limit} is killed, an app {grace} after its TERM"
            );
        }
        self.fleet.drain(now);
    }

    /// Does as an autoscaler orders, and tells how that went. Everything here is done at once, so no order is
    /// ever under way for long.
    fn carry_out(&mut self, seat: SeatId, order: &PlatformOrder, now: Timestamp) {
        let outcome = if self.subscribers.is_in_force(seat, order.fence) {
            self.execute(order, now)
        } else {
            OrderOutcome::NotOwner
        };
        self.subscribers.order_ended(seat, order.id, outcome);
    }

    fn execute(&mut self, order: &PlatformOrder, now: Timestamp) -> OrderOutcome {
        let is_known = match &order.what {
            Order::ScaleTo { revision, to, end_first, because, .. } => {
                let order = CountOrder { count: *to, end_first: end_first.clone(), why: why(*to, because) };
                self.fleet.scale_to(revision, order, now)
            }
            Order::Route { revision, routing, activators } => {
                let route = RouteInForce { routing: *routing, activators: activators.clone() };
                self.fleet.set_route(revision, route)
            }
            Order::ReleasePod { pod, .. } => self.fleet.release(pod, now),
            Order::NotePodState { pod, state, .. } => {
                if *state == PodState::Ready {
                    if let Some(process) = self.starts.process_of_slow_start(pod, now) {
                        self.measure(pod, process, now);
                    }
                    self.starts.note_ready(pod, free_kib(), now);
                    self.images.note_ready(pod);
                }
                self.fleet.note_state(pod, *state, now)
            }
            // Hosts are not allocated: each is its Service's for as long as that exists. `ebb pod` sees the
            // end of its queue-proxy itself. There is one machine, whose processes its kernel knows.
            Order::ReleaseEntrance { .. } | Order::NoteDrained { .. } | Order::NotePodReach { .. } => {
                TargetPresence::Yes
            }
            Order::Tell { about, reason, text } => {
                tracing::warn!(%about, %reason, "{text}");
                TargetPresence::Yes
            }
        };
        match is_known {
            TargetPresence::Yes => OrderOutcome::Done,
            TargetPresence::No => OrderOutcome::Gone,
        }
    }

    pub(super) fn take_news(&mut self, pod: &PodName, news: &PodNews) {
        match news {
            PodNews::Ended(_) => {
                self.processes.remove(pod);
                self.starts.note_ended(pod);
                self.pods_usage.note_ended(pod);
                self.images.forget(pod);
            }
            PodNews::Failed(failure) => {
                self.starts.note_ended(pod);
                tracing::warn!(%pod, reason = failure.in_short(), "a pod failed");
            }
            PodNews::Killed(reason) => tracing::warn!(%pod, reason, "a pod did not end in time"),
            PodNews::Spawned(pid) => {
                if let Ok(pid) = i32::try_from(*pid) {
                    self.starts.note_process(pod, pid);
                    self.pods_usage.note_process(pod, pid);
                }
            }
            PodNews::Message(PodMessage::BeganInHostNetwork) => self.images.note_host_network(pod),
            PodNews::Message(_) | PodNews::Waiting(_) => {}
        }
        self.fleet.note(pod, news, self.clock.now());
    }

    /// Carries out what the fleet decided.
    fn carry_out_actions(&mut self) {
        // While everything ends, pods do not wait for activators once no autoscaler is left to tell these.
        if self.fleet.is_ending() && !self.subscribers.any_connected() {
            self.fleet.release_all(self.clock.now());
        }
        let now = self.clock.now();
        loop {
            let actions = self.fleet.take_actions();
            if actions.is_empty() {
                break;
            }
            for action in actions {
                match action {
                    Action::Start { pod, siblings, spec } => self.starts.add(pod, siblings, spec, now),
                    Action::Terminate(pod) => self.end(&pod, ProcessWish::Terminate),
                    Action::Kill(pod) => {
                        if !self.fleet.is_killed() {
                            tracing::warn!(%pod, "a pod did not end within its time and is killed");
                        }
                        self.end(&pod, ProcessWish::Kill);
                    }
                }
            }
        }
        while let Some((pod, mut spec)) = self.next_start(now) {
            spec.descriptors = self.app_descriptors;
            spec.control_group = self.limits.root().map(Path::to_owned);
            spec.images = self.images.runtime_of(&spec.template);
            let why = self.fleet.start_cause(&pod).map(ToString::to_string).unwrap_or_default();
            tracing::info!(%pod, why, "a pod is started");
            let (handle, orders) = ProcessHandle::new();
            let (ebb, logs, news) = (self.ebb.clone(), self.logs.clone(), self.news_in.clone());
            let images = self.images.pulls();
            self.processes.insert(pod.clone(), handle);
            let process = process::run(ProcessStart { ebb, pod, spec, images, logs, news }, orders);
            tokio::spawn(vital("the watch over a pod", process));
        }
    }

    /// The pod to be started next, if one may be.
    fn next_start(&mut self, now: Timestamp) -> Option<(PodName, Box<PodSpec>)> {
        if self.starts.is_empty() {
            return None;
        }
        for (pod, process) in self.starts.to_measure(now) {
            self.measure(&pod, process, now);
        }
        let running = self.processes.len();
        let has_room = self.starts.depend_on_cores() && self.cores.have_room(now);
        let machine = Machine {
            has_room,
            is_left_to_others: !has_room
                && self.starts.may_be_paced()
                && self.pods_usage.leave_cores_to_others(running, now),
            free_memory: self.starts.depend_on_memory().then(free_kib).flatten(),
            running,
            asleep: self.fleet.asleep(),
            next_look: Cores::next_look(now),
        };
        let next = self.starts.next(machine, now);
        for (pods, reason) in
            [self.starts.short_of_memory(machine), self.starts.beyond_ceiling(machine)].into_iter().flatten()
        {
            self.fleet.note_waiting(&pods, &StartWait::Room(reason));
        }
        if next.is_none() {
            let pods = self.starts.short_of_cores(machine, now);
            self.fleet.note_waiting(&pods, &StartWait::Core);
        }
        next
    }

    /// Looks at what the processes of a pod that is being started have used of the cores.
    fn measure(&mut self, pod: &PodName, process: i32, now: Timestamp) {
        if let Some(usage) = StartUsage::of(process) {
            self.starts.note_usage(pod, usage, now);
        }
    }

    /// A pod is to end; one that was not started yet is gone at once.
    fn end(&mut self, pod: &PodName, wish: ProcessWish) {
        if self.starts.cancel(pod) {
            let how = "it was not needed any more before it was started".to_owned();
            self.fleet.note(pod, &PodNews::Ended(how), self.clock.now());
        } else if let Some(process) = self.processes.get(pod) {
            process.wish.send_if_modified(|present| {
                let grows = *present < wish;
                *present = wish.max(*present);
                grows
            });
        }
    }
}
