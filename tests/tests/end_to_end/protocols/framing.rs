//! Requests of which two servers could think differently where they end are never passed on as they are.

use crate::protocols::client::RawClient;
use crate::protocols::world::{ROUTINGS, warm};

/// A request that a careless server would find behind, or within, the ambiguous one.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n";

#[tokio::test]
async fn an_ambiguous_length_is_refused_or_resolved_and_the_connection_closed() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        for (what, framing, body) in [
            ("both", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            (
                "both, the other way round",
                "Transfer-Encoding: chunked\r\nContent-Length: 44\r\n",
                "0\r\n\r\n",
            ),
        ] {
            let seen = exchange(&ebb, &routing.host(), framing, body).await;
            let is_resolved = seen.starts_with("HTTP/1.1 200 ")
                && !seen.to_ascii_lowercase().contains("\r\ncontent-length: 5\r\n")
                && !seen.to_ascii_lowercase().contains("\r\ncontent-length: 44\r\n");
            assert!(is_refused(&seen) || is_resolved, "{routing:?} {what}: {seen}");
            assert!(!seen.contains("smuggled"), "{routing:?} {what}: {seen}");
        }
    }
}

#[tokio::test]
async fn an_ambiguous_framing_is_a_bad_request() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        for (what, framing, body) in [
            ("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
            ("a list of lengths", "Content-Length: 5, 6\r\n", "hello"),
            ("a signed length", "Content-Length: +5\r\n", "hello"),
            ("an unknown encoding", "Transfer-Encoding: gzip\r\n", "hello"),
            ("chunked twice", "Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
            ("chunked not last", "Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
            ("two hosts", "Host: other.example.com\r\n", ""),
            ("a space before the colon", "Content-Length : 5\r\n", "hello"),
        ] {
            let seen = exchange(&ebb, &routing.host(), framing, body).await;
            assert!(is_refused(&seen), "{routing:?} {what}: {seen}");
            assert!(!seen.contains("smuggled"), "{routing:?} {what}: {seen}");
        }
    }
}

/// Everything that the server says to an ambiguous request with another behind it, until it closes the
/// connection.
async fn exchange(ebb: &tests::Ebb, host: &str, framing: &str, body: &str) -> String {
    let mut client = RawClient::connect(ebb).await;
    let smuggled = SMUGGLED.replace("HOST", host);
    client.write(&format!("POST /ambiguous HTTP/1.1\r\nHost: {host}\r\n{framing}\r\n{body}{smuggled}")).await;
    client.read_rest().await
}

fn is_refused(seen: &str) -> bool {
    seen.starts_with("HTTP/1.1 400 ") && seen.contains("\r\nebb-error: bad-request")
}
