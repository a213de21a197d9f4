//! The drain vectors of family P, as we do it: a drain says so, finishes what it holds, and ends as soon as
//! no client needs the pod.

use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use queue_proxy::ProcessEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vocabulary::{Departure, PodState};

use crate::world::{App, HOP_KEY, Proxy, ask, eventually, http2, parse, read_until, run, text};

/// An app that answers when it is told to.
async fn gated_app() -> (App, std::rc::Rc<tokio::sync::Notify>) {
    let gate = std::rc::Rc::new(tokio::sync::Notify::new());
    let opened = std::rc::Rc::clone(&gate);
    let app = App::start(move |_| {
        let opened = std::rc::Rc::clone(&opened);
        Box::pin(async move {
            opened.notified().await;
            text(200, "done")
        })
    })
    .await;
    (app, gate)
}

#[test]
fn p15_an_idle_pod_leaves_at_once_and_says_so() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        proxy.leaving.cancel();
        loop {
            if let vocabulary::PodWord::State { state, .. } = proxy.heard().await {
                assert_eq!(state, PodState::Draining);
                break;
            }
        }
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained, "L7: without Knative's 30 s");
    });
}

#[test]
fn p10_p11_l8_a_draining_pod_serves_and_closes_connections_as_they_are_answered() {
    run(async {
        let (app, gate) = gated_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut held = proxy.connect().await;
        held.write_all(b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        eventually("it runs", || app.state.running.get() == 1).await;
        proxy.leaving.cancel();
        let probe = [("User-Agent", "kube-probe/1"), ("K-Network-Probe", "queue")];
        let mut probed = ask(proxy.ports.admin, "GET", "/", &probe, b"").await;
        while probed.status == 200 {
            probed = ask(proxy.ports.admin, "GET", "/", &probe, b"").await;
        }
        assert_eq!((probed.status, probed.body.as_str()), (503, "shutting down\n"), "P10");
        let ready = ask(proxy.ports.admin, "GET", "/ready", &probe[..1], b"").await;
        assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"), "it serves what still comes");
        // P11: still served, on a new connection too.
        let late = async {
            eventually("both run", || app.state.running.get() == 2).await;
            gate.notify_waiters();
        };
        let (answer, ()) = tokio::join!(proxy.get("/2", &[]), late);
        assert_eq!((answer.status, answer.header("connection")), (200, "close"));
        let first = parse(read_until(&mut held, "done").await.as_bytes(), true);
        assert_eq!((first.status, first.header("connection")), (200, "close"), "L8");
        assert_eq!(held.read(&mut [0]).await.expect("a clean end"), 0);
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

#[test]
fn l9_an_http2_connection_is_told_and_its_streams_complete() {
    run(async {
        let (app, gate) = gated_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut sender = http2(proxy.ports.requests).await;
        let request = || {
            let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
            Request::get("http://h/").body(body).expect("legal")
        };
        let answering = tokio::task::spawn_local(sender.send_request(request()));
        eventually("it runs", || app.state.running.get() == 1).await;
        proxy.leaving.cancel();
        // Who was told sends nothing new on this connection.
        loop {
            let another = sender.send_request(request());
            if let Ok(refused) = tokio::time::timeout(Duration::from_millis(50), another).await {
                assert!(refused.is_err());
                break;
            }
        }
        gate.notify_waiters();
        let response = answering.await.expect("no panic").expect("an answer");
        assert_eq!(response.into_body().collect().await.expect("whole").to_bytes(), "done");
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

#[test]
fn a_connection_of_an_activator_is_not_closed_under_its_hands() {
    run(async {
        let app = App::hello().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut hop = proxy.connect().await;
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nEbb-Hop-Key: {HOP_KEY}\r\n\r\n");
        hop.write_all(request.as_bytes()).await.expect("open");
        read_until(&mut hop, "hello").await;
        proxy.leaving.cancel();
        let idle = tokio::time::timeout(Duration::from_millis(300), hop.read(&mut [0])).await;
        assert!(idle.is_err(), "the idle connection stays open");
        hop.write_all(request.as_bytes()).await.expect("open");
        let answer = parse(read_until(&mut hop, "hello").await.as_bytes(), true);
        assert_eq!((answer.status, answer.header("connection")), (200, "close"));
        drop(hop);
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

/// P16 and L6: the app is kept until its last request has ended.
#[test]
fn l6_wait_for_drain_answers_when_the_last_request_has_ended() {
    run(async {
        let (app, gate) = gated_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let running = proxy.get("/", &[]);
        let draining = async {
            eventually("it runs", || app.state.running.get() == 1).await;
            proxy.leaving.cancel();
            let mut waiting = Box::pin(ask(proxy.ports.admin, "GET", "/wait-for-drain", &[], b""));
            let early = tokio::time::timeout(Duration::from_millis(1300), &mut waiting).await;
            assert!(early.is_err(), "a request still runs");
            gate.notify_waiters();
            waiting.await.status
        };
        let (answer, waited) = tokio::join!(running, draining);
        assert_eq!((answer.status, waited), (200, 200));
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

/// P17: a stream without an end is cut at the drain limit (`a_platform_that_leaves_less_time_is_heeded` shows
/// that it is cut); until then it is waited for.
#[test]
fn l9_an_open_websocket_is_waited_for() {
    run(async {
        let app = crate::protocols::echo_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let mut stream = crate::protocols::upgraded(&proxy).await;
        proxy.leaving.cancel();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!proxy.ended.is_finished());
        stream.write_all(b"still here").await.expect("open");
        read_until(&mut stream, "still here").await;
        drop(stream);
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}

/// The drain limit is 345 s here. The platform leaves 4 s, of which the app claims 30: requests have half.
#[test]
fn a_platform_that_leaves_less_time_is_heeded() {
    run(async {
        let (app, _gate) = gated_app().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let mut held = proxy.connect().await;
        held.write_all(b"GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await.expect("open");
        eventually("it runs", || app.state.running.get() == 1).await;
        proxy.departs(Departure::Leaving { within: Duration::from_secs(4) }).await;
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained, "though a request still ran");
        assert_eq!(app.state.running.get(), 1);
    });
}

/// Routers may name it until the owner says otherwise, which is awaited for 30 s here.
#[test]
fn connections_are_accepted_until_the_owner_says_that_nobody_is_told_of_the_pod() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[("EBB_DRAIN_LINGER", "30s")]).await;
        let began_at = proxy.clock.now();
        proxy.departs(Departure::Leaving { within: Duration::from_secs(600) }).await;
        loop {
            if let vocabulary::PodWord::State { state: PodState::Draining, .. } = proxy.heard().await {
                break;
            }
        }
        assert_eq!(proxy.get("/", &[]).await.status, 200);
        proxy.departs(Departure::Released).await;
        assert_eq!(proxy.get("/", &[]).await.status, 200, "nodes may still send here");
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
        let took = proxy.clock.now().saturating_since(began_at);
        let [nodes, word] = [5, 30].map(Duration::from_secs);
        assert!(
            took >= nodes && took < word,
            "{took:?}: nodes have time to hear of it, and nobody waits for a word that came"
        );
    });
}

#[test]
fn an_app_that_fails_its_liveness_probe_ends_the_process() {
    run(async {
        let app = App::hello().await;
        let probe = r#"{"exec":{"command":["false"]},"periodSeconds":1,"failureThreshold":1}"#;
        let proxy = Proxy::start(app.port, &[("EBB_LIVENESS_PROBE", probe)]).await;
        let ended = proxy.ended.await.expect("no panic");
        assert!(
            matches!(ended, ProcessEnd::Unhealthy(queue_proxy::AppFailure::Liveness { failures: 1, .. })),
            "{ended:?}"
        );
    });
}

/// The process ends when the last of them has its answer, and waits for nothing else.
#[test]
fn everybody_who_waits_for_the_end_of_the_drain_hears_of_it() {
    run(async {
        let (app, gate) = gated_app().await;
        let proxy = Proxy::start(app.port, &[]).await;
        let running = proxy.get("/", &[]);
        let asking = async {
            eventually("it runs", || app.state.running.get() == 1).await;
            proxy.leaving.cancel();
            // As many as may wait at once.
            let waiting = (0..16).map(|_| ask(proxy.ports.admin, "GET", "/wait-for-drain", &[], b""));
            let ending = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                gate.notify_waiters();
            };
            let (waited, ()) = tokio::join!(futures_util::future::join_all(waiting), ending);
            waited.into_iter().map(|answer| answer.status).collect::<Vec<_>>()
        };
        let (answer, waited) = tokio::join!(running, asking);
        assert_eq!((answer.status, waited), (200, vec![200; 16]));
        assert_eq!(proxy.ended.await.expect("no panic"), ProcessEnd::Drained);
    });
}
