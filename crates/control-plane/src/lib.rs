//! The programs of a cluster that decide, wired to Kubernetes: so far `ebb-autoscaler`.
//!
//! Nothing is decided here. The control loop is the autoscaler's ([`autoscaler`]), what it stands on is the platform's ([`platform_kubernetes`]), and this
//! crate reads the environment, binds ports, and ends both in order.

mod config;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use autoscaler::{ActivatorChoice, Autoscaler, AutoscalerConfig, Metrics, metrics_router, refuse_foreign};
use axum::Router;
use axum::response::IntoResponse;
use link::TcpDialler;
use platform::Platform;
use platform_kubernetes::{KubernetesConfig, KubernetesPlatform};
use runtime::{Clock, Colours, LogFormat, MetricsRegistry, StopRequests, run_program, start_logs};
use tokio::net::TcpListener;

use crate::config::ProgramConfig;

/// How long giving up the lease may take; whoever waits for it takes it 15 s later anyway.
const GIVE_UP_MAX: Duration = Duration::from_secs(2);

/// What `ebb-autoscaler` does: decide until asked to stop, then leave its place to the next.
pub fn autoscaler_main() -> ExitCode {
    run_program(ProgramConfig::read, run)
}

fn run(config: ProgramConfig) -> anyhow::Result<()> {
    start_logs(LogFormat::Text, &config.log, Colours::Off)?;
    runtime::raise_descriptor_limit();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(config))
}

async fn serve(config: ProgramConfig) -> anyhow::Result<()> {
    let mut stop_requests = StopRequests::listen()?;
    let (clock, registry) = (Clock::start(), MetricsRegistry::default());
    let kubernetes = KubernetesConfig { name: config.name.clone(), namespace: config.namespace, clock };
    let platform = KubernetesPlatform::start(kubernetes).await.context("connecting to Kubernetes")?;
    let autoscaler_config = AutoscalerConfig {
        name: config.name,
        clock,
        metrics: Metrics::register(&registry),
        dialler: Arc::new(TcpDialler),
        choice: ActivatorChoice::AsManyAsNeeded,
    };
    let autoscaler = Autoscaler::start(
        autoscaler_config,
        Arc::<KubernetesPlatform>::clone(&platform) as Arc<dyn Platform>,
    );
    let api =
        refuse_foreign(autoscaler.router(), config.trusted, |status, why| (status, why).into_response());
    for (address, router) in [(config.api, api), (config.metrics, metrics_router(registry))] {
        let listener = TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
        tokio::spawn(serve_pages(listener, router));
    }
    stop_requests.next().await;
    tracing::info!("leaving");
    autoscaler.stop().await;
    if tokio::time::timeout(GIVE_UP_MAX, platform.given_up()).await.is_err() {
        tracing::warn!("the lease could not be given up in time; it runs out by itself");
    }
    Ok(())
}

/// Ends with the process.
async fn serve_pages(listener: TcpListener, router: Router) {
    // Serving ends only with an error that no retry mends.
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "a page could not be served");
    }
}
