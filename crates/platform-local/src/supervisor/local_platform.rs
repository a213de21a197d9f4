//! Pods as processes, as the other parts of `ebb up` see them: how they are started, asked and ended.
//!
//! Nothing is decided here. A caller puts its order into the supervisor's [`OrderInbox`] and at most waits
//! for the answer, so no caller holds up another, nor the pods.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use orchestration::ActivatorFacts;
use platform::{Platform, Subscription};
use runtime::{Clock, RequestReporting, vital};
use tokio::sync::{mpsc, oneshot, watch};
use vocabulary::{ReplicaName, RevisionName};

use super::certified_hosts::CertifiedHosts;
use super::cores::Cores;
use super::event_loop::Supervisor;
use super::fleet::Fleet;
use super::handover::{Handover, HandoverDecision};
use super::identities::new_hop_key;
use super::image_keeper::ImageKeeper;
use super::leases::{Leases, SeatId};
use super::limits::LimitKeeper;
use super::logs::{LogOptions, LogSink, LogStore};
use super::order_inbox::{
    Deletion, LocalSeat, OrderInbox, RolloutAnswer, RolloutWish, SeatArrival, SeatChange,
};
use super::outbox::PlatformStatus;
use super::pods_usage::PodsUsage;
use super::process::ProcessWish;
use super::starts::Starts;
use super::subscribers::Subscribers;
use crate::executable::is_this_executable;
use crate::front_door::FrontDoor;
use crate::manifest::{LoadedManifest, ManifestSource};
use crate::watch::WatchedFiles;

/// Events that may wait for the subscriber; more are kept as "changed", not as events.
const EVENTS_WAITING: usize = 256;
/// News of pods that may wait for the supervisor; a pod's process waits when it is full.
const NEWS_WAITING: usize = 256;

/// What [`LocalPlatform::start`] needs to know.
#[derive(Debug)]
pub struct LocalConfig {
    /// The manifests, watched for changes.
    pub manifests: ManifestSource,
    /// The autoscalers among which revisions are divided; one, or several that take over from each other.
    pub autoscalers: Vec<ReplicaName>,
    /// The addresses at which requests are taken, for URLs of Services.
    pub front_door: FrontDoor,
    /// The `ebb` executable, for `ebb pod`, which runs `ebb queue-proxy`.
    pub ebb: PathBuf,
    /// What becomes of the lines that pods print.
    pub logs: LogOptions,
    /// How many pods may have processes at once.
    pub max_pods: usize,
    /// The clock of this process, which all parts of it share.
    pub clock: Clock,
    /// What another process handed over, to go on with.
    pub handover: Option<Handover>,
    /// How many files apps may have open (the soft limit): what `ebb` was started with, whatever it has now.
    /// `None`: as many as `ebb`.
    pub app_descriptors: Option<u64>,
    /// Problems that no file mends, such as why the process before this one failed; told until others are
    /// ([`LocalPlatform::set_standing_problems`]).
    pub standing_problems: Vec<String>,
    /// Which hosts a certificate covers; `None` where requests are taken without TLS alone.
    pub certified: Option<CertifiedHosts>,
}

/// Pods as processes of this machine.
#[derive(Debug)]
pub struct LocalPlatform {
    inbox: Arc<OrderInbox>,
    logs: Arc<LogStore>,
    reporting: watch::Receiver<Arc<RequestReporting>>,
    /// How many autoscalers share this platform.
    autoscalers: usize,
    seats_taken: AtomicU64,
}

impl LocalPlatform {
    /// Starts to supervise what was loaded, on the current tokio runtime. Pods of other runs are not looked
    /// for: none outlives its `ebb`, but those that were handed over. Fails if these are not understood.
    pub fn start(config: LocalConfig, loaded: LoadedManifest) -> Result<Arc<Self>, String> {
        let inbox = Arc::<OrderInbox>::default();
        let loaded = Arc::new(loaded);
        let images = ImageKeeper::start(config.manifests.images, &loaded);
        let (last_good, last_good_to_read) = watch::channel(Arc::clone(&loaded));
        let (readings_in, readings) = mpsc::channel(1);
        let watched = WatchedFiles {
            source: Arc::new(config.manifests),
            clock: config.clock,
            reload: Arc::clone(&inbox.reload),
            last_good: last_good_to_read,
            readings: readings_in,
        };
        tokio::spawn(vital("the watch over the manifests", watched.run()));
        let (news_in, news) = mpsc::channel(NEWS_WAITING);
        let logs = LogSink::start(std::io::stdout(), config.logs);
        let store = logs.store();
        let (reporting, told) = watch::channel(loaded.reporting());
        let control_group = config.handover.as_ref().and_then(Handover::control_group);
        let mut supervisor = Supervisor {
            inbox: Arc::clone(&inbox),
            clock: config.clock,
            app_descriptors: config.app_descriptors,
            ebb: Some(config.ebb).filter(|ebb| !is_this_executable(ebb)),
            fleet: Fleet::new(config.front_door, new_hop_key),
            subscribers: Subscribers::new(&config.autoscalers, config.clock.now()),
            status: PlatformStatus::of(loaded.cluster.clone(), config.standing_problems),
            last_good,
            reporting,
            troubles: Vec::new(),
            warnings: loaded.warnings.iter().chain(&loaded.absences).cloned().collect(),
            deleted: BTreeMap::new(),
            rolled_back: BTreeMap::new(),
            loaded,
            logs,
            limits: LimitKeeper::start(control_group.as_deref()),
            images,
            certified: config.certified,
            starts: Starts::of_at_most(config.max_pods),
            cores: Cores::default(),
            pods_usage: PodsUsage::of_this_machine(),
            processes: BTreeMap::new(),
            news_in,
        };
        if let Some(handover) = config.handover {
            supervisor.take_over(handover)?;
        }
        tokio::spawn(vital("the supervisor of the pods", supervisor.run(news, readings)));
        let autoscalers = config.autoscalers.len();
        let seats_taken = AtomicU64::default();
        Ok(Arc::new(Self { inbox, logs: store, reporting: told, autoscalers, seats_taken }))
    }

