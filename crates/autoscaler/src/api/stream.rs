//! What changes, as it changes: server-sent events for a page that is open.
//!
//! A stream looks at the latest snapshots twice a second and tells of the revisions that are others than in
//! the snapshots of its look before; one that changes twice in between is told once, as it then is. Two
//! snapshots share each revision that is the same in both, so a look compares references, at the expense of
//! the reader's own task.
//!
//! The first event of a stream has all revisions. A reader that comes back names the last event that it has.
//! Its first event has the revisions that changed since then, and the names of all revisions: nothing is kept
//! for readers that left. An id that another autoscaler gave, or this one before a restart, counts as none.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use orchestration::AppOutput;
use vocabulary::{RevisionName, Timestamp};

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

/// The answer that goes on until the reader leaves, or no autoscaler answers any more. `last` is the id of
/// the last event that the reader has.
pub(super) fn response(panel: Panel, output: AppOutput, last: Option<&str>) -> Response {
    let since = last.and_then(|last| number_of(last, &panel));
    let stream = ChangeStream { panel, output, since, told: Vec::new(), notices: ChangeNotices::default() };
    let body = Body::from_stream(unfold(stream, ChangeStream::next));
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
}

struct ChangeStream {
    panel: Panel,
    output: AppOutput,
    /// The number of the snapshot that the reader has, from a stream before this one.
    since: Option<u64>,
    /// The snapshots of the look before; none before the first.
    told: Vec<Arc<Snapshot>>,
    notices: ChangeNotices,
}

/// The problems and the silent autoscalers, as the last event told them: they concern no single revision.
#[derive(Debug, Default, PartialEq, Eq)]
struct ChangeNotices {
    problems: Vec<String>,
    unanswered: Vec<String>,
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
                self.notices =
                    ChangeNotices { problems: event.problems.clone(), unanswered: event.unanswered.clone() };
                return Some((Ok(encoded(&event, self.panel.run())), self));
            }
        }
        Some((Ok(Bytes::from_static(COMMENT)), self))
    }

    /// What is new since the look before, or since the reader left; `None` if nothing is.
    fn changes(&self, panel: &PanelSnapshots) -> Option<ChangeEvent> {
        let is_first = self.told.is_empty();
        let since = self.since.filter(|_| is_first);
        let lists = panel.given.iter().map(|(snapshot, now)| {
            if let Some(since) = since {
                views::changed_since(snapshot, end_of(since), self.output, *now)
            } else {
                let former = self.told.iter().find(|former| former.owner == snapshot.owner);
                views::changed(snapshot, former.map(Arc::as_ref), self.output, *now)
            }
        });
        let list = merged::list(lists.collect(), &panel.silent)?;
        let gone = self.gone(panel);
        let is_news = self.notices.problems != list.problems || self.notices.unanswered != list.unanswered;
        if !is_first && !is_news && list.revisions.is_empty() && gone.is_empty() {
            return None;
        }
        Some(ChangeEvent {
            version: API_VERSION,
            // Of several the least: what another has published since then may be told twice to a reader that
            // comes back, but is not left out.
            snapshot: list.snapshot,
            whole: is_first && since.is_none(),
            revisions: list.revisions,
            names: since.map(|_| names(panel)),
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

/// The end of the microsecond that a number names.
fn end_of(number: u64) -> Timestamp {
    Timestamp::from_nanos(number.saturating_mul(1000).saturating_add(999))
}

/// The number in the id of an event, if this panel gave it.
fn number_of(id: &str, panel: &Panel) -> Option<u64> {
    let (run, number) = id.split_once('-')?;
    (run == panel.run()).then(|| number.parse().ok())?
}

/// All revisions that an autoscaler decides about.
fn names(panel: &PanelSnapshots) -> Vec<RevisionName> {
    let views = panel.given.iter().flat_map(|(snapshot, now)| snapshot.control.views(*now));
    let names: BTreeSet<RevisionName> = views.map(|view| view.facts().name.clone()).collect();
    names.into_iter().collect()
}

fn encoded(event: &ChangeEvent, run: &str) -> Bytes {
    let data = serde_json::to_string(event).expect("an event is plain data");
    // A line break in a text stands escaped in JSON, so the data is one line.
    Bytes::from(format!("id: {run}-{}\nevent: change\ndata: {data}\n\n", event.snapshot))
}
