//! The three timers of a revision: each names itself, and what had begun breaks off visibly.

use futures_util::StreamExt;
use http::Method;
use http_body_util::BodyExt;
use tests::Ebb;
use tokio_tungstenite::tungstenite::Message;

use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, empty, get, next_data};
use crate::protocols::websocket;
use crate::protocols::world::{ROUTINGS, warm, within};

/// A request that takes far longer than any limit here.
const SLOW: &str = "/?sleep=60000";

async fn assert_names_itself(ebb: &Ebb, reason: &str, setting: &str) {
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let answer = get(ebb, protocol, &routing.host(), SLOW).await;
            assert_eq!((answer.status, answer.reason()), (504, reason), "{routing:?} {protocol:?}");
            assert!(answer.header("ebb-error").contains(setting), "{routing:?} {protocol:?}: {answer:?}");
        }
    }
}

async fn assert_breaks_off(ebb: &Ebb) {
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let mut client = Client::connect(ebb, protocol).await;
            let mut response =
                client.get(&routing.host(), &format!("/events?stream={protocol:?}&first=begun")).await;
            assert_eq!(response.status(), 200);
            assert_eq!(next_data(response.body_mut()).await, "data: begun\n\n");
            let rest = within("the end of the response", response.body_mut().frame()).await;
            assert!(matches!(rest, Some(Err(_))), "{routing:?} {protocol:?}: it looks whole: {rest:?}");
        }
    }
}

/// A WebSocket that says nothing is closed by the limits that still hold for it.
async fn assert_closes_a_websocket(ebb: &Ebb) {
    for routing in ROUTINGS {
        let mut socket = websocket::connect(ebb, &routing.host()).await;
        websocket::expect_echo(&mut socket, Message::text("begun")).await;
        let end = within("the end of the socket", socket.next()).await;
        assert!(end.is_none_or(|end| end.is_err()), "{routing:?}");
    }
}

#[tokio::test]
async fn the_limit_of_a_whole_request() {
    let ebb = warm(|service| service.spec("timeoutSeconds: 1")).await;
    tokio::join!(
        assert_names_itself(&ebb, "request-timeout", "timeoutSeconds"),
        assert_breaks_off(&ebb),
        assert_closes_a_websocket(&ebb)
    );
    for routing in ROUTINGS {
        let mut client = Client::connect(&ebb, Protocol::Http2).await;
        let mut request = Protocol::Http2.request(Method::POST, &routing.host(), SLOW, empty());
        request.headers_mut().insert("content-type", "application/grpc".parse().expect("legal"));
        let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
        assert_eq!((answer.status, answer.header("grpc-status")), (200, "4"), "{routing:?}");
        assert_eq!(answer.reason(), "request-timeout", "{routing:?}");
    }
}

#[tokio::test]
async fn the_limit_for_the_start_of_a_response() {
    let ebb = warm(|service| service.spec("responseStartTimeoutSeconds: 1")).await;
    assert_names_itself(&ebb, "response-start-timeout", "responseStartTimeoutSeconds").await;
}

#[tokio::test]
async fn the_limit_of_silence() {
    let ebb = warm(|service| service.spec("idleTimeoutSeconds: 1")).await;
    tokio::join!(
        assert_names_itself(&ebb, "idle-timeout", "idleTimeoutSeconds"),
        assert_breaks_off(&ebb),
        assert_closes_a_websocket(&ebb)
    );
}
