//! The HTTP API: questions go to the event loops over bounded channels, answers come back once each.
//!
//! Several autoscalers of one process answer together: each knows the revisions that it decides about. One
//! that hangs keeps nobody waiting for long, and whoever asked is told that it did not answer.

pub(crate) mod merged;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{Path, Query as QueryString, State};
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::future::join_all;
use orchestration::AppOutput;
use scaling::SeriesRange;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use vocabulary::{ReplicaName, RevisionName};

use crate::api_types::{API_VERSION, ApiError, ProblemList, RevisionDetail, RevisionList, SeriesView};

/// Questions that wait for the event loop. More than that many people looking at once wait for their turn.
const QUERIES_MAX: usize = 64;
/// The event loop answers in microseconds; one that takes longer is stuck or gone.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The same where others can answer.
const ANSWER_MAX_OF_SEVERAL: Duration = Duration::from_secs(1);

/// A question, with the way back for its answer.
#[derive(Debug)]
pub(crate) enum Query {
    /// All revisions, as this autoscaler knows them.
    List(AppOutput, oneshot::Sender<RevisionList>),
    /// One revision, if it exists.
    Detail(DetailQuestion, oneshot::Sender<Option<RevisionDetail>>),
    /// The measured past of one revision, if it exists.
    Series(SeriesQuestion, oneshot::Sender<Option<OwnedSeries>>),
    /// What is wrong with the configuration.
    Problems(oneshot::Sender<ProblemList>),
    /// Answered by a loop that turns, and by no other.
    Health(oneshot::Sender<()>),
    /// Whether it knows everything that is there.
    Readiness(oneshot::Sender<bool>),
}

/// Which revision is meant, and how much of it is told.
#[derive(Clone, Debug)]
pub(crate) struct DetailQuestion {
    pub(crate) name: RevisionName,
    pub(crate) output: AppOutput,
}

/// The revision and the part of its past that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct SeriesQuestion {
    pub(crate) name: RevisionName,
    pub(crate) range: SeriesRange,
}

/// A series with the epoch of the autoscaler that measured it: of two the later owner's is newer.
#[derive(Debug)]
pub(crate) struct OwnedSeries {
    pub(crate) epoch: Option<u64>,
    pub(crate) series: SeriesView,
}

/// The asking end of one autoscaler.
#[derive(Clone, Debug)]
pub(crate) struct ApiHandle {
    name: ReplicaName,
    queries: mpsc::Sender<Query>,
}

impl ApiHandle {
    pub(crate) fn new(name: ReplicaName) -> (Self, mpsc::Receiver<Query>) {
        let (queries, receiver) = mpsc::channel(QUERIES_MAX);
        (Self { name, queries }, receiver)
    }

    /// The answer, or `None` if there is no event loop to give it.
    async fn ask<Answer>(
        &self,
        query: impl FnOnce(oneshot::Sender<Answer>) -> Query,
        patience: Duration,
    ) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.queries.send(query(reply)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(patience, asking).await.ok().flatten()
    }
}

/// All autoscalers that answer together.
#[derive(Clone, Debug)]
struct Panel(Vec<ApiHandle>);

/// What the autoscalers of a panel answered to one question.
struct Answers<Answer> {
    given: Vec<Answer>,
    /// The autoscalers that did not answer in time.
    silent: Vec<ReplicaName>,
}

impl Panel {
    async fn ask<Answer>(&self, query: impl Fn(oneshot::Sender<Answer>) -> Query) -> Answers<Answer> {
        let patience = if self.0.len() > 1 { ANSWER_MAX_OF_SEVERAL } else { ANSWER_MAX };
        let answers = join_all(self.0.iter().map(|handle| handle.ask(&query, patience))).await;
        let mut sorted = Answers { given: Vec::new(), silent: Vec::new() };
        for (handle, answer) in self.0.iter().zip(answers) {
            match answer {
                Some(answer) => sorted.given.push(answer),
                None => sorted.silent.push(handle.name.clone()),
            }
        }
        sorted
    }
}

