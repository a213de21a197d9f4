//! `ebb-injector`: the webhook that gives pods their queue-proxy, and checks what people write.
//!
//! An autoscaler keeps its certificate, which is mounted as files. The API server verifies it by the
//! authority's certificate, which this program writes into its own webhook configurations, and again whenever
//! another client has changed them.

mod callers;
mod config;
mod config_maps;
mod metrics;
mod reading;
mod registration;
mod review_threads;
mod webhook_server;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use autoscaler::{PageServer, metrics_router, refuse_foreign};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use injector::{InjectorSettings, ReviewQuestion};
use kube::Client;
use runtime::{Clock, MetricsRegistry, PageLimits, PagePlaces, StopRequests, run_program, vital};
use settings::ClusterConfig;
use tokio::sync::{Semaphore, watch};

use callers::{CallerLimits, CallerPlaces};
use config::InjectorConfig;
use metrics::{InjectorMetrics, ReviewEnding};
use reading::ReviewSize;
use review_threads::{MissingAnswer, ReviewThreads};
use webhook_server::{CallerProof, WebhookCaller, WebhookCertificates, WebhookServer};

use crate::listening::listen;

/// The number of ordinary reviews that are read and answered at once, for all callers together; one more
/// waits. With one large review, and one review of each size as values, they take half of the memory that the
/// manifests allow.
const REVIEWS_MAX: usize = 32;
/// The number of large reviews that are read and answered at once.
const LARGE_REVIEWS_MAX: usize = 1;
/// How long one review may take, from its head to its answer: the API server gives up after as long.
const REVIEW_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs `ebb-injector`: answers reviews until it is asked to stop.
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
    let certificates = WebhookCertificates::keep(config.certificates, config.callers)?;
    let client = Client::try_default().await.context("connecting to Kubernetes")?;
    let (is_known_in, is_known) = watch::channel(false);
    let registration = registration::keep(client, certificates.roots(), is_known_in);
    tokio::spawn(vital("the webhooks' registration", registration));
    let (clock, registry) = (Clock::start(), MetricsRegistry::default());
    let metrics = InjectorMetrics::register(&registry);
    let callers = CallerPlaces::new(CallerLimits::WEBHOOK, clock, metrics.clone());
    let state = Arc::new(WebhookState {
        image: config.image,
        roots: certificates.roots(),
        cluster: config_maps::follow_cluster(config.settings),
        observability: config_maps::follow_observability(config.observability),
        is_known,
        metrics,
        turns: Semaphore::new(REVIEWS_MAX),
        large_turns: Semaphore::new(LARGE_REVIEWS_MAX),
        review_threads: ReviewThreads::start().context("starting the threads that answer reviews")?,
        proof: certificates.proof,
        patience: REVIEW_TIME_MAX,
    });
    // Before the pages: where one of them says that this replica is ready, a review finds it.
    let listener = tokio::net::TcpListener::from_std(listen(config.address)?)?;
    let places = PagePlaces::new(PageLimits::STANDARD, clock);
    let beside = metrics_router(registry).merge(probe_router(&state));
    let beside = refuse_foreign(beside, config.trusted, |status, why| (status, why).into_response());
    let beside = PageServer::new(beside).serve(listen(config.metrics)?, &places)?;
    tokio::spawn(vital("a page of the injector", beside));
    let stopped = async move {
        stop_requests.next().await;
        // The API server may learn a moment later that this replica is gone; until then reviews are answered.
        tokio::time::sleep(webhook_server::SERVES_AFTER_STOP).await;
    };
    WebhookServer { listener, certificates, places: callers, router: router(&state) }.serve(stopped).await;
    Ok(())
}

fn router(state: &Arc<WebhookState>) -> Router {
    Router::new()
        .route("/inject", post(inject_pod))
        .route("/validate", post(validate))
        .route_layer(from_fn_with_state(Arc::clone(state), in_turn))
        .with_state(Arc::clone(state))
        .merge(probe_router(state))
}

/// The pages that kubelet probes: at the webhook's own port, and at the port of metrics, which needs no TLS.
fn probe_router(state: &Arc<WebhookState>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .with_state(Arc::clone(state))
}

