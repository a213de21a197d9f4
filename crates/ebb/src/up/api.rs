//! The API's front: it belongs to the process, so it answers while the autoscaler behind it is rebuilt.

use std::net::TcpListener;
use std::sync::Arc;

use anyhow::Context;
use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use crate::cli::Part;

/// A person wants a part rebuilt.
pub(super) struct RestartOrder {
    pub(super) part: Part,
    pub(super) done: oneshot::Sender<Result<(), String>>,
}

/// The router of the autoscaler that is at work now.
#[derive(Clone)]
pub(super) struct CurrentRouter(Arc<ArcSwap<Router>>);

impl CurrentRouter {
    pub(super) fn new(router: Router) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(router)))
    }

    pub(super) fn replace(&self, router: Router) {
        self.0.store(Arc::new(router));
    }
}

/// Serves the API until aborted.
pub(super) fn serve(
    listener: TcpListener,
    current: CurrentRouter,
    orders: mpsc::Sender<RestartOrder>,
) -> anyhow::Result<JoinHandle<()>> {
    let listener = tokio::net::TcpListener::from_std(listener).context("listening for the API")?;
    let router = Router::new()
        .route("/v1/restart/{part}", post(restart))
        .with_state(orders)
        .fallback(forward)
        .with_state(current);
    Ok(tokio::spawn(async move {
        // Serving ends only by abort: accept errors are retried within.
        let _ = axum::serve(listener, router).await;
    }))
}

async fn forward(State(current): State<CurrentRouter>, request: Request) -> Response {
    let router = Router::clone(&current.0.load());
    router.oneshot(request).await.into_response()
}

async fn restart(
    Path(part): Path<String>,
    State(orders): State<mpsc::Sender<RestartOrder>>,
) -> (StatusCode, String) {
    let part = match part.as_str() {
        "autoscaler" => Part::Autoscaler,
        "activator" => Part::Activator,
        unknown => {
            return (
                StatusCode::NOT_FOUND,
                format!("{unknown:?} cannot be restarted; autoscaler and activator can\n"),
            );
        }
    };
    let (done, outcome) = oneshot::channel();
    if orders.try_send(RestartOrder { part, done }).is_err() {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "other restarts are under way, or everything is stopping\n".to_owned(),
        );
    }
    match outcome.await {
        Ok(Ok(())) => (StatusCode::OK, "rebuilt\n".to_owned()),
        Ok(Err(problem)) => (StatusCode::INTERNAL_SERVER_ERROR, problem),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "everything is stopping\n".to_owned()),
    }
}