/// The API of these autoscalers, as of one.
pub(crate) fn router(handles: Vec<ApiHandle>) -> Router {
    Router::new()
        .route("/v1/revisions", get(list))
        .route("/v1/revisions/{namespace}/{kind}/{name}", get(detail))
        .route("/v1/revisions/{namespace}/{kind}/{name}/series", get(series))
        .route("/v1/problems", get(problems))
        .route("/healthz", get(health))
        .route("/ready", get(readiness))
        .with_state(Panel(handles))
}

async fn list(State(panel): State<Panel>, extensions: Extensions) -> Response {
    let output = output_for(&extensions);
    let answers = panel.ask(|reply| Query::List(output, reply)).await;
    answer(merged::list(answers.given, &answers.silent))
}

async fn detail(
    State(panel): State<Panel>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
    extensions: Extensions,
) -> Response {
    let name = match RevisionName::new(&namespace, &kind, &name) {
        Ok(name) => name,
        Err(error) => return failure(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let asked = DetailQuestion { name, output: output_for(&extensions) };
    let answers = panel.ask(|reply| Query::Detail(asked.clone(), reply)).await;
    match (merged::detail(answers.given), answers.silent.is_empty()) {
        (Some(detail), _) => answer(Some(detail)),
        (None, true) => failure(StatusCode::NOT_FOUND, format!("there is no revision {}", asked.name)),
        // An autoscaler that did not answer may decide about this revision.
        (None, false) => answer(None::<()>),
    }
}

async fn series(
    State(panel): State<Panel>,
    Path((namespace, kind, name)): Path<(String, String, String)>,
    QueryString(parameters): QueryString<BTreeMap<String, String>>,
) -> Response {
    let name = match RevisionName::new(&namespace, &kind, &name) {
        Ok(name) => name,
        Err(error) => return failure(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let word = parameters.get("range").map_or("", String::as_str);
    let Some(range) = SeriesRange::of_word(word) else {
        let words = SeriesRange::ALL.map(SeriesRange::word).join(", ");
        let error = format!("the parameter range is {word:?}; write one of {words}");
        return failure(StatusCode::BAD_REQUEST, error);
    };
    let asked = SeriesQuestion { name, range };
    let answers = panel.ask(|reply| Query::Series(asked.clone(), reply)).await;
    let latest = answers.given.into_iter().flatten().max_by_key(|owned| owned.epoch);
    match (latest, answers.silent.is_empty()) {
        (Some(owned), _) => answer(Some(owned.series)),
        (None, true) => failure(StatusCode::NOT_FOUND, format!("there is no revision {}", asked.name)),
        // An autoscaler that did not answer may decide about this revision.
        (None, false) => answer(None::<()>),
    }
}

async fn problems(State(panel): State<Panel>) -> Response {
    answer(merged::problems(panel.ask(Query::Problems).await.given))
}

/// While one autoscaler decides, another that does not is replaced.
async fn health(State(panel): State<Panel>) -> Response {
    if panel.ask(Query::Health).await.given.is_empty() {
        return answer(None::<()>);
    }
    "ok".into_response()
}

/// An autoscaler that knows what is there can decide, or take over from the one that decides.
async fn readiness(State(panel): State<Panel>) -> Response {
    match panel.ask(Query::Readiness).await.given.into_iter().max() {
        Some(true) => "ready\n".into_response(),
        Some(false) => {
            failure(StatusCode::SERVICE_UNAVAILABLE, "it has not heard everything that is there".to_owned())
        }
        None => answer(None::<()>),
    }
}

/// How much the client may see, as a layer in front of these pages has noted. On a cluster no layer stands in
/// front: a client that reaches the API there has Kubernetes' right to.
fn output_for(extensions: &Extensions) -> AppOutput {
    extensions.get().copied().unwrap_or_default()
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