    /// Says which activators exist, for the autoscaler to find them.
    pub fn set_activators(&self, activators: Vec<ActivatorFacts>) {
        self.inbox.update(|orders| orders.activators = Some(activators));
    }

    /// Says what is wrong with this process that no file mends, in the place of what was said before.
    pub fn set_standing_problems(&self, problems: Vec<String>) {
        self.inbox.update(|orders| orders.standing_problems = Some(problems));
    }

    /// The last lines that pods printed.
    pub fn logs(&self) -> Arc<LogStore> {
        Arc::clone(&self.logs)
    }

    /// What is to be told about each request, by what the files say.
    pub fn reporting(&self) -> watch::Receiver<Arc<RequestReporting>> {
        self.reporting.clone()
    }

    /// Has the files read, even if nothing about them seems to have changed.
    pub fn reload(&self) {
        self.inbox.reload.notify_one();
    }

    /// Returns once the supervisor has looked at its orders, or has ended; never while it hangs.
    pub async fn responds(&self) {
        let (reply, answer) = oneshot::channel();
        self.inbox.update(|orders| orders.calls.push(reply));
        let _ = answer.await;
    }

    /// Removes a Service as if it stood in no file any more.
    pub async fn delete(&self, service: RevisionName) -> Deletion {
        let (reply, outcome) = oneshot::channel();
        self.inbox.update(|orders| orders.delete.push((service, reply)));
        outcome.await.unwrap_or(Deletion::Unknown)
    }

    /// Lets new pods of the same template take over from those of a Service, as after an edit.
    pub async fn restart_pods(&self, service: RevisionName) -> RolloutAnswer {
        self.roll_out(service, RolloutWish::Restart).await
    }

    /// Lets pods of the template before the last edit take over, until the Service's file is written again.
    pub async fn roll_back(&self, service: RevisionName) -> RolloutAnswer {
        self.roll_out(service, RolloutWish::Rollback).await
    }

    async fn roll_out(&self, service: RevisionName, wish: RolloutWish) -> RolloutAnswer {
        let (reply, outcome) = oneshot::channel();
        self.inbox.update(|orders| orders.rollouts.push((service, wish, reply)));
        outcome.await.unwrap_or(RolloutAnswer::Unknown)
    }

    /// The longest that a pod's requests may take once everything is to end.
    pub fn longest_drain(&self) -> Duration {
        *self.inbox.longest_drain.lock()
    }

    /// Lets everything about pods stand still, to hand it over. Fails if that cannot be now; then everything
    /// goes on.
    pub async fn hand_over(&self) -> Result<(Handover, HandoverDecision), String> {
        let (reply, answer) = oneshot::channel();
        self.inbox.update(|orders| orders.hand_over = Some(reply));
        answer.await.unwrap_or_else(|_| Err("everything has ended".to_owned()))
    }

    /// Ends every pod in an orderly way; returns when the last has ended. Scale orders and edits of the files
    /// are no longer taken.
    pub async fn drain(&self) {
        self.inbox.update(|orders| orders.end = orders.end.max(ProcessWish::Terminate));
        self.inbox.ended.cancelled().await;
    }

    /// Ends every pod at once; [`LocalPlatform::drain`] returns soon after.
    pub fn kill(&self) {
        self.inbox.update(|orders| orders.end = ProcessWish::Kill);
    }
}

impl Platform for LocalPlatform {
    fn subscribe(&self, owner: &ReplicaName) -> Subscription {
        let (facts_in, facts) = mpsc::channel(EVENTS_WAITING);
        let seat = SeatId(self.seats_taken.fetch_add(1, Ordering::Relaxed) + 1);
        let arrival = SeatArrival { seat, name: owner.clone(), facts: facts_in };
        self.inbox.update(|orders| orders.seats.push(SeatChange::Taken(arrival)));
        Subscription {
            facts,
            seat: Box::new(LocalSeat { id: seat, inbox: Arc::clone(&self.inbox) }),
            renew_every: Leases::renew_every(self.autoscalers),
        }
    }
}
