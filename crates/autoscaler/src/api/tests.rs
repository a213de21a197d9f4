//! Answers of the API while no loop turns: what was published is read without it.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use futures_util::StreamExt;
use orchestration::ControlSnapshot;
use runtime::Clock;
use tokio::sync::mpsc;
use tower::ServiceExt;
use vocabulary::{ReplicaName, SharedMap};

use super::panel::ANSWER_MAX;
use super::*;
use crate::api_types::{ApiError, ChangeEvent, LedgerList, RecordList, RevisionList, SegmentView};
use crate::metrics::tests::decided_revision;
use crate::run_record::RunRecordFolder;
use crate::snapshot::{NEWS_WITHIN, Snapshot, SnapshotWriter, snapshots};

/// An autoscaler whose loop has published that it knows nothing, and stands still since.
fn standing_still(name: &str, clock: Clock) -> (ApiHandle, SnapshotWriter, mpsc::Receiver<LoopCall>) {
    let (writer, reader) = snapshots(ReplicaName::new(name), clock);
    let (handle, checks) = ApiHandle::new(ReplicaName::new(name), reader, RunRecordFolder::default());
    (handle, writer, checks)
}

async fn get_page(router: &Router, path: &str) -> (StatusCode, Vec<u8>) {
    let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
    let response = match router.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    (status, body.to_vec())
}

