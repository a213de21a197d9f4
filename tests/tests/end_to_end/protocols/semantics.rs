//! The corners of HTTP/1: answers without a body, and clients that know no chunks.

use http::Method;

use crate::protocols::client::{Answer, Client, PROTOCOLS, RawClient, empty};
use crate::protocols::world::{ROUTINGS, warm};

#[tokio::test]
async fn an_answer_to_head_has_the_length_and_not_the_body() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let mut client = Client::connect(&ebb, protocol).await;
            let request = protocol.request(Method::HEAD, &routing.host(), "/", empty());
            let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
            assert_eq!(
                (answer.status, answer.header("content-length")),
                (200, "3"),
                "{routing:?} {protocol:?}"
            );
            assert!(answer.body.is_empty(), "{routing:?} {protocol:?}");
            // Nothing of it is left on the connection.
            let again = Answer::read(client.get(&routing.host(), "/").await).await;
            assert_eq!(again.text(), "ok\n", "{routing:?} {protocol:?}");
        }
    }
}

/// A body without a length ends with the connection for a client of HTTP/1.0, and one that breaks off must
/// not look like that.
#[tokio::test]
async fn an_http_1_0_client_gets_what_has_no_length_and_sees_when_it_breaks_off() {
    let ebb = warm(|service| service.spec("timeoutSeconds: 2")).await;
    for routing in ROUTINGS {
        let host = routing.host();
        let mut client = RawClient::connect(&ebb).await;
        client
            .write(&format!("POST /stream HTTP/1.0\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello"))
            .await;
        let head = client.read_head().await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.0 200 "), "{routing:?}: {head}");
        assert!(!head.contains("transfer-encoding"), "{routing:?}: {head}");
        assert_eq!(client.read_to_close().await.expect("it closes in order"), "hello", "{routing:?}");

        let mut client = RawClient::connect(&ebb).await;
        client.write(&format!("GET /events?stream=old&first=begun HTTP/1.0\r\nHost: {host}\r\n\r\n")).await;
        client.read_head().await;
        let broken = client.read_to_close().await;
        assert!(broken.is_err(), "{routing:?}: it looks whole: {broken:?}");
    }
}
