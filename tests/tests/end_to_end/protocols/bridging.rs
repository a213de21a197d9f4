//! A client and an app need not speak the same protocol: the name of the app's port says what it speaks
//! (`http1`, `h2c`), and where it is not declared, it is found out.

use http::{HeaderMap, Method};
use hyper::body::Frame;
use tests::{Ebb, Service};

use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, channel, empty, get};
use crate::protocols::world::{ROUTINGS, warm};

/// An app that speaks nothing but `spoken`, behind a port of this name.
pub(crate) fn app(service: Service, spoken: &str, port_name: &str) -> Service {
    let service = service.args(&["--only", spoken]);
    if port_name.is_empty() { service } else { service.container(&format!("ports: [{{name: {port_name}}}]")) }
}

/// A body and trailers, in both directions.
async fn exchange(ebb: &Ebb, protocol: Protocol, host: &str) -> Answer {
    let mut client = Client::connect(ebb, protocol).await;
    let (sender, body) = channel();
    let mut request = protocol.request(Method::POST, host, "/stream", body);
    for (name, value) in [("te", "trailers"), ("trailer", "x-sent"), ("content-type", "application/grpc")] {
        request.headers_mut().insert(name, value.parse().expect("legal"));
    }
    let sending = async {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sent", "checksum".parse().expect("legal"));
        sender.send(Frame::data("hello".into())).await.expect("the request goes on");
        sender.send(Frame::trailers(trailers)).await.expect("the request goes on");
        drop(sender);
    };
    let (response, ()) = tokio::join!(client.send(request), sending);
    Answer::read(response.expect("there is a response")).await
}

#[tokio::test]
async fn bodies_and_trailers_pass_between_clients_and_apps_of_different_protocols() {
    for (spoken, version) in [("http1", "HTTP/1.1"), ("h2c", "HTTP/2.0")] {
        let ebb = warm(|service| app(service, spoken, spoken)).await;
        for routing in ROUTINGS {
            for protocol in PROTOCOLS {
                let answer = exchange(&ebb, protocol, &routing.host()).await;
                let what = format!("{protocol:?}, {spoken}, {routing:?}: {answer:?}");
                assert_eq!((answer.status, answer.text().as_str()), (200, "hello"), "{what}");
                assert_eq!(answer.header("x-version"), version, "{what}");
                for (name, value) in [("grpc-status", "0"), ("x-echoed", "checksum")] {
                    assert_eq!(
                        answer.trailers.get(name).map(http::HeaderValue::as_bytes),
                        Some(value.as_bytes()),
                        "{what}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn an_app_of_which_nobody_says_what_it_speaks_is_asked_as_it_can_answer() {
    let ebb = warm(|service| app(service, "http1", "")).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            for _ in 0..3 {
                let mut client = Client::connect(&ebb, protocol).await;
                let mut request = protocol.request(Method::POST, &routing.host(), "/", empty());
                request.headers_mut().append("cookie", "a=1".parse().expect("legal"));
                request.headers_mut().append("cookie", "b=2".parse().expect("legal"));
                let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
                assert_eq!(answer.status, 200, "{protocol:?}, {routing:?}: {answer:?}");
                assert_eq!(answer.header("x-version"), "HTTP/1.1", "{protocol:?}, {routing:?}");
                // What came divided over HTTP/2 is one line over HTTP/1.1.
                let lines = if protocol == Protocol::Http2 { "1" } else { "2" };
                assert_eq!(answer.header("x-cookies"), lines, "{protocol:?}, {routing:?}");
            }
        }
    }
    // One that speaks both answers each client in its own.
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        for (protocol, version) in [(Protocol::Http1, "HTTP/1.1"), (Protocol::Http2, "HTTP/2.0")] {
            let answer = get(&ebb, protocol, &routing.host(), "/").await;
            assert_eq!(answer.header("x-version"), version, "{routing:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn an_app_that_does_not_speak_what_its_port_says_is_named() {
    let ebb = warm(|service| app(service, "http1", "h2c")).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let answer = get(&ebb, protocol, &routing.host(), "/").await;
            assert_eq!((answer.status, answer.reason()), (502, "upstream-reset"), "{answer:?}");
            assert!(
                answer.text().starts_with("the app does not speak HTTP/2"),
                "{protocol:?}, {routing:?}: {answer:?}"
            );
        }
    }
    let ebb = warm(|service| app(service, "h2c", "http1")).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let answer = get(&ebb, protocol, &routing.host(), "/").await;
            assert_eq!((answer.status, answer.reason()), (502, "upstream-reset"), "{answer:?}");
            assert!(answer.text().contains("name its port h2c"), "{protocol:?}, {routing:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn an_app_that_speaks_http_2_alone_is_probed_in_it() {
    let probe = "readinessProbe:\n  httpGet:\n    path: /ready";
    let ebb = warm(|service| app(service, "h2c", "h2c").container(probe)).await;
    let answer = get(&ebb, Protocol::Http1, &ROUTINGS[0].host(), "/").await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ok\n"), "{answer:?}");
}
