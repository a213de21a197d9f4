//! The three parts of `ebb up`, and how each is started, rebuilt and ended.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use activator::{Activator, ActivatorConfig, Limits, Listeners};
use anyhow::Context;
use autoscaler::{Autoscaler, AutoscalerConfig, DialRoute};
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
    autoscaler_metrics: autoscaler::Metrics,
    dial: DialRoute,
    requests: TcpListener,
    platform: Arc<LocalPlatform>,
    activator: RunningActivator,
    activators_started: u64,
    /// `None` only while it is rebuilt.
    autoscaler: Option<Autoscaler>,
    epoch: u64,
    api: CurrentRouter,
}

struct RunningActivator {
    activator: Activator,
    facts: ActivatorFacts,
}

impl Parts {
    /// Starts the supervisor, an activator and an autoscaler.
    pub(super) async fn start(
        options: &UpOptions,
        loaded: Loaded,
        requests: TcpListener,
    ) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let metrics = MetricsRegistry::default();
        let activator_metrics = activator::Metrics::register(&metrics);
        let autoscaler_metrics = autoscaler::Metrics::register(&metrics);
        let dial = options.link_relay.map_or(DialRoute::Direct, DialRoute::Relay);
        let ebb = std::env::current_exe().context("finding this executable")?;
        let config = LocalConfig { files: options.files.clone(), domain: options.domain.clone(), ebb, clock };
        let platform = LocalPlatform::start(config, loaded);
        let activator = start_activator(1, &requests, clock, &activator_metrics)?;
        platform.set_activators(vec![activator.facts.clone()]);
        let epoch = 1;
        let config = AutoscalerConfig { epoch, clock, metrics: autoscaler_metrics.clone(), dial };
        let autoscaler = start_autoscaler(&platform, config);
        activator.activator.synced().await;
        let api = CurrentRouter::new(router(&autoscaler, &metrics));
        Ok(Self {
            clock,
            metrics,
            activator_metrics,
            autoscaler_metrics,
            dial,
            requests,
            platform,
            activator,
            activators_started: 1,
            autoscaler: Some(autoscaler),
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
            metrics: self.autoscaler_metrics.clone(),
            dial: self.dial,
        };
        if let Some(old) = self.autoscaler.take() {
            old.stop().await;
        }
        let new = start_autoscaler(&self.platform, config);
        self.api.replace(router(&new, &self.metrics));
        self.autoscaler = Some(new);
        Ok(())
    }

    /// Starts an activator, waits until it knows what the old one knows, then lets the old one finish what it holds.
    pub(super) async fn restart_activator(&mut self) -> anyhow::Result<()> {
        self.activators_started += 1;
        let new =
            start_activator(self.activators_started, &self.requests, self.clock, &self.activator_metrics)?;
        self.platform.set_activators(vec![self.activator.facts.clone(), new.facts.clone()]);
        new.activator.synced().await;
        let old = std::mem::replace(&mut self.activator, new);
        old.activator.drained(DRAIN_PATIENCE).await;
        self.platform.set_activators(vec![self.activator.facts.clone()]);
        Ok(())
    }

    /// Ends every pod at once; to be called while [`Parts::drain`] takes too long.
    pub(super) fn killer(&self) -> impl FnOnce() + use<> {
        let platform = Arc::clone(&self.platform);
        move || platform.kill()
    }

    /// Ends everything in order: requests first, while the parts that they need still work; then the pods.
    pub(super) async fn drain(self) {
        // Whoever connects from now on is refused at once, instead of waiting in a queue that nobody serves.
        drop(self.requests);
        self.activator.activator.drained(DRAIN_PATIENCE).await;
        if let Some(autoscaler) = self.autoscaler {
            autoscaler.stop().await;
        }
        self.platform.drain().await;
    }
}

fn start_activator(
    number: u64,
    requests: &TcpListener,
    clock: Clock,
    metrics: &activator::Metrics,
) -> anyhow::Result<RunningActivator> {
    let link =
        runtime::listen((Ipv4Addr::LOCALHOST, 0).into()).context("listening for the activator's link")?;
    let facts =
        ActivatorFacts { name: ReplicaName::new(&format!("activator-{number}")), link: link.local_addr()? };
    let config = ActivatorConfig {
        name: facts.name.clone(),
        workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8),
        limits: Limits::default(),
        clock,
        metrics: metrics.clone(),
    };
    let listeners =
        Listeners { requests: requests.try_clone().context("lending the listening socket")?, link };
    Ok(RunningActivator {
        activator: Activator::start(config, listeners).context("starting the activator")?,
        facts,
    })
}

fn start_autoscaler(platform: &Arc<LocalPlatform>, config: AutoscalerConfig) -> Autoscaler {
    let platform: Arc<dyn Platform> = Arc::<LocalPlatform>::clone(platform);
    Autoscaler::start(config, platform)
}

fn router(autoscaler: &Autoscaler, metrics: &MetricsRegistry) -> Router {
    autoscaler.router().merge(runtime::metrics_router(metrics.clone()))
}
