//! The programs of a cluster that need its API server: `ebb-autoscaler` ([`autoscaler_main`]) and
//! `ebb-injector` ([`injector_main`]).
//!
//! Nothing is decided here. The control loop is in [`autoscaler`], the objects of the cluster are in
//! [`platform_kubernetes`], and this crate reads the environment, binds ports, and ends both in order.

mod config;
mod injector;
mod listening;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use autoscaler::{
    ActivatorChoice, Autoscaler, AutoscalerConfig, AutoscalerMetrics, PageServer, RecordChoice, StatDesk,
    StatServer, metrics_router, only_port_forwards, page_kind, refuse_foreign,
};
use axum::Router;
use axum::response::IntoResponse;
use link::{Identity, TlsDialler};
use platform::Platform;
use platform_kubernetes::{KnativePlace, KubernetesConfig, KubernetesPlatform, LinkCertificates};
use runtime::{
    Clock, MetricsRegistry, PageLimits, PagePlaces, StopRequests, cluster_domain, run_program, vital,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::ProgramConfig;
pub use crate::injector::injector_main;
use crate::listening::listen;

/// How long giving up the Leases may take; another replica takes them 15 s later anyway.
const GIVE_UP_MAX: Duration = Duration::from_secs(2);

/// Runs `ebb-autoscaler`: decides until it is asked to stop, then leaves its Leases to the next replica.
pub fn autoscaler_main() -> ExitCode {
    run_program(ProgramConfig::read, |config| &config.log, run)
}

fn run(config: ProgramConfig) -> anyhow::Result<()> {
    let _ = runtime::raise_descriptor_limit().told();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(config))
}

async fn serve(config: ProgramConfig) -> anyhow::Result<()> {
    let mut stop_requests = StopRequests::listen()?;
    let (clock, registry) = (Clock::start(), MetricsRegistry::default());
    let ProgramConfig { namespace, buckets, knative, .. } = config;
    // The addresses that clients of a revision of Knative's get are another program's choice.
    let choice = match &knative {
        None => ActivatorChoice::AsManyAsNeeded,
        Some(_) => ActivatorChoice::AllOfWhichSomeShare,
    };
    let place = knative.as_ref().map(|knative| KnativePlace {
        address: knative.address.clone(),
        domain: cluster_domain(knative.domain.as_deref()),
    });
    let kubernetes =
        KubernetesConfig { name: config.name.clone(), namespace, buckets, knative: place, clock };
    let platform = KubernetesPlatform::start(kubernetes).await.context("connecting to Kubernetes")?;
    let stats = StatDesk::default();
    let autoscaler_config = AutoscalerConfig {
        name: config.name,
        clock,
        metrics: AutoscalerMetrics::register(&registry),
        dialler: dialler(platform.link_certificates())?,
        choice,
        record: RecordChoice::AsConfigured { version: env!("CARGO_PKG_VERSION") },
        stats: stats.clone(),
        history: None,
    };
    let autoscaler = Autoscaler::start(
        autoscaler_config,
        Arc::<KubernetesPlatform>::clone(&platform) as Arc<dyn Platform>,
    );
    let guarded =
        |router| refuse_foreign(router, config.trusted.clone(), |status, why| (status, why).into_response());
    let (api, metrics) = (guarded(api_pages(&autoscaler)), guarded(metrics_router(registry)));
    let places = PagePlaces::new(PageLimits::STANDARD, clock);
    for (address, router) in [(config.api, api), (config.metrics, metrics)] {
        let serving = PageServer::new(router).with_kinds(page_kind).serve(listen(address)?, &places)?;
        tokio::spawn(vital("a page of the autoscaler", serving));
    }
    let stop_of_stats = CancellationToken::new();
    if let Some(knative) = knative {
        let server = StatServer::new(stats, stop_of_stats.clone());
        let serving = server.serve(listen(knative.stats)?)?;
        tokio::spawn(vital("the port of stats of the autoscaler", serving));
    }
    stop_requests.next().await;
    // Activators connect again at once, to whichever autoscaler is there by then.
    stop_of_stats.cancel();
    tracing::info!("the autoscaler leaves, as it was asked to");
    autoscaler.stop().await;
    if tokio::time::timeout(GIVE_UP_MAX, platform.given_up()).await.is_err() {
        tracing::warn!("the Leases could not be given up in time; they run out within 15 s");
    }
    Ok(())
}

/// The API, with the page at which a person tells of a past: that raises counts, so it takes the right to
/// open a port-forward.
fn api_pages(autoscaler: &Autoscaler) -> Router {
    autoscaler.router().merge(only_port_forwards(Autoscaler::imports_of([autoscaler])))
}

/// A dialler of links that shows the autoscaler's present certificate, also after each renewal.
fn dialler(mut certificates: watch::Receiver<LinkCertificates>) -> anyhow::Result<Arc<TlsDialler>> {
    let identity = |shown: &LinkCertificates| {
        Identity::from_pem(shown.chain.as_bytes(), shown.key.0.as_bytes(), shown.roots.as_bytes())
    };
    let dialler = Arc::new(TlsDialler::new(&identity(&certificates.borrow_and_update())?)?);
    let shown = Arc::clone(&dialler);
    // Ends with the platform, and so with the process.
    tokio::spawn(vital("the certificates of the autoscaler's links", async move {
        while certificates.changed().await.is_ok() {
            let renewed =
                identity(&certificates.borrow_and_update()).and_then(|identity| shown.show(&identity));
            match renewed {
                Ok(()) => tracing::info!("the links' certificates were renewed"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(
                        error,
                        "the links' new certificates are invalid; the former ones stay in use"
                    );
                }
            }
        }
    }));
    Ok(dialler)
}
