//! The three parts of `ebb up`, and how each is started, rebuilt and ended.

mod activators;
mod starter;
pub(super) mod succession;

use std::sync::Arc;
use std::time::Duration;

use activator::{Limits, TlsListener, TrustedForwarders};
use anyhow::Context;
use autoscaler::{
    ActivatorChoice, Autoscaler, AutoscalerConfig, HistorySource, RecordChoice, RecordTarget, StatDesk,
};
use axum::Router;
use dataplane::MemoryBudget;
use futures_util::future::join_all;
use link::TcpDialler;
use platform::Platform;
use platform_local::{
    CertifiedHosts, LoadedManifest, LocalConfig, LocalPlatform, LogOptions, ManifestSource,
};
use recording::{NameKey, RecordedNames};
use runtime::{Clock, DescriptorLimit, MetricsRegistry};
use tokio::task::JoinSet;
use vocabulary::ReplicaName;

use super::api::CurrentRouter;
use super::histories::Histories;
use super::inheritance::Inheritance;
use super::shutdown;
use super::watchdog::WatchedParts;
use crate::cli::{RecordOptions, UpOptions};
use crate::replay::VERSION;
use activators::{AnnouncedActivators, RunningActivator};
use starter::ActivatorStarter;

pub(super) use starter::Entrances;

/// How `ebb up` starts an autoscaler: by [`Autoscaler::start`], unless a harness puts something around it.
pub type StartAutoscaler = fn(AutoscalerConfig, Arc<dyn Platform>) -> Autoscaler;

/// The running supervisor, activators and autoscalers, with what they share.
pub(super) struct Parts {
    clock: Clock,
    metrics: MetricsRegistry,
    autoscaler_metrics: autoscaler::AutoscalerMetrics,
    start_autoscaler: StartAutoscaler,
    /// The folder in which each autoscaler has one for its record.
    record: Option<RecordTarget>,
    histories: Histories,
    /// Why the `ebb up` before this one failed, if it did.
    former_failure: Option<String>,
    platform: Arc<LocalPlatform>,
    activators: Arc<AnnouncedActivators>,
    /// The activators that accept requests, behind one listener.
    accepting: Vec<RunningActivator>,
    /// Activators that accept nothing more and finish what they hold.
    retiring: JoinSet<()>,
    starter: ActivatorStarter,
    /// The autoscalers, which divide the revisions among them and take over from each other.
    autoscalers: Vec<Autoscaler>,
    api: CurrentRouter,
}

/// What the parts are made from.
pub(super) struct Foundations {
    pub(super) manifests: Manifests,
    pub(super) descriptors: DescriptorLimit,
    pub(super) start_autoscaler: StartAutoscaler,
    /// If another one was taken over.
    pub(super) inheritance: Option<Inheritance>,
    /// Why the `ebb up` before this one failed, if it did.
    pub(super) former_failure: Option<String>,
    /// Where what is measured outlives the autoscalers.
    pub(super) histories: Histories,
}

/// The manifests that `ebb up` serves.
pub(super) struct Manifests {
    /// The files and directories that hold them.
    pub(super) source: ManifestSource,
    /// Their content when they were read at the start.
    pub(super) loaded: LoadedManifest,
}

