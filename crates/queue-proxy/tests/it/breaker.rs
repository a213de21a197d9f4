//! The family B: how many requests run, wait, and are refused.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::BodyExt;

use crate::world::{App, HOP_KEY, Proxy, eventually, http2, metric, run, text};

/// More than a stream's window.
const UPLOAD_BYTES: usize = 200_000;

/// An app that takes its time.
async fn slow_app(milliseconds: u64) -> App {
    App::start(move |_| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            text(200, "done")
        })
    })
    .await
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|seen| **seen == status).count()
}

#[test]
fn b1_b3_at_concurrency_1_ten_wait_and_the_rest_is_refused() {
    run(async {
        for (id, parallel, refused) in [("B1", 15, 4), ("B3", 13, 2)] {
            let app = slow_app(50).await;
            let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
            let answers = join_all((0..parallel).map(|_| proxy.get("/", &[]))).await;
            let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
            assert_eq!((count(&statuses, 200), count(&statuses, 503)), (11, refused), "{id}");
            let refusal = answers.iter().find(|answer| answer.status == 503).expect("some");
            assert_eq!(refusal.body, "pending request queue full\n", "{id}");
            assert_eq!((refusal.reason(), refusal.header("retry-after")), ("queue-full", "1"), "L50");
            let detail = refusal.header("ebb-error");
            assert!(
                detail.contains("1 request runs (containerConcurrency) and no more than 10 may wait"),
                "{detail}"
            );
            assert_eq!((app.state.running_max.get(), app.state.seen.get()), (1, 11), "{id}");
        }
    });
}

#[test]
fn b2_the_same_over_http2() {
    run(async {
        let app = slow_app(50).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        let sender = http2(proxy.ports.requests).await;
        let answers = join_all((0..15).map(|_| {
            let mut sender = sender.clone();
            async move {
                let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
                let request = Request::get("http://h/").body(body).expect("legal");
                sender.send_request(request).await.expect("an answer").status().as_u16()
            }
        }))
        .await;
        assert_eq!((count(&answers, 200), count(&answers, 503)), (11, 4));
        assert_eq!(app.state.running_max.get(), 1);
    });
}

/// The beginnings of forty uploads are more than a connection's window is elsewhere; those that run must not
/// lack what those that wait hold.
#[test]
fn uploads_that_wait_take_nothing_from_those_that_run() {
    run(async {
        let app = App::start(|request| {
            Box::pin(async {
                let body = request.into_body().collect().await.expect("whole").to_bytes();
                assert_eq!(body.len(), UPLOAD_BYTES);
                text(200, "done")
            })
        })
        .await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "5")]).await;
        let sender = http2(proxy.ports.requests).await;
        let answers = join_all((0..40).map(|_| {
            let mut sender = sender.clone();
            async move {
                let body = http_body_util::Full::new(Bytes::from(vec![b'x'; UPLOAD_BYTES]));
                let body = body.map_err(|never| match never {}).boxed_unsync();
                let request = Request::post("http://h/").body(body).expect("legal");
                sender.send_request(request).await.expect("an answer").status().as_u16()
            }
        }))
        .await;
        assert_eq!((count(&answers, 200), app.state.running_max.get()), (40, 5));
    });
}

#[test]
fn b4_at_concurrency_10_the_111th_is_refused() {
    run(async {
        let app = slow_app(100).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "10")]).await;
        let answers = join_all((0..111).map(|_| proxy.get("/", &[]))).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!((count(&statuses, 200), count(&statuses, 503)), (110, 1));
        assert_eq!(app.state.running_max.get(), 10);
    });
}

#[test]
fn b5_without_a_limit_all_run_at_once() {
    run(async {
        let app = slow_app(300).await;
        let proxy = Proxy::start(app.port, &[]).await;
        let answers = join_all((0..100).map(|_| proxy.get("/", &[]))).await;
        assert!(answers.iter().all(|answer| answer.status == 200));
        assert_eq!(app.state.running_max.get(), 100);
    });
}

#[test]
fn an_impatient_request_of_a_hop_runs_at_once_or_is_handed_back() {
    run(async {
        let app = slow_app(200).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        let hop = [("Ebb-Hop-Key", HOP_KEY), ("Ebb-No-Queue", "1")];
        let first = proxy.get("/", &hop);
        let second = async {
            eventually("the first runs", || app.state.running.get() == 1).await;
            proxy.get("/", &hop).await
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.status, second.status), (200, 503));
        assert_eq!((second.reason(), second.header("ebb-not-started")), ("queue-full", "1"));
        assert_eq!(app.state.saw("ebb-no-queue"), "-");
    });
}

#[test]
fn a_client_that_leaves_the_queue_or_the_app_frees_its_place() {
    run(async {
        let app = slow_app(60_000).await;
        let proxy = Proxy::start(app.port, &[("CONTAINER_CONCURRENCY", "1")]).await;
        let mut running = Box::pin(proxy.get("/", &[]));
        let mut waiting = Box::pin(proxy.get("/", &[]));
        tokio::select! {
            _ = &mut running => panic!("the app takes a minute"),
            () = eventually("the first runs", || app.state.running.get() == 1) => {}
        }
        let is_waiting = async { while metric(&proxy, "queue_proxy_waiting_requests").await != "1" {} };
        tokio::select! {
            _ = &mut waiting => panic!("the app has one slot"),
            () = is_waiting => {}
        }
        drop(waiting);
        // The place of the first may be given to the second until its end is noticed.
        while metric(&proxy, "queue_proxy_waiting_requests").await != "0" {}
        drop(running);
        eventually("the app's connection is closed", || app.state.running.get() == 0).await;
        let next = proxy.get("/", &[]);
        tokio::select! {
            _ = next => panic!("the app takes a minute"),
            () = eventually("the next runs", || app.state.running.get() == 1) => {}
        }
        assert_eq!(app.state.seen.get(), 2, "who left the queue never reached the app");
    });
}
