//! The HTTP API: questions go to the event loop over a bounded channel, answers come back once each.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use vocabulary::RevisionName;

use crate::api_types::{API_VERSION, ApiError, ProblemList, RevisionDetail, RevisionList};

/// Questions that wait for the event loop. More than that many people looking at once wait for their turn.
const QUERIES_MAX: usize = 64;
/// The event loop answers in microseconds; one that takes longer is stuck or gone.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A question, with the way back for its answer.
#[derive(Debug)]
pub(crate) enum Query {
    /// All revisions.
    List(oneshot::Sender<RevisionList>),
    /// One revision, if it exists.
    Detail(RevisionName, oneshot::Sender<Option<RevisionDetail>>),
    /// What is wrong with the configuration.
    Problems(oneshot::Sender<ProblemList>),
    /// Whether the loop turns.
    Health(oneshot::Sender<()>),
}

/// The asking end.
#[derive(Clone, Debug)]
pub(crate) struct ApiHandle {
    queries: mpsc::Sender<Query>,
}

impl ApiHandle {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Query>) {
        let (queries, receiver) = mpsc::channel(QUERIES_MAX);
        (Self { queries }, receiver)
    }

    /// The answer, or `None` if there is no event loop to give it.
    async fn ask<Answer>(&self, query: impl FnOnce(oneshot::Sender<Answer>) -> Query) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.queries.send(query(reply)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(ANSWER_MAX, asking).await.ok().flatten()
    }
}

pub(crate) fn router(handle: ApiHandle) -> Router {
    Router::new()
        .route("/v1/revisions", get(list))
        .route("/v1/revisions/{namespace}/{kind}/{name}", get(detail))
        .route("/v1/problems", get(problems))
        .route("/healthz", get(health))
        .with_state(handle)
}

async fn list(State(handle): State<ApiHandle>) -> Response {
    answer(handle.ask(Query::List).await)
}

async fn detail(
    State(handle): State<ApiHandle>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
) -> Response {
    let name = match RevisionName::new(&namespace, &kind, &name) {
        Ok(name) => name,
        Err(error) => return failure(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let found = handle.ask(|reply| Query::Detail(name.clone(), reply)).await;
    match found {
        Some(None) => failure(StatusCode::NOT_FOUND, format!("there is no revision {name}")),
        Some(Some(detail)) => answer(Some(detail)),
        None => answer(None::<()>),
    }
}

async fn problems(State(handle): State<ApiHandle>) -> Response {
    answer(handle.ask(Query::Problems).await)
}

async fn health(State(handle): State<ApiHandle>) -> Response {
    match handle.ask(Query::Health).await {
        Some(()) => "ok".into_response(),
        None => answer(None::<()>),
    }
}

fn answer(body: Option<impl Serialize>) -> Response {
    match body {
        Some(body) => Json(body).into_response(),
        None => failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "the autoscaler is not running; ask again in a moment".to_owned(),
        ),
    }
}

fn failure(status: StatusCode, error: String) -> Response {
    (status, Json(ApiError { version: API_VERSION, error })).into_response()
}
