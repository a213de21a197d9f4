//! `ebb-injector`: the webhook that gives pods their queue-proxy, and checks what people write.
//!
//! Its certificate is the keeper's of all of them (an autoscaler), as files; the API server knows it by the
//! authority's, which this program writes into its own webhook configurations, and again whenever somebody
//! else writes something there.

mod callers;
mod config;
mod doors;
mod metrics;
mod registration;
mod settings;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use autoscaler::{metrics_router, refuse_foreign};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use injector::{InjectorSettings, ReviewQuestion, answer};
use kube::Client;
use runtime::{Clock, MetricsRegistry, StopRequests, run_program, vital};
use scaling::ClusterConfig;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use callers::{CallerLimits, CallerPlaces};
use config::InjectorConfig;
use doors::{WebhookCertificates, WebhookListener};
use metrics::{InjectorMetrics, ReviewEnding};

use crate::{listen, serve_pages};

/// An object may have 1.5 MiB in etcd, and a review holds two of them.
const REVIEW_BYTES_MAX: usize = 4 << 20;
/// Reviews that are held at once, whole, by however many callers: half of the memory that the manifests
/// allow. One more waits.
const REVIEWS_MAX: usize = 32;
/// From a question's head to its answer: the API server gives up after as long.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(5);

/// What `ebb-injector` does: answer until asked to stop.
pub fn injector_main() -> ExitCode {
    run_program(InjectorConfig::read, |config| &config.log, run)
}

fn run(config: InjectorConfig) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(serve(config))
}

async fn serve(config: InjectorConfig) -> anyhow::Result<()> {
    let mut stop_requests = StopRequests::listen()?;
    let certificates = WebhookCertificates::keep(config.certificates)?;
    let client = Client::try_default().await.context("connecting to Kubernetes")?;
    let (is_known_in, is_known) = watch::channel(false);
    let registration = registration::keep(client, certificates.roots(), is_known_in);
    tokio::spawn(vital("the webhooks' registration", registration));
    let registry = MetricsRegistry::default();
    let metrics = InjectorMetrics::register(&registry);
    let places = CallerPlaces::new(CallerLimits::WEBHOOK, Clock::start(), metrics.clone());
    let state = Arc::new(WebhookState {
        image: config.image,
        roots: certificates.roots(),
        cluster: settings::follow_cluster(config.settings),
        observability: settings::follow_observability(config.observability),
        is_known,
        metrics,
        turns: Semaphore::new(REVIEWS_MAX),
        patience: REVIEW_TIME_MAX,
    });
    let pages = listen(config.metrics)?;
    let beside = metrics_router(registry).merge(probe_router(&state));
    let beside = refuse_foreign(beside, config.trusted, |status, why| (status, why).into_response());
    tokio::spawn(vital("a page of the injector", serve_pages(pages, beside)));
    let listener = WebhookListener::new(listen(config.address)?, certificates, places)?;
    let stopped = async move {
        stop_requests.next().await;
        // The API server may be told a moment later that nobody is here any more; until then it is answered.
        tokio::time::sleep(doors::LINGER).await;
    };
    axum::serve(listener, router(&state)).with_graceful_shutdown(stopped).await.context("serving")
}

fn router(state: &Arc<WebhookState>) -> Router {
    Router::new()
        .route("/inject", post(inject_pod))
        .route("/validate", post(validate))
        .route_layer(from_fn_with_state(Arc::clone(state), in_turn))
        .layer(DefaultBodyLimit::max(REVIEW_BYTES_MAX))
        .with_state(Arc::clone(state))
        .merge(probe_router(state))
}

/// What kubelet asks, at the webhook's own port and beside it, where it needs no TLS for that.
fn probe_router(state: &Arc<WebhookState>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .with_state(Arc::clone(state))
}

/// What answers stand on.
struct WebhookState {
    image: String,
    roots: watch::Receiver<String>,
    cluster: watch::Receiver<ClusterConfig>,
    observability: watch::Receiver<Option<String>>,
    /// Whether the API server knows us.
    is_known: watch::Receiver<bool>,
    metrics: InjectorMetrics,
    turns: Semaphore,
    /// With a review.
    patience: Duration,
}

/// Reads and answers a question once there is room for it. Probes have room always.
async fn in_turn(state: State<Arc<WebhookState>>, request: Request, next: Next) -> Response {
    let question =
        if request.uri().path() == "/inject" { ReviewQuestion::Inject } else { ReviewQuestion::Validate };
    let answering = async {
        let _turn = state.turns.acquire().await;
        next.run(request).await
    };
    // The wait for a turn is in it: an API server that has given up makes its own answer, and work for it is
    // work for nobody.
    if let Ok(response) = tokio::time::timeout(state.patience, answering).await {
        return response;
    }
    state.metrics.ended(question, ReviewEnding::Late);
    let mut response = Response::new("it took too long\n".into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Before the API server knows us, each of its questions would end in an error.
async fn ready(state: State<Arc<WebhookState>>) -> (StatusCode, &'static str) {
    if *state.is_known.borrow() {
        return (StatusCode::OK, "ready\n");
    }
    (StatusCode::SERVICE_UNAVAILABLE, "its authority is not in its webhook configurations yet\n")
}

async fn inject_pod(state: State<Arc<WebhookState>>, review: Json<Value>) -> Result<Json<Value>, StatusCode> {
    reviewed(&state, &review, ReviewQuestion::Inject)
}

async fn validate(state: State<Arc<WebhookState>>, review: Json<Value>) -> Result<Json<Value>, StatusCode> {
    reviewed(&state, &review, ReviewQuestion::Validate)
}

fn reviewed(
    state: &WebhookState,
    review: &Value,
    question: ReviewQuestion,
) -> Result<Json<Value>, StatusCode> {
    let settings = InjectorSettings {
        image: state.image.clone(),
        link_ca: state.roots.borrow().clone(),
        cluster: state.cluster.borrow().clone(),
        observability: state.observability.borrow().clone(),
    };
    let answered = answer(review, question, &settings, settings::OTHER_CONFIG_MAPS);
    let ending = answered.as_ref().map(|answered| ReviewEnding::Answered(answered.verdict));
    state.metrics.ended(question, ending.unwrap_or(ReviewEnding::Unreadable));
    answered.map(|answered| Json(answered.review)).ok_or(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod manifests;
#[cfg(test)]
mod tests;