/// What the webhook needs to answer a review.
struct WebhookState {
    image: String,
    roots: watch::Receiver<String>,
    cluster: watch::Receiver<ClusterConfig>,
    observability: watch::Receiver<Option<String>>,
    /// Whether the authority is in the webhook configurations.
    is_known: watch::Receiver<bool>,
    metrics: InjectorMetrics,
    turns: Semaphore,
    large_turns: Semaphore,
    review_threads: ReviewThreads,
    proof: CallerProof,
    /// How long one review may take, from its head to its answer.
    patience: Duration,
}

/// Reads and answers a review once it has a turn. Probes of kubelet need no turn.
async fn in_turn(state: State<Arc<WebhookState>>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<WebhookCaller>().cloned();
    let is_proven = caller.as_ref().is_some_and(|caller| caller.is_proven);
    if state.proof == CallerProof::Certificate && !is_proven {
        let why = "a review is answered to the API server alone, which shows its certificate\n";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    let question =
        if request.uri().path() == "/inject" { ReviewQuestion::Inject } else { ReviewQuestion::Validate };
    let size = ReviewSize::of(&request);
    let turns = match size {
        ReviewSize::Ordinary => &state.turns,
        ReviewSize::Large => &state.large_turns,
    };
    let answering = async {
        let _turn = match &caller {
            Some(caller) => {
                // One review of each caller stands in the line for turns, however many it has sent, so the
                // line is short.
                let _foremost = caller.line(size).lock().await;
                turns.acquire().await
            }
            None => turns.acquire().await,
        };
        // From here on the caller keeps its place. A caller that only waits for a turn may have to make room.
        let _review = caller.as_ref().map(|caller| caller.place.begin_review());
        next.run(request).await
    };
    // The time includes the wait for a turn: an API server that has given up does not read the answer.
    let response = tokio::time::timeout(state.patience, answering).await.unwrap_or_else(|_| {
        state.metrics.ended(question, ReviewEnding::Late);
        (StatusCode::SERVICE_UNAVAILABLE, "the review took too long\n").into_response()
    });
    if let Some(caller) = caller.filter(|_| response.status().is_success()) {
        caller.place.note_reviewed();
    }
    response
}

/// Ready once the authority is in the webhook configurations: before, each review would fail in the API
/// server.
async fn ready(state: State<Arc<WebhookState>>) -> (StatusCode, &'static str) {
    if *state.is_known.borrow() {
        return (StatusCode::OK, "ready\n");
    }
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "the authority of the injector's certificate is not in the webhook configurations yet\n",
    )
}

async fn inject_pod(state: State<Arc<WebhookState>>, request: Request) -> Response {
    reviewed(&state, request, ReviewQuestion::Inject).await
}

async fn validate(state: State<Arc<WebhookState>>, request: Request) -> Response {
    reviewed(&state, request, ReviewQuestion::Validate).await
}

async fn reviewed(state: &WebhookState, request: Request, question: ReviewQuestion) -> Response {
    let review = match reading::read(request).await {
        Ok(review) => review,
        Err(unread) => {
            state.metrics.ended(question, ReviewEnding::Unreadable);
            // The rest of the body would be read as the next request.
            return (unread.status(), [(CONNECTION, "close")]).into_response();
        }
    };
    let settings = InjectorSettings {
        image: state.image.clone(),
        link_ca: state.roots.borrow().clone(),
        cluster: state.cluster.borrow().clone(),
        observability: state.observability.borrow().clone(),
    };
    match state.review_threads.answer(review, question, settings).await {
        Ok(answer) => {
            state.metrics.ended(question, ReviewEnding::Answered(answer.verdict));
            ([(CONTENT_TYPE, "application/json")], answer.text).into_response()
        }
        Err(MissingAnswer::Unreadable) => {
            state.metrics.ended(question, ReviewEnding::Unreadable);
            StatusCode::BAD_REQUEST.into_response()
        }
        Err(MissingAnswer::Failed) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod manifests;
#[cfg(test)]
mod tests;
