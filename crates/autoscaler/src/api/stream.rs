//! What changes, as it changes: server-sent events for a page that is open.
//!
//! A stream looks at the latest snapshots twice a second and tells of the revisions that are others than in
//! the snapshots of its look before; one that changes twice in between is told once, as it then is. Two
//! snapshots share each revision that is the same in both, so a look compares references, at the expense of
//! the reader's own task. The first event of a stream has all revisions: a reader that comes back, whatever
//! it missed and whichever autoscaler it asked before, is then as one that never left.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use orchestration::AppOutput;
use vocabulary::RevisionName;

use super::merged;
use super::panel::{Panel, PanelSnapshots};
use crate::api_types::{API_VERSION, ChangeEvent};
use crate::snapshot::Snapshot;
use crate::views;

/// How often a stream looks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After so many looks without a change a comment goes out, within 15 s: what lies between a reader and us
/// closes connections on which nothing moves.
const QUIET_LOOKS_MAX: u32 = 28;
const COMMENT: &[u8] = b": nothing has changed\n\n";

/// The answer that goes on until the reader leaves, or no autoscaler answers any more.
pub(super) fn response(panel: Panel, output: AppOutput) -> Response {
    let stream = ChangeStream { panel, output, told: Vec::new() };
    let body = Body::from_stream(unfold(stream, ChangeStream::next));
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
}

struct ChangeStream {
    panel: Panel,
    output: AppOutput,
    /// The snapshots of the look before; none before the first.
    told: Vec<Arc<Snapshot>>,
}

impl ChangeStream {
    /// The next event or comment; the end once no autoscaler answers, so that the reader asks again.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        for _ in 0..QUIET_LOOKS_MAX {
            if !self.told.is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            let panel = self.panel.read();
            if panel.given.is_empty() {
                return None;
            }
            let event = self.changes(&panel);
            self.told = panel.given.into_iter().map(|(snapshot, _)| snapshot).collect();
            if let Some(event) = event {
                return Some((Ok(encoded(&event)), self));
            }
        }
        Some((Ok(Bytes::from_static(COMMENT)), self))
    }

    /// What is new since the look before; `None` if nothing is.
    fn changes(&self, panel: &PanelSnapshots) -> Option<ChangeEvent> {
        let whole = self.told.is_empty();
        let lists = panel.given.iter().map(|(snapshot, now)| {
            let former = self.told.iter().find(|former| former.owner == snapshot.owner);
            views::changed(snapshot, former.map(Arc::as_ref), self.output, *now)
        });
        let list = merged::list(lists.collect(), &panel.silent)?;
        let gone = self.gone(panel);
        if !whole && list.revisions.is_empty() && gone.is_empty() {
            return None;
        }
        let published = panel.given.iter().map(|(snapshot, _)| snapshot.at.as_nanos() / 1000).max();
        Some(ChangeEvent {
            version: API_VERSION,
            snapshot: published.unwrap_or_default(),
            whole,
            revisions: list.revisions,
            gone,
            problems: list.problems,
            unanswered: list.unanswered,
        })
    }

    /// Revisions that were told of, and that no autoscaler decides about any more.
    fn gone(&self, panel: &PanelSnapshots) -> Vec<RevisionName> {
        let is_there = |name: &RevisionName| {
            panel.given.iter().any(|(snapshot, now)| snapshot.control.view(name, *now).is_some())
        };
        let told = self.told.iter().flat_map(|former| former.control.views(former.at));
        told.map(|view| view.facts().name.clone()).filter(|name| !is_there(name)).collect()
    }
}

fn encoded(event: &ChangeEvent) -> Bytes {
    let data = serde_json::to_string(event).expect("an event is plain data");
    // A line break in a text stands escaped in JSON, so the data is one line.
    Bytes::from(format!("id: {}\nevent: change\ndata: {data}\n\n", event.snapshot))
}
