//! Interim responses: a 1xx never becomes, hides or changes the final status (vectors H18 to H21 of the data
//! plane).

use tests::Ebb;

use crate::protocols::client::RawClient;
use crate::protocols::world::{ROUTINGS, warm};

/// The head of the final response, after any number of interim ones.
async fn final_head(client: &mut RawClient) -> String {
    loop {
        let head = client.read_head().await;
        if !head.starts_with("HTTP/1.1 1") {
            return head;
        }
    }
}

/// Asks whether it may send a body, as a client does that really waits for the answer. Returns the heads that
/// came before the body was sent, and everything that came afterwards.
async fn upload(ebb: &Ebb, host: &str, path: &str, body: &str) -> (String, String) {
    let mut client = RawClient::connect(ebb).await;
    let length = body.len();
    client
        .write(&format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        ))
        .await;
    let first = client.read_head().await;
    if !first.starts_with("HTTP/1.1 100 ") {
        return (first, client.read_rest().await);
    }
    client.write(body).await;
    let rest = final_head(&mut client).await + &client.read_rest().await;
    (first, rest)
}

#[tokio::test]
async fn early_hints_never_change_the_final_status() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        let mut client = RawClient::connect(&ebb).await;
        let host = routing.host();
        client
            .write(&format!("GET /early-hints HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .await;
        let head = final_head(&mut client).await;
        assert!(head.starts_with("HTTP/1.1 404 "), "{routing:?}: {head}");
        assert_eq!(client.read_rest().await, "nothing here\n", "{routing:?}");
    }
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_uploads() {
    let raw = warm(|service| service.args(&["--raw"])).await;
    let ordinary = warm(|service| service).await;
    for routing in ROUTINGS {
        for (ebb, path) in [(&raw, "/continue"), (&ordinary, "/")] {
            let (interim, answer) = upload(ebb, &routing.host(), path, "a body").await;
            assert!(interim.starts_with("HTTP/1.1 100 "), "{routing:?} {path}: {interim}");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{routing:?} {path}: {answer}");
            assert!(answer.ends_with("\r\n\r\na body"), "{routing:?} {path}: {answer}");
        }
        let (_, answer) = upload(&raw, &routing.host(), "/continue-then-404", "a body").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{routing:?}: {answer}");
    }
}

#[tokio::test]
async fn an_app_that_refuses_the_expectation_is_heard() {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS {
        // No proxy asks for a body that the app does not want.
        let (first, rest) = upload(&ebb, &routing.host(), "/refuse-expectation", "a body").await;
        assert!(first.starts_with("HTTP/1.1 417 "), "{routing:?}: {first}");
        assert_eq!(rest, "unexpected\n", "{routing:?}");
    }
}
