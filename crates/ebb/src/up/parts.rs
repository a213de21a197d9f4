//! The three parts of `ebb up`, and how each is started, rebuilt and ended.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use activator::{Activator, ActivatorConfig, Limits, Listeners};
use anyhow::Context;
use autoscaler::{Autoscaler, AutoscalerConfig};
use axum::Router;
use platform::{ActivatorFacts, Platform};
use platform_local::{Loaded, LocalConfig, LocalPlatform};
use runtime::{Clock, MetricsRegistry};
use vocabulary::ReplicaName;

use super::DRAIN_PATIENCE;
use super::api::CurrentRouter;
use crate::cli::UpOptions;

/// Everything that runs.
pub(super) struct Parts {
    clock: Clock,
    metrics: MetricsRegistry,
    activator_metrics: activator::Metrics,
    link_relay: Option<SocketAddr>,
    requests: TcpListener,
    platform: Arc<LocalPlatform>,
    activator: RunningActivator,
    activators_started: u64,
    autoscaler: Autoscaler,
    epoch: u64,
    api: CurrentRouter,
}

struct RunningActivator {
    activator: Activator,
    facts: ActivatorFacts,
}

impl Parts {
    /// Starts the supervisor, an activator and an autoscaler.
    pub(super) async fn start(options: &UpOptions, loaded: Loaded, requests: TcpListener) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let metrics = MetricsRegistry::default();
        let activator_metrics = activator::Metrics::register(&metrics);
        let ebb = std::env::current_exe().context("finding this executable")?;
        let config = LocalConfig { files: options.files.clone(), domain: options.domain.clone(), ebb, clock };
        let platform = LocalPlatform::start(config, loaded);
        let activator = start_activator(1, &requests, clock, &activator_metrics)?;
        platform.set_activators(vec![activator.facts.clone()]);
        let epoch = 1;
        let autoscaler =
            start_autoscaler(&platform, AutoscalerConfig { epoch, clock, metrics: metrics.clone(), link_relay: options.link_relay });
        activator.activator.synced().await;
        let api = CurrentRouter::new(router(&autoscaler, &metrics));
        Ok(Self {
            clock,
            metrics,
            activator_metrics,
            link_relay: options.link_relay,
            requests,
            platform,
            activator,
            activators_started: 1,
            autoscaler,
            epoch,
            api,
        })
    }

    /// The API of whichever autoscaler is at work.
    pub(super) fn api(&self) -> CurrentRouter {
        self.api.clone()
    }

    /// Ends the autoscaler and starts one that knows nothing but what the platform and the links tell it.
    pub(super) async fn restart_autoscaler(&mut self) -> anyhow::Result<()> {
        self.epoch += 1;
        let config = AutoscalerConfig {
            epoch: self.epoch,
            clock: self.clock,
            metrics: self.metrics.clone(),
            link_relay: self.link_relay,
        };
        self.autoscaler.stop().await;
        self.autoscaler = start_autoscaler(&self.platform, config);
        self.api.replace(router(&self.autoscaler, &self.metrics));
        Ok(())
    }

    /// Starts an activator, waits until it knows what the old one knows, then lets the old one finish what it holds.
    pub(super) async fn restart_activator(&mut self) -> anyhow::Result<()> {
        self.activators_started += 1;
        let new = start_activator(self.activators_started, &self.requests, self.clock, &self.activator_metrics)?;
        self.platform.set_activators(vec![self.activator.facts.clone(), new.facts.clone()]);
        new.activator.synced().await;
        let old = std::mem::replace(&mut self.activator, new);
        old.activator.drained(DRAIN_PATIENCE).await;
        self.platform.set_activators(vec![self.activator.facts.clone()]);
        Ok(())
    }

    /// Ends everything in order: requests first, while the parts that they need still work; then the pods.
    pub(super) async fn drain(&mut self) {
        self.activator.activator.stop_accepting();
        self.activator.activator.idle().await;
        self.autoscaler.stop().await;
        self.platform.drain().await;
    }

    /// Ends everything at once.
    pub(super) fn kill(&self) {
        self.platform.kill();
    }
}

fn start_activator(
    number: u64,
    requests: &TcpListener,
    clock: Clock,
    metrics: &activator::Metrics,
) -> anyhow::Result<RunningActivator> {
    let link = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening for the activator's link")?;
    let facts = ActivatorFacts { name: ReplicaName::new(&format!("activator-{number}")), link: link.local_addr()? };
    let config = ActivatorConfig {
        name: facts.name.clone(),
        workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8),
        limits: Limits::default(),
        clock,
        metrics: metrics.clone(),
    };
    let listeners = Listeners { requests: requests.try_clone().context("lending the listening socket")?, link };
    Ok(RunningActivator { activator: Activator::start(config, listeners).context("starting the activator")?, facts })
}

fn start_autoscaler(platform: &Arc<LocalPlatform>, config: AutoscalerConfig) -> Autoscaler {
    let platform: Arc<dyn Platform> = Arc::<LocalPlatform>::clone(platform);
    Autoscaler::start(config, platform)
}

fn router(autoscaler: &Autoscaler, metrics: &MetricsRegistry) -> Router {
    autoscaler.router().merge(runtime::metrics_router(metrics.clone()))
}