#[tokio::test(start_paused = true)]
async fn readers_are_answered_without_the_loop_and_health_checks_are_not() {
    let clock = Clock::start();
    let begun = clock.now();
    let (handle, _writer, _checks) = standing_still("autoscaler", clock);
    let router = router(vec![handle]);
    for (path, expected) in [
        ("/v1/revisions", StatusCode::OK),
        ("/v1/problems", StatusCode::OK),
        ("/v1/ledger", StatusCode::OK),
        ("/v1/ledger?since=2d", StatusCode::OK),
        ("/v1/ledger?since=soon", StatusCode::BAD_REQUEST),
        ("/v1/ledger?revision=none", StatusCode::BAD_REQUEST),
        ("/v1/ledger?revision=default/service/none", StatusCode::NOT_FOUND),
        ("/v1/revisions/default/service/none", StatusCode::NOT_FOUND),
        ("/v1/revisions/default/service/none/series?range=24h", StatusCode::NOT_FOUND),
        ("/v1/revisions/default/service/none/series?range=1h", StatusCode::BAD_REQUEST),
        ("/v1/revisions/default/service/none/forecast", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(get_page(&router, path).await.0, expected, "{path}");
    }
    assert_eq!(clock.now(), begun, "none of them waited");
    for path in ["/healthz", "/ready"] {
        let before = clock.now();
        assert_eq!(get_page(&router, path).await.0, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(clock.now().saturating_since(before) >= ANSWER_MAX, "{path}");
    }
    // By now the loop has published nothing for ten seconds.
    for path in [
        "/v1/revisions",
        "/v1/problems",
        "/v1/ledger",
        "/v1/revisions/default/service/none",
        "/v1/revisions/default/service/none/series?range=24h",
    ] {
        assert_eq!(get_page(&router, path).await.0, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_that_hangs_beside_another_one_is_named() {
    let clock = Clock::start();
    let (hanging, _writer, _checks) = standing_still("hanging", clock);
    let (other, writer, _other_checks) = standing_still("other", clock);
    let router = router(vec![hanging, other]);
    let unanswered = async || {
        let (status, body) = get_page(&router, "/v1/revisions").await;
        let list: RevisionList = serde_json::from_slice(&body).expect("a list");
        assert_eq!(status, StatusCode::OK);
        list.unanswered
    };
    assert_eq!(unanswered().await, Vec::<String>::new());
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (control, asked) = (ControlSnapshot::default(), SharedMap::default());
    writer.publish(Snapshot {
        owner: ReplicaName::new("other"),
        at: clock.now(),
        control,
        asked,
        callers: SharedMap::default(),
    });
    assert_eq!(unanswered().await, ["hanging"]);
    let (status, _) = get_page(&router, "/v1/revisions/default/service/none").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "the one that hangs may decide about it");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_has_the_numbers_of_the_history_and_no_cost_without_a_price() {
    let clock = Clock::start();
    let (handle, writer, _checks) = standing_still("autoscaler", clock);
    let (owner, asked) = (ReplicaName::new("autoscaler"), SharedMap::default());
    let control = [decided_revision()].into_iter().collect();
    writer.publish(Snapshot { owner, at: clock.now(), control, asked, callers: SharedMap::default() });
    let router = router(vec![handle]);
    for path in ["/v1/ledger", "/v1/ledger?since=1h&revision=default/service/hello"] {
        let (status, body) = get_page(&router, path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let list: LedgerList = serde_json::from_slice(&body).expect("a list of ledgers");
        let [ledger] = &list.revisions[..] else { panic!("one revision: {list:?}") };
        assert_eq!((ledger.seconds, ledger.pod_seconds.idle, ledger.cold_starts.growth), (7, 7, 0));
        assert_eq!((ledger.what_if.len(), ledger.what_if[2].extra_pod_seconds), (6, 7));
        assert_eq!((list.currency, ledger.pod_price, ledger.cost), (None, None, None));
        assert!(ledger.advice.as_ref().is_some_and(|advice| advice.ends_with(": keep 0")), "{ledger:?}");
    }
}

/// The next event of a stream; `None` for its end.
async fn next_event(stream: &mut BodyDataStream) -> Option<ChangeEvent> {
    let bytes = stream.next().await?.expect("a stream of events does not fail");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let mut lines = text.lines();
    let id = lines.next().and_then(|line| line.strip_prefix("id: ")).expect("its number comes first");
    assert_eq!(lines.next(), Some("event: change"));
    let data = lines.next().and_then(|line| line.strip_prefix("data: ")).expect("one line of data");
    assert!(text.ends_with("\n\n") && lines.next() == Some(""), "{text:?}");
    let event: ChangeEvent = serde_json::from_str(data).expect("an event");
    assert!(id.ends_with(&format!("-{}", event.snapshot)), "{id}");
    Some(event)
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_everything_first_and_then_what_changed_until_no_loop_answers() {
    let clock = Clock::start();
    let (handle, writer, _checks) = standing_still("autoscaler", clock);
    let publish = |control: ControlSnapshot| {
        let (owner, asked) = (ReplicaName::new("autoscaler"), SharedMap::default());
        writer.publish(Snapshot { owner, at: clock.now(), control, asked, callers: SharedMap::default() });
    };
    let control: ControlSnapshot = [decided_revision()].into_iter().collect();
    publish(control.clone());
    let request = Request::builder().uri("/v1/stream").body(Body::empty()).expect("a request");
    let response = match router(vec![handle]).oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    assert_eq!(response.headers()[CONTENT_TYPE], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let first = next_event(&mut stream).await.expect("everything");
    assert_eq!((first.whole, first.revisions.len(), first.gone.len()), (true, 1, 0));
    // The same revision in a later snapshot is no news, and another one under its name is.
    publish(control);
    let waiting = tokio::time::timeout(Duration::from_secs(3), next_event(&mut stream)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    publish([decided_revision()].into_iter().collect());
    let second = next_event(&mut stream).await.expect("a change");
    assert_eq!((second.whole, second.revisions.len(), second.gone.len()), (false, 1, 0));
    assert!(second.snapshot > first.snapshot);
    publish(ControlSnapshot::default());
    let third = next_event(&mut stream).await.expect("a change");
    assert_eq!((third.revisions.len(), third.gone), (0, vec![second.revisions[0].name.clone()]));
    drop(writer);
    assert_eq!(next_event(&mut stream).await, None);
}

/// What a page does after that is drawing.
#[tokio::test(start_paused = true)]
async fn a_stream_tells_a_change_soon_enough_that_a_page_shows_it_within_a_second() {
    let clock = Clock::start();
    let (handle, writer, _checks) = standing_still("autoscaler", clock);
    let publish = |control: ControlSnapshot| {
        let (owner, asked) = (ReplicaName::new("autoscaler"), SharedMap::default());
        writer.publish(Snapshot { owner, at: clock.now(), control, asked, callers: SharedMap::default() });
    };
    publish([decided_revision()].into_iter().collect());
    let router = router(vec![handle]);
    let mut stream = stream_after(&router, None).await;
    next_event(&mut stream).await.expect("everything");
    // At each moment between two looks.
    for milliseconds in (0..1000).step_by(70) {
        let before = tokio::time::timeout(Duration::from_millis(milliseconds), next_event(&mut stream)).await;
        assert!(before.is_err(), "nothing has changed: {before:?}");
        let changed_at = clock.now();
        publish([decided_revision()].into_iter().collect());
        let event = next_event(&mut stream).await.expect("a change");
        let told_after = clock.now().saturating_since(changed_at) + NEWS_WITHIN;
        assert_eq!(event.revisions.len(), 1, "{milliseconds} ms");
        assert!(told_after <= Duration::from_millis(700), "{told_after:?} at {milliseconds} ms");
    }
}

/// A stream of a reader that has the event of this id, or none.
async fn stream_after(router: &Router, last: Option<&str>) -> BodyDataStream {
    let mut request = Request::builder().uri("/v1/stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let request = request.body(Body::empty()).expect("a request");
    let response = match router.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    response.into_body().into_data_stream()
}

/// The id of the next event of a stream, and the event.
async fn next_with_id(stream: &mut BodyDataStream) -> (String, ChangeEvent) {
    let bytes = stream.next().await.expect("an event").expect("a stream of events does not fail");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).expect("the field").to_owned();
    (field("id: "), serde_json::from_str(&field("data: ")).expect("an event"))
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_hears_of_each_change_since_then_once() {
    let clock = Clock::start();
    let (handle, writer, _checks) = standing_still("autoscaler", clock);
    let publish = |control: ControlSnapshot| {
        let (owner, asked) = (ReplicaName::new("autoscaler"), SharedMap::default());
        writer.publish(Snapshot { owner, at: clock.now(), control, asked, callers: SharedMap::default() });
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    // It was written at the beginning of time, so before any event.
    publish([decided_revision()].into_iter().collect());
    let router = router(vec![handle]);
    let (first, event) = next_with_id(&mut stream_after(&router, None).await).await;
    assert!(event.whole && event.names.is_none(), "{event:?}");
    let (again, event) = next_with_id(&mut stream_after(&router, Some(&first)).await).await;
    assert_eq!((event.whole, event.revisions.len()), (false, 0));
    assert_eq!(event.names.map(|names| names.len()), Some(1), "what is not named is gone");
    publish(ControlSnapshot::default());
    let (_, event) = next_with_id(&mut stream_after(&router, Some(&again)).await).await;
    assert_eq!((event.whole, event.names), (false, Some(Vec::new())));
    for stranger in ["12", "0011223344556677-12", "x-y", ""] {
        let (_, event) = next_with_id(&mut stream_after(&router, Some(stranger)).await).await;
        assert!(event.whole, "{stranger:?} is no event of this autoscaler's");
    }
}

/// What lies between a reader and us closes connections on which nothing moves.
#[tokio::test(start_paused = true)]
async fn a_stream_on_which_nothing_changes_has_a_comment_within_15_s() {
    let clock = Clock::start();
    let (handle, writer, _checks) = standing_still("autoscaler", clock);
    let mut stream = stream_after(&router(vec![handle]), None).await;
    next_event(&mut stream).await.expect("everything");
    let mut told = None;
    for _ in 0..15 {
        let (owner, asked) = (ReplicaName::new("autoscaler"), SharedMap::default());
        let (control, callers) = (ControlSnapshot::default(), SharedMap::default());
        writer.publish(Snapshot { owner, at: clock.now(), control, asked, callers });
        if let Ok(bytes) = tokio::time::timeout(Duration::from_secs(1), stream.next()).await {
            told = bytes;
            break;
        }
    }
    let told = told.expect("something within 15 s").expect("a stream of events does not fail");
    assert!(told.starts_with(b": ") && told.ends_with(b"\n\n"), "{told:?}");
}

#[test]
fn a_stream_has_a_place_beside_those_of_pages() {
    let kind = |path: &'static str| page_kind(&Uri::from_static(path));
    assert_eq!((kind("/v1/stream"), kind("/v1/stream?x=1")), (PageKind::LongRead, PageKind::LongRead));
    assert_eq!((kind("/v1/revisions"), kind("/ready")), (PageKind::Ordinary, PageKind::Probe));
}

#[tokio::test]
async fn a_record_is_listed_and_read_in_parts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, bytes) in [(7_u8, 5), (8, 3)] {
        let file = folder.path().join(format!("{number:08}.ebbrec"));
        std::fs::write(file, vec![number; bytes]).expect("the disk has room");
    }
    let clock = Clock::start();
    let (_writer, reader) = snapshots(ReplicaName::new("one"), clock);
    let (recorded, _checks) =
        ApiHandle::new(ReplicaName::new("one"), reader, RunRecordFolder::at(folder.path()));
    let (other, _other_writer, _other_checks) = standing_still("other", clock);
    let router = router(vec![recorded, other]);
    let (status, body) = get_page(&router, "/v1/record").await;
    let list: RecordList = serde_json::from_slice(&body).expect("a list");
    let [record] = list.records.as_slice() else { panic!("one has a record: {list:?}") };
    assert_eq!((status, record.autoscaler.as_str()), (StatusCode::OK, "one"));
    let segments = [(7, 5), (8, 3)].map(|(number, bytes)| SegmentView { number, bytes });
    assert_eq!(record.segments, segments);
    assert_eq!(get_page(&router, "/v1/record/one/7").await, (StatusCode::OK, vec![7; 5]));
    assert_eq!(get_page(&router, "/v1/record/one/7?from=3").await, (StatusCode::OK, vec![7; 2]));
    assert_eq!(get_page(&router, "/v1/record/one/8?from=3").await, (StatusCode::OK, Vec::new()));
    for (path, status, problem) in [
        ("/v1/record/one/6", StatusCode::NOT_FOUND, "the record has no segment 6 any more"),
        ("/v1/record/other/7", StatusCode::NOT_FOUND, "autoscaler \"other\" has no record here"),
        ("/v1/record/one/..%2Fsecret", StatusCode::BAD_REQUEST, "both are whole numbers"),
        ("/v1/record/one/7?from=-1", StatusCode::BAD_REQUEST, "both are whole numbers"),
    ] {
        let (found, body) = get_page(&router, path).await;
        let error: ApiError = serde_json::from_slice(&body).expect("an error");
        assert!(found == status && error.error.contains(problem), "{path}: {found} {}", error.error);
    }
}
