//! gRPC needs HTTP/2 with prior knowledge, streams that flow both ways at once, and trailers.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use hyper::body::Frame;
use tests::Ebb;

use crate::protocols::client::{Client, Protocol, channel, empty, expect_data};
use crate::protocols::world::{ROUTINGS, cold, warm, within};

/// A message with its five-byte prefix.
fn message(text: &str) -> Bytes {
    let length = u32::try_from(text.len()).expect("messages here are short");
    let mut framed = vec![0];
    framed.extend(length.to_be_bytes());
    framed.extend(text.as_bytes());
    framed.into()
}

/// Calls, answers each message before the next is sent, and ends with the status in the trailers.
async fn call_in_lock_step(ebb: &Ebb, host: &str) {
    let mut client = Client::connect(ebb, Protocol::Http2).await;
    let (sender, body) = channel();
    let mut request = Protocol::Http2.request(Method::POST, host, "/stream", body);
    request.headers_mut().insert("content-type", "application/grpc".parse().expect("legal"));
    request.headers_mut().insert("te", "trailers".parse().expect("legal"));
    let mut response = client.send(request).await.expect("there is a response");
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/grpc");
    for text in ["one", "two", "", "four"] {
        sender.send(Frame::data(message(text))).await.expect("the call goes on");
        expect_data(response.body_mut(), &message(text)).await;
    }
    drop(sender);
    let rest = within("the end of the call", response.into_body().collect()).await;
    let rest = rest.expect("the call ends cleanly");
    assert_eq!(rest.trailers().expect("trailers come last")["grpc-status"], "0");
    assert!(rest.to_bytes().is_empty());
}

#[tokio::test]
async fn a_call_streams_both_ways_in_lock_step_and_ends_with_its_status() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        call_in_lock_step(&ebb, &routing.host()).await;
        // An answer that is nothing but a status.
        let mut client = Client::connect(&ebb, Protocol::Http2).await;
        let mut request = Protocol::Http2.request(Method::POST, &routing.host(), "/grpc-not-found", empty());
        request.headers_mut().insert("content-type", "application/grpc".parse().expect("legal"));
        let response = client.send(request).await.expect("there is a response");
        assert_eq!(
            (response.status().as_u16(), &response.headers()["grpc-status"]),
            (200, &"5".parse().expect("legal"))
        );
        assert!(response.headers().get("ebb-error").is_none(), "{routing:?}: it is the app's own");
    }
}

#[tokio::test]
async fn a_call_wakes_a_revision_from_zero() {
    let ebb = cold(|service| service).await;
    for routing in ROUTINGS {
        call_in_lock_step(&ebb, &routing.host()).await;
    }
}
