//! Answers of the API while no loop turns: what was published is read without it.

use axum::body::Body;
use axum::http::Request;
use orchestration::ControlSnapshot;
use runtime::Clock;
use tower::ServiceExt;
use vocabulary::SharedMap;

use super::*;
use crate::api_types::RevisionList;
use crate::snapshot::{SnapshotWriter, snapshots};

/// An autoscaler whose loop has published that it knows nothing, and stands still since.
fn standing_still(name: &str, clock: Clock) -> (ApiHandle, SnapshotWriter, mpsc::Receiver<HealthCheck>) {
    let (writer, reader) = snapshots(ReplicaName::new(name), clock);
    let (handle, checks) = ApiHandle::new(ReplicaName::new(name), reader);
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
    writer.publish(Snapshot { owner: ReplicaName::new("other"), at: clock.now(), control, asked });
    assert_eq!(unanswered().await, ["hanging"]);
    let (status, _) = get_page(&router, "/v1/revisions/default/service/none").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "the one that hangs may decide about it");
}
