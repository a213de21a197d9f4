//! What pods printed, over the API: one JSON object per line, and with `follow` further ones as they come.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use platform_local::{LogLine, LogQuery, LogStore};
use serde::Deserialize;
use vocabulary::RevisionName;

/// What is asked for, after the revision.
#[derive(Debug, Default, Deserialize)]
pub(super) struct LogSelection {
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    previous: bool,
    since_ms: Option<u64>,
}

/// Whether lines are asked for as they come, by the same reading of the query as below.
pub(super) fn is_followed(uri: &Uri) -> bool {
    Query::<LogSelection>::try_from_uri(uri).is_ok_and(|Query(wanted)| wanted.follow)
}

/// `GET /v1/logs/{namespace}/{kind}/{name}`: the lines of a revision, and further ones if asked for.
pub(super) fn read(
    Path((namespace, kind, name)): Path<(String, String, String)>,
    Query(wanted): Query<LogSelection>,
    store: Arc<LogStore>,
) -> Response {
    let revision = match RevisionName::new(&namespace, &kind, &name) {
        Ok(revision) => revision,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    };
    let since = wanted.since_ms.map(Duration::from_millis);
    let query = LogQuery { after: 0, since, previous: wanted.previous };
    let body = if wanted.follow {
        Body::from_stream(follow(store, revision, query))
    } else {
        Body::from(encoded(&store.read(&revision, &query)))
    };
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

/// Lines as they come, for as long as the reader reads. A reader slower than the revision prints misses lines
/// that are no longer kept.
fn follow(
    store: Arc<LogStore>,
    revision: RevisionName,
    query: LogQuery,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    let news = store.news();
    stream::unfold((store, revision, query, news), async |(store, revision, mut query, mut news)| {
        loop {
            // Before the read: what is printed between the two ends the wait below, and is not overlooked.
            news.borrow_and_update();
            let lines = store.read(&revision, &query);
            if let Some(last) = lines.last() {
                query.after = last.number;
                return Some((Ok(encoded(&lines)), (store, revision, query, news)));
            }
            // The store outlives every reader.
            news.changed().await.ok()?;
        }
    })
}

fn encoded(lines: &[Arc<LogLine>]) -> Bytes {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line.as_ref()).expect("lines are plain data");
        text.push(b'\n');
    }
    text.into()
}