impl Parts {
    /// Starts the supervisor, the activators and the autoscalers.
    pub(super) async fn start(
        options: &UpOptions,
        foundations: Foundations,
        entrances: Entrances,
    ) -> anyhow::Result<Self> {
        let Foundations { manifests, descriptors, start_autoscaler, inheritance, former_failure, histories } =
            foundations;
        let (handover, predecessor, names_given) = inheritance.map_or((None, None, 0), |inherited| {
            (Some(inherited.platform), Some(inherited.predecessor), inherited.activators_started)
        });
        let (clock, metrics) = (Clock::start(), MetricsRegistry::default());
        let activator_metrics = activator::ActivatorMetrics::register(&metrics);
        let autoscaler_metrics = autoscaler::AutoscalerMetrics::register(&metrics);
        let connections = activator_metrics.connection_budget(descriptors.present);
        let config = LocalConfig {
            manifests: manifests.source,
            autoscalers: (0..options.operation.autoscalers).map(autoscaler_name).collect(),
            front_door: entrances.front_door,
            logs: log_options(options),
            max_pods: options.operation.max_pods.unwrap_or_else(platform_local::pods_that_fit),
            ebb: std::env::current_exe().context("finding this executable")?,
            clock,
            handover,
            app_descriptors: Some(descriptors.found),
            standing_problems: standing_problems(former_failure.as_ref(), &histories),
            certified: entrances.tls.as_ref().map(certified_hosts),
        };
        let platform = LocalPlatform::start(config, manifests.loaded).map_err(anyhow::Error::msg)?;
        platform.logs().register_metrics(&metrics);
        let mut starter = ActivatorStarter {
            entrances,
            clock,
            metrics: activator_metrics,
            connections,
            limits: limits(),
            reporting: platform.reporting(),
            log_format: options.operation.log_format.format(),
            forwarders: TrustedForwarders::Networks(options.operation.trust_forwarded.clone().into()),
            at_once: options.operation.activators,
            started: names_given,
        };
        let activators = AnnouncedActivators::none(&platform);
        let mut retiring = JoinSet::new();
        if let Some(predecessor) = predecessor {
            retiring.spawn(activators::announce_predecessor(predecessor, Arc::clone(&activators))?);
        }
        let accepting = starter.start_all(&activators)?;
        let mut parts = Self {
            clock,
            api: CurrentRouter::new(router(&[], &metrics)),
            metrics,
            autoscaler_metrics,
            start_autoscaler,
            record: record_target(&options.operation.recording),
            histories,
            former_failure,
            platform,
            activators,
            accepting,
            retiring,
            starter,
            autoscalers: Vec::new(),
        };
        parts.start_autoscalers(options.operation.autoscalers).await;
        for running in &parts.accepting {
            running.activator.synced().await;
        }
        Ok(parts)
    }

    /// The platform that runs the pods as processes.
    pub(super) fn platform(&self) -> Arc<LocalPlatform> {
        Arc::clone(&self.platform)
    }

    /// The API of whichever autoscaler is at work.
    pub(super) fn api(&self) -> CurrentRouter {
        self.api.clone()
    }

    /// The parts that the watchdog asks whether they still work.
    pub(super) fn watched_parts(&self) -> WatchedParts {
        let activators = Arc::clone(&self.activators);
        WatchedParts {
            api: self.api.clone(),
            platform: Arc::clone(&self.platform),
            heartbeats: Box::new(move || activators.heartbeats()),
        }
    }

    /// Replaces the autoscalers one by one, each by one that knows nothing but what the platform and the
    /// links tell it. Others decide meanwhile about what is its own, if there are any.
    pub(super) async fn restart_autoscalers(&mut self) {
        for index in 0..self.autoscalers.len() {
            let old = self.autoscalers.remove(index);
            old.stop().await;
            let history = self.read_histories().await;
            let new = self.new_autoscaler(index, history);
            self.autoscalers.insert(index, new);
            self.api.replace(router(&self.autoscalers, &self.metrics));
        }
    }

    /// Reads the past for autoscalers that begin, and says what is wrong with it.
    async fn read_histories(&mut self) -> HistorySource {
        let history = self.histories.source().await;
        let problems = standing_problems(self.former_failure.as_ref(), &self.histories);
        self.platform.set_standing_problems(problems);
        history
    }

    /// Starts this many, while there is none.
    async fn start_autoscalers(&mut self, number: usize) {
        let history = self.read_histories().await;
        for index in 0..number {
            let new = self.new_autoscaler(index, history.clone());
            self.autoscalers.push(new);
        }
        self.api.replace(router(&self.autoscalers, &self.metrics));
    }

    fn new_autoscaler(&self, index: usize, history: HistorySource) -> Autoscaler {
        let config = AutoscalerConfig {
            history: Some(history),
            record: record_of(index, self.record.as_ref()),
            ..autoscaler_config(index, self.clock, &self.autoscaler_metrics)
        };
        (self.start_autoscaler)(config, platform_of(&self.platform))
    }

    /// Replaces the activators one by one: starts a new one, and waits until it knows what the old one knows.
    /// From then on the old one accepts nothing more and finishes the requests that it holds, which is not
    /// waited for.
    pub(super) async fn restart_activators(&mut self) -> anyhow::Result<()> {
        for running in &mut self.accepting {
            let new = self.starter.start()?;
            // Announced before it is waited for: autoscalers link to the activators that the platform names,
            // and to no others.
            self.activators.add(&new);
            new.activator.synced().await;
            let old = std::mem::replace(running, new);
            old.activator.stop_accepting();
            self.activators.retire(&old.facts.name);
            let at_most = self.platform.longest_drain();
            self.retiring.spawn(old.retire(Arc::clone(&self.activators), at_most));
        }
        // What has ended by now needs no more room.
        while self.retiring.try_join_next().is_some() {}
        Ok(())
    }

