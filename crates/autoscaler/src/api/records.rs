//! The records of the autoscalers, for a person who copies them: which segments there are, and a part of one.

use std::collections::BTreeMap;
use std::io;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use recording::{StoredSegment, segment_part, stored_segments};
use tokio::task::{JoinError, spawn_blocking};
use vocabulary::shown;

use super::panel::{NamedRecord, Panel};
use super::refusal::refusal;
use crate::api_types::{API_VERSION, RecordList, RecordView, SegmentView};

/// An answer has at most so many bytes of a segment: what a slow line carries in some seconds.
const PART_BYTES_MAX: u64 = 4 << 20;

pub(super) async fn list(State(panel): State<Panel>) -> Response {
    let records = panel.records();
    // A folder is read on a thread that may wait for a disk; a panic there is an answer of 500.
    let listed = spawn_blocking(move || views(&records)).await;
    match found_or_refusal(listed) {
        Ok(records) => {
            Json(RecordList { version: API_VERSION, records, unanswered: Vec::new() }).into_response()
        }
        Err(answer) => *answer,
    }
}

pub(super) async fn part(
    State(panel): State<Panel>,
    Path((autoscaler, segment)): Path<(String, String)>,
    Query(parameters): Query<BTreeMap<String, String>>,
) -> Response {
    let record = panel.records().into_iter().find(|record| record.autoscaler.as_str() == autoscaler);
    let Some(NamedRecord { folder, .. }) = record else {
        let error = format!("autoscaler {} has no record here", shown(&autoscaler));
        return refusal(StatusCode::NOT_FOUND, error);
    };
    let from = parameters.get("from").map_or("0", String::as_str);
    let (Ok(number), Ok(from)) = (segment.parse::<u64>(), from.parse::<u64>()) else {
        let error = format!(
            "segment {} from byte {}: both are whole numbers, such as /v1/record/NAME/12?from=0",
            shown(&segment),
            shown(from)
        );
        return refusal(StatusCode::BAD_REQUEST, error);
    };
    // The segment is read on a thread that may wait for a disk; a panic there is an answer of 500.
    let read = spawn_blocking(move || segment_part(&folder, number, from, PART_BYTES_MAX)).await;
    match found_or_refusal(read) {
        Ok(Some(part)) => part.into_response(),
        Ok(None) => refusal(StatusCode::NOT_FOUND, format!("the record has no segment {number} any more")),
        Err(answer) => *answer,
    }
}

fn views(records: &[NamedRecord]) -> io::Result<Vec<RecordView>> {
    let view = |segment: StoredSegment| SegmentView { number: segment.number, bytes: segment.bytes };
    let views = records.iter().map(|NamedRecord { autoscaler, folder }| {
        let segments = stored_segments(folder)?.into_iter().map(view).collect();
        Ok(RecordView { autoscaler: autoscaler.as_str().to_owned(), segments })
    });
    views.collect()
}

/// The findings in a record, or the answer that says why it cannot be read.
fn found_or_refusal<Found>(read: Result<io::Result<Found>, JoinError>) -> Result<Found, Box<Response>> {
    let error = match read {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    let error = format!("the record cannot be read: {error}");
    Err(Box::new(refusal(StatusCode::INTERNAL_SERVER_ERROR, error)))
}
