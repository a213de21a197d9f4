//! Clients that end their sending side behind a whole request, as `nc -N` and `socat` do, and clients that
//! are closed, which look the same until their kernel has forgotten the socket.

use std::sync::Arc;
use std::time::Duration;

use tests::Ebb;
use tokio::task::JoinSet;

use crate::protocols::client::RawClient;
use crate::protocols::world::{ROUTINGS, Routing, cold, warm};

/// No place outlives its client by more than this.
const PLACE_OUTLIVES_MAX: Duration = Duration::from_secs(90);

fn get(routing: Routing, path: &str, version: &str) -> String {
    format!("GET {path} HTTP/{version}\r\nHost: {}\r\n\r\n", routing.host())
}

/// What comes back until the connection ends in order.
async fn ask(ebb: &Ebb, request: &str) -> String {
    let mut client = RawClient::connect(ebb).await;
    client.write(request).await;
    client.end_sending().await;
    client.read_to_close().await.unwrap_or_else(|begun| panic!("{request:?} was reset behind {begun:?}"))
}

#[tokio::test]
async fn a_client_that_ends_its_sending_side_is_answered() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        for version in ["1.1", "1.0"] {
            for path in ["/", "/?sleep=300"] {
                let answer = ask(&ebb, &get(routing, path, version)).await;
                assert!(answer.contains(" 200 OK\r\n") && answer.ends_with("ok\n"), "{routing:?}: {answer}");
            }
        }
        let host = routing.host();
        let post = format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello");
        let answer = ask(&ebb, &(get(routing, "/", "1.1") + &post)).await;
        assert_eq!(answer.matches(" 200 OK\r\n").count(), 2, "{routing:?}: {answer}");
        assert!(answer.ends_with("hello"), "{routing:?}: {answer}");
    }
}

#[tokio::test]
async fn a_request_of_a_half_closed_client_wakes_a_pod_and_is_answered_by_it() {
    let ebb = cold(|service| service.args(&["--start-delay-ms", "1000"])).await;
    for routing in ROUTINGS {
        let answer = ask(&ebb, &get(routing, "/", "1.1")).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok\n"),
            "{routing:?}: {answer}"
        );
    }
}

/// One client waits for a pod, one for a slot, one for the head of its response, one for the next piece of a
/// stream. Each holds a place that no other one can have.
#[tokio::test]
async fn no_place_outlives_a_closed_client_by_more_than_90_seconds() {
    let ebb = Arc::new(warm(|service| service.spec("containerConcurrency: 2")).await);
    // Its pods are not ready before the test is over.
    let starting = Arc::new(cold(|service| service.args(&["--start-delay-ms", "600000"])).await);
    let mut closed = JoinSet::new();
    for routing in ROUTINGS {
        let (ebb, starting) = (Arc::clone(&ebb), Arc::clone(&starting));
        closed.spawn(async move { close_at_each_place(&ebb, routing).await });
        closed.spawn(async move { close_while_held_at_zero(&starting, routing).await });
    }
    while let Some(done) = closed.join_next().await {
        done.expect("every place is free in time");
    }
}

async fn close_at_each_place(ebb: &Ebb, routing: Routing) {
    let mut streaming = RawClient::connect(ebb).await;
    streaming.write(&get(routing, "/events?stream=quiet&first=begun", "1.1")).await;
    streaming.read_head().await;
    streaming.read_until("data: begun\n\n\r\n").await;
    let mut in_app = RawClient::connect(ebb).await;
    in_app.write(&get(routing, "/?sleep=600000", "1.1")).await;
    until_places_are(ebb, routing, (2.0, 0.0)).await;
    let mut waiting = RawClient::connect(ebb).await;
    waiting.write(&get(routing, "/?sleep=600000", "1.1")).await;
    until_places_are(ebb, routing, (2.0, 1.0)).await;
    drop((streaming, in_app, waiting));
    until_places_are(ebb, routing, (0.0, 0.0)).await;
}

async fn close_while_held_at_zero(ebb: &Ebb, routing: Routing) {
    let mut held = RawClient::connect(ebb).await;
    held.write(&get(routing, "/", "1.1")).await;
    until_places_are(ebb, routing, (0.0, 1.0)).await;
    drop(held);
    until_places_are(ebb, routing, (0.0, 0.0)).await;
}

/// Waits until so many requests are in the app, and so many wait for a slot in the activator or in the pod.
async fn until_places_are(ebb: &Ebb, routing: Routing, (in_app, waiting): (f64, f64)) {
    let what = format!("{in_app} in the app, {waiting} wait");
    ebb.until_within(routing.service(), &what, PLACE_OUTLIVES_MAX, |revision| {
        let pods = revision.pods();
        let of_pods = |name: &str| pods.iter().filter_map(|pod| pod[name].as_f64()).sum::<f64>();
        // Those in pods, where they are in flight too, and those in activators, of which no pod knows.
        let all_waiting = revision.0["waiting"].as_f64().unwrap_or_default();
        let in_activators = all_waiting - of_pods("queued");
        let is_near = |one: f64, other: f64| (one - other).abs() < 0.01;
        is_near(all_waiting, waiting) && is_near(of_pods("in_flight") + in_activators, in_app + waiting)
    })
    .await;
}
