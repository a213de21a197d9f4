//! The demand of the past: read by anybody who may read the rest, and told by a person.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::put;
use axum::{Json, Router};
use orchestration::ControlEvent;

use super::answers::{answer, answer_of_one};
use super::merged;
use super::panel::{ApiHandle, Panel};
use super::path_revision::PathRevision;
use super::refusal::refusal;
use crate::api_types::{API_VERSION, DemandImportView, DemandView};
use crate::views::{self, DemandRefusal};
use crate::wall_second::wall_second;

pub(super) const PATH: &str = "/v1/revisions/{namespace}/{kind}/{name}/demand";

/// The page at which a person tells of a past.
pub(crate) fn imports(handles: Vec<ApiHandle>) -> Router {
    Router::new().route(PATH, put(import)).with_state(Panel::new(handles))
}

pub(super) async fn read(State(panel): State<Panel>, PathRevision(name): PathRevision) -> Response {
    let panel = panel.read();
    let all = panel.given.iter().filter_map(|(snapshot, now)| views::demand(snapshot, &name, *now));
    answer_of_one(&name, merged::demand(all.collect()), &panel.silent)
}

async fn import(
    State(panel): State<Panel>,
    PathRevision(name): PathRevision,
    Json(told): Json<DemandView>,
) -> Response {
    let told = DemandView { name, ..told };
    let second = wall_second();
    let (mut is_known, mut is_taken) = (false, false);
    // While a revision changes hands two autoscalers may know it. Both are told of its demand: the one that
    // lets go of the revision ignores that.
    for (handle, snapshot, now) in panel.answering() {
        let demand = match views::told_demand(&told, &snapshot, now, second) {
            Some(Ok(demand)) => demand,
            Some(Err(problem)) => return refused(&problem),
            None => continue,
        };
        let event = ControlEvent::DemandImported { revision: told.name.clone(), demand };
        is_known = true;
        is_taken |= handle.take(event).await.is_some();
    }
    let minutes = u64::try_from(told.minutes.iter().flatten().count()).unwrap_or(u64::MAX);
    let name = told.name;
    if is_taken {
        answer(Some(DemandImportView { version: API_VERSION, name, minutes }))
    } else if is_known {
        answer(None::<()>)
    } else {
        answer_of_one(&name, None::<()>, &panel.read().silent)
    }
}

fn refused(problem: &DemandRefusal) -> Response {
    let status = match problem {
        DemandRefusal::PredictionOff(_) | DemandRefusal::ShortMinutes => StatusCode::CONFLICT,
        DemandRefusal::OtherMetric { .. }
        | DemandRefusal::Count(_)
        | DemandRefusal::ToCome(_)
        | DemandRefusal::Value(_) => StatusCode::BAD_REQUEST,
    };
    refusal(status, problem.to_string())
}
