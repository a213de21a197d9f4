//! Trailers of HTTP/1.1, and bodies that flow both ways within one exchange.

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use hyper::body::Frame;

use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, RawClient, channel, expect_data};
use crate::protocols::world::{ROUTINGS, warm, within};

#[tokio::test]
async fn announced_trailers_pass_in_both_directions() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let mut client = Client::connect(&ebb, protocol).await;
            let (sender, body) = channel();
            let mut request = protocol.request(Method::POST, &routing.host(), "/stream", body);
            request.headers_mut().insert("te", "trailers".parse().expect("legal"));
            request.headers_mut().insert("trailer", "x-sent".parse().expect("legal"));
            let sending = async {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sent", "checksum".parse().expect("legal"));
                sender.send(Frame::data("hello".into())).await.expect("the request goes on");
                sender.send(Frame::trailers(trailers)).await.expect("the request goes on");
                drop(sender);
            };
            let (response, ()) = tokio::join!(client.send(request), sending);
            let answer = Answer::read(response.expect("there is a response")).await;
            assert_eq!(answer.text(), "hello");
            let seen = |name: &str| answer.trailers.get(name).map(|value| value.to_str().expect("ASCII"));
            assert_eq!(seen("grpc-status"), Some("0"), "{routing:?} {protocol:?}: {answer:?}");
            assert_eq!(seen("x-echoed"), Some("checksum"), "{routing:?} {protocol:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn trailers_on_the_wire_are_announced_and_follow_the_last_chunk() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let mut client = RawClient::connect(&ebb).await;
        let host = routing.host();
        client
            .write(&format!(
                "GET /trailers HTTP/1.1\r\nHost: {host}\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n"
            ))
            .await;
        let head = client.read_head().await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("\r\ntrailer: x-checksum\r\n"), "{routing:?}: {head}");
        let rest = client.read_rest().await.to_ascii_lowercase();
        assert_eq!(rest, "5\r\nhello\r\n0\r\nx-checksum: 5d41402a\r\n\r\n", "{routing:?}");
    }
}

/// One POST in which the app answers each chunk before the client sends the next (vector H29, without a
/// switch).
#[tokio::test]
async fn one_exchange_flows_both_ways_in_lock_step() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        let mut client = Client::connect(&ebb, Protocol::Http1).await;
        let (sender, body) = channel();
        let mut response = client.post(&routing.host(), "/stream", body).await;
        for chunk in ["one", "two", "three"] {
            sender.send(Frame::data(Bytes::from(chunk))).await.expect("the request goes on");
            expect_data(response.body_mut(), chunk.as_bytes()).await;
        }
        drop(sender);
        let rest = within("the end", response.into_body().collect()).await;
        let rest = rest.expect("the exchange ends cleanly").to_bytes();
        assert!(rest.is_empty(), "{routing:?}: {rest:?}");
    }
}
