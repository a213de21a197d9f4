//! What a client is told when no app answers.

use http::Method;

use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, RawClient, empty, get};
use crate::protocols::world::{ROUTINGS, cold, warm};

#[tokio::test]
async fn a_host_that_nobody_serves_is_named_unknown() {
    let ebb = warm(|service| service).await;
    for protocol in PROTOCOLS {
        let answer = get(&ebb, protocol, "nobody.default.example.com", "/").await;
        assert_eq!((answer.status, answer.reason()), (404, "no-such-revision"), "{protocol:?}");
        assert!(answer.header("ebb-error").contains("detail=\""), "{protocol:?}: {answer:?}");
        assert_eq!(answer.text().lines().count(), 1, "{protocol:?}: one line of text: {answer:?}");
    }
    // Case, port and a final dot do not make another host.
    for host in
        ["THROUGH.default.example.com", "through.default.example.com:8080", "through.default.example.com."]
    {
        assert_eq!(get(&ebb, Protocol::Http1, host, "/").await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_grpc_client_is_refused_in_its_own_words() {
    let ebb = warm(|service| service).await;
    let mut client = Client::connect(&ebb, Protocol::Http2).await;
    let mut request = Protocol::Http2.request(Method::POST, "nobody.default.example.com", "/a.B/C", empty());
    request.headers_mut().insert("content-type", "application/grpc+proto".parse().expect("legal"));
    let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
    assert_eq!((answer.status, answer.header("grpc-status")), (200, "14"));
    assert_eq!(answer.reason(), "no-such-revision");
    assert!(answer.header("grpc-message").starts_with("no-such-revision: "), "{answer:?}");
}

/// Vector H25 but for the status of CONNECT, and a request that names no host.
#[tokio::test]
async fn connect_and_a_request_without_a_host_are_refused() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        let host = routing.host();
        for (request, status) in [
            (format!("CONNECT {host}:80 HTTP/1.1\r\nHost: {host}\r\n\r\n"), "405"),
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), "400"),
        ] {
            let mut client = RawClient::connect(&ebb).await;
            client.write(&request).await;
            let seen = client.read_rest().await;
            assert!(seen.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {seen}");
            assert!(seen.contains("\r\nebb-error: bad-request"), "{request}: {seen}");
        }
    }
}

/// Who waits for a pod to the end of its time is told so, and what the revision waits for.
#[tokio::test]
async fn a_request_that_no_pod_took_in_time_says_what_it_waited_for() {
    let ebb = cold(|service| service.args(&["--start-delay-ms", "60000"]).spec("timeoutSeconds: 1")).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let answer = get(&ebb, protocol, &routing.host(), "/").await;
            assert_eq!((answer.status, answer.reason()), (504, "no-ready-pod"), "{routing:?} {protocol:?}");
            let detail = answer.header("ebb-error");
            assert!(detail.contains("timeoutSeconds") && detail.contains("pod"), "{routing:?}: {detail}");
        }
    }
}

/// An app that dies with a request in its hands (vector H15, without the error of the operating system that
/// leaked there).
#[tokio::test]
async fn an_app_that_closes_before_it_answers_is_named() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        let answer = get(&ebb, Protocol::Http1, &routing.host(), "/die").await;
        assert_eq!((answer.status, answer.reason()), (502, "upstream-closed"), "{routing:?}: {answer:?}");
        assert!(!answer.text().contains("os error"), "{routing:?}: {answer:?}");
    }
}
