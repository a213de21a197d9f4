//! Clients that end their sending side behind a whole request, as `nc -N` and `socat` do, and clients that
//! are closed, which look the same until their kernel has forgotten the socket.

use tests::Ebb;

use crate::client::RawClient;
use crate::world::{ROUTINGS, Routing, cold, warm};

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
