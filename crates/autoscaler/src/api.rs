//! The HTTP API: answers are made of the snapshots that the event loops publish, at the reader's expense.
//!
//! Several autoscalers of one process answer together: each knows the revisions that it decides about. One
//! whose loop hangs has no answer, and the client is told so. Only the two health checks reach a loop: they
//! prove that it turns. The past that a person tells of reaches it, too, where the program serves
//! [`imports`].

mod answers;
mod demand;
pub(crate) mod merged;
mod panel;
mod path_revision;
mod records;
mod refusal;
mod stream;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{Extensions, HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use orchestration::AppOutput;
use runtime::PageKind;
use scaling::SeriesRange;
use vocabulary::RevisionName;

use self::answers::{answer, answer_of_one};
pub(crate) use self::demand::imports;
use self::panel::Panel;
pub(crate) use self::panel::{ApiHandle, LoopCall, LoopHealth};
use self::path_revision::PathRevision;
pub use self::refusal::refusal;
use crate::api_types::LedgerRange;
use crate::views;

/// A stream lasts until its reader has enough, and has a place beside those of other pages.
const STREAM: &str = "/v1/stream";

/// The places that a request to the API takes.
pub fn page_kind(uri: &Uri) -> PageKind {
    if uri.path() == STREAM { PageKind::LongRead } else { PageKind::of_path(uri.path()) }
}

/// The API of these autoscalers, as of one.
pub(crate) fn router(handles: Vec<ApiHandle>) -> Router {
    Router::new()
        .route("/v1/revisions", get(list))
        .route("/v1/revisions/{namespace}/{kind}/{name}", get(detail))
        .route("/v1/revisions/{namespace}/{kind}/{name}/series", get(series))
        .route("/v1/revisions/{namespace}/{kind}/{name}/forecast", get(forecast))
        .route(demand::PATH, get(demand::read))
        .route("/v1/ledger", get(ledger))
        .route("/v1/problems", get(problems))
        .route("/v1/record", get(records::list))
        .route("/v1/record/{autoscaler}/{segment}", get(records::part))
        .route(STREAM, get(changes))
        .route("/healthz", get(health))
        .route("/ready", get(readiness))
        .with_state(Panel::new(handles))
}

async fn list(State(panel): State<Panel>, extensions: Extensions) -> Response {
    let (output, panel) = (output_for(&extensions), panel.read());
    let lists = panel.given.iter().map(|(snapshot, now)| views::list(snapshot, output, *now));
    answer(merged::list(lists.collect(), &panel.silent))
}

async fn detail(
    State(panel): State<Panel>,
    PathRevision(name): PathRevision,
    extensions: Extensions,
) -> Response {
    let (output, panel) = (output_for(&extensions), panel.read());
    let details = panel.given.iter().map(|(snapshot, now)| views::detail(snapshot, &name, output, *now));
    answer_of_one(&name, merged::detail(details.collect()), &panel.silent)
}

async fn series(
    State(panel): State<Panel>,
    PathRevision(name): PathRevision,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Response {
    let word = parameters.get("range").map_or("", String::as_str);
    let Some(range) = SeriesRange::of_word(word) else {
        let words = SeriesRange::ALL.map(SeriesRange::word).join(", ");
        let error = format!("the parameter range is {word:?}; write one of {words}");
        return refusal(StatusCode::BAD_REQUEST, error);
    };
    let panel = panel.read();
    let all = panel.given.iter().filter_map(|(snapshot, now)| views::series(snapshot, &name, range, *now));
    answer_of_one(&name, merged::series(all), &panel.silent)
}

async fn forecast(State(panel): State<Panel>, PathRevision(name): PathRevision) -> Response {
    let panel = panel.read();
    let all = panel.given.iter().filter_map(|(snapshot, now)| views::forecast(snapshot, &name, *now));
    answer_of_one(&name, merged::forecast(all.collect()), &panel.silent)
}

async fn ledger(State(panel): State<Panel>, Query(parameters): Query<BTreeMap<String, String>>) -> Response {
    let text = parameters.get("since").map_or(LedgerRange::DEFAULT_TEXT, String::as_str);
    let range = match LedgerRange::parse(text) {
        Ok(range) => range,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, format!("the parameter since: {error}")),
    };
    let named = match parameters.get("revision").map(|name| RevisionName::parse(name)).transpose() {
        Ok(named) => named,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let panel = panel.read();
    let lists =
        panel.given.iter().map(|(snapshot, now)| views::ledger(snapshot, named.as_ref(), range, *now));
    let merged = merged::ledger(lists.collect(), &panel.silent);
    match (merged, named) {
        // An autoscaler that is silent may decide about this revision.
        (Some(list), Some(name)) if list.revisions.is_empty() && panel.silent.is_empty() => {
            refusal(StatusCode::NOT_FOUND, format!("there is no revision {name}"))
        }
        (merged, _) => answer(merged),
    }
}

async fn problems(State(panel): State<Panel>) -> Response {
    let panel = panel.read();
    answer(merged::problems(panel.given.iter().map(|(snapshot, _)| views::problems(snapshot)).collect()))
}

async fn changes(State(panel): State<Panel>, headers: HeaderMap, extensions: Extensions) -> Response {
    let output = output_for(&extensions);
    if panel.read().given.is_empty() {
        return answer(None::<()>);
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    stream::response(panel, output, last)
}

/// While one autoscaler decides, another that does not is replaced.
async fn health(State(panel): State<Panel>) -> Response {
    match panel.check().await {
        Some(LoopHealth::Turns | LoopHealth::Ready) => "ok".into_response(),
        None => answer(None::<()>),
    }
}

/// An autoscaler that knows what is there can decide, or take over from the one that decides.
async fn readiness(State(panel): State<Panel>) -> Response {
    match panel.check().await {
        Some(LoopHealth::Ready) => "ready\n".into_response(),
        Some(LoopHealth::Turns) => {
            refusal(StatusCode::SERVICE_UNAVAILABLE, "it has not heard everything that is there".to_owned())
        }
        None => answer(None::<()>),
    }
}

/// How much the client may see, as a layer in front of these pages has noted. On a cluster no layer stands in
/// front: a client that reaches the API there has Kubernetes' right to.
fn output_for(extensions: &Extensions) -> AppOutput {
    extensions.get().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