    /// Ends every pod at once; to be called while [`Parts::drain`] takes too long.
    pub(super) fn killer(&self) -> impl FnOnce() + use<> {
        let platform = Arc::clone(&self.platform);
        move || platform.kill()
    }

    /// Ends everything in order: requests first, while the parts that they need still work; then the pods.
    pub(super) async fn drain(self) {
        let (autoscalers, platform) = self.answered().await;
        // Together, so that none takes over what another leaves.
        join_all(autoscalers.into_iter().map(Autoscaler::stop)).await;
        platform.drain().await;
    }

    /// Accepts nothing more; returns what is left once everything that was held is answered.
    async fn answered(mut self) -> (Vec<Autoscaler>, Arc<LocalPlatform>) {
        // A client that connects from now on is refused at once, instead of waiting in a queue that no
        // activator accepts from.
        drop(self.starter);
        let at_most = self.platform.longest_drain();
        for running in self.accepting {
            // A panic in its threads ends the process; one here only ends the wait for them.
            self.retiring.spawn(async move { running.activator.drained(at_most).await });
        }
        let activators = Arc::clone(&self.activators);
        let answered = async { while self.retiring.join_next().await.is_some() {} };
        // Cancel-safe: the set keeps those that have not ended, and the report only reads.
        tokio::select! {
            () = answered => {}
            never = shutdown::report(|| activators.held(), at_most) => match never {},
        }
        (self.autoscalers, self.platform)
    }
}

/// Pods must not wait for a terminal, which may be stopped. A file or a pipe is collected, so it gets all
/// lines.
fn log_options(options: &UpOptions) -> LogOptions {
    let of_terminal = crate::output::is_terminal().then_some(Duration::ZERO);
    LogOptions {
        format: options.operation.log_format.format(),
        patience: options.operation.log_patience.or(of_terminal),
    }
}

/// Those of each activator; what connections hold unread is bounded for all of the process.
fn limits() -> Limits {
    Limits { unread_memory: MemoryBudget::of_process(runtime::memory_limit()), ..Limits::default() }
}

/// What is wrong from the start: how the former `ebb up` failed, and which histories cannot be read.
fn standing_problems(former_failure: Option<&String>, histories: &Histories) -> Vec<String> {
    former_failure.into_iter().cloned().chain(histories.problems()).collect()
}

fn autoscaler_name(index: usize) -> ReplicaName {
    ReplicaName::new(&format!("autoscaler-{}", index + 1))
}

/// All activators accept from one listening socket, so each must know every revision.
fn autoscaler_config(
    index: usize,
    clock: Clock,
    metrics: &autoscaler::AutoscalerMetrics,
) -> AutoscalerConfig {
    AutoscalerConfig {
        name: autoscaler_name(index),
        clock,
        metrics: metrics.clone(),
        dialler: Arc::new(TcpDialler),
        choice: ActivatorChoice::All,
        record: RecordChoice::Nowhere,
        stats: StatDesk::default(),
        history: None,
    }
}

/// Where the run is recorded, if the options ask for that.
fn record_target(options: &RecordOptions) -> Option<RecordTarget> {
    let folder = options.record.clone()?;
    // One key for all autoscalers of this program, also for one that is rebuilt: names stay the same hashes.
    let names =
        if options.anonymous { RecordedNames::Hidden(NameKey::default()) } else { RecordedNames::Plain };
    Some(RecordTarget { folder, bytes_max: options.record_size, version: VERSION, names })
}

/// The record of one autoscaler: one that is rebuilt goes on in the folder of its predecessor.
fn record_of(index: usize, target: Option<&RecordTarget>) -> RecordChoice {
    let Some(target) = target else { return RecordChoice::Nowhere };
    let folder = target.folder.join(autoscaler_name(index).as_str());
    RecordChoice::At(RecordTarget { folder, ..target.clone() })
}

fn platform_of(platform: &Arc<LocalPlatform>) -> Arc<dyn Platform> {
    Arc::<LocalPlatform>::clone(platform)
}

fn router(autoscalers: &[Autoscaler], metrics: &MetricsRegistry) -> Router {
    Autoscaler::router_of(autoscalers)
        .merge(Autoscaler::imports_of(autoscalers))
        .merge(autoscaler::metrics_router(metrics.clone()))
}

/// The hosts that the certificates of the front door cover, whichever these are at the moment.
fn certified_hosts(listener: &TlsListener) -> CertifiedHosts {
    let certificates = Arc::clone(&listener.certificates);
    CertifiedHosts::new(move |host| certificates.cover(host))
}
