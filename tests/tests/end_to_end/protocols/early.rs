//! An app may answer before it has read the request.

use bytes::Bytes;
use http::Method;
use hyper::body::Frame;

use crate::protocols::bridging::app;
use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, channel, expect_data};
use crate::protocols::world::{ROUTINGS, warm, within};

#[tokio::test]
async fn an_answer_before_the_end_of_the_upload_reaches_the_client() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let mut client = Client::connect(&ebb, protocol).await;
            let (sender, body) = channel();
            sender.send(Frame::data(Bytes::from_static(b"begun"))).await.expect("the request is open");
            let answer = Answer::read(client.post(&routing.host(), "/refuse", body).await).await;
            assert_eq!((answer.status, answer.reason()), (413, ""), "{routing:?} {protocol:?}");
            // Only now does the client stop: it was still uploading when it was told.
            drop(sender);
        }
    }
}

/// The same from an app that only ever looks at the head, and to a client that keeps sending. What is written
/// and what is read race at every hop, so it is done several times.
async fn refuse_in_full_flow(path: &str) {
    let ebb = warm(|service| service.args(&["--raw"])).await;
    for routing in ROUTINGS.into_iter().flat_map(|routing| [routing; 10]) {
        let mut client = Client::connect(&ebb, Protocol::Http1).await;
        let (sender, body) = channel();
        let flood = tokio::spawn(async move {
            while sender.send(Frame::data(Bytes::from_static(&[b'x'; 16 * 1024]))).await.is_ok() {}
        });
        let answer = Answer::read(client.post(&routing.host(), path, body).await).await;
        assert_eq!((answer.status, answer.text().as_str()), (413, "too large\n"), "{routing:?}");
        drop(client);
        flood.await.expect("the flood ends with its connection");
    }
}

#[tokio::test]
async fn a_client_in_full_flow_is_told_that_its_upload_is_refused() {
    refuse_in_full_flow("/refuse-upload").await;
}

/// Our write to such an app fails while its answer waits to be read.
#[tokio::test]
async fn an_answer_counts_also_from_an_app_that_resets_the_connection_behind_it() {
    refuse_in_full_flow("/refuse-upload-rudely").await;
}

/// What `curl -T` does: it asks whether it may send its body, hears the head of an answer instead, and sends
/// the body after some time all the same.
#[tokio::test]
async fn a_body_that_the_app_did_not_ask_for_before_it_answered_reaches_it() {
    for spoken in ["http1", "h2c"] {
        let ebb = warm(|service| app(service, spoken, spoken)).await;
        for (routing, protocol) in
            ROUTINGS.into_iter().flat_map(|routing| PROTOCOLS.map(|protocol| (routing, protocol)))
        {
            let mut client = Client::connect(&ebb, protocol).await;
            let (sender, body) = channel();
            let mut request = protocol.request(Method::PUT, &routing.host(), "/stream", body);
            request.headers_mut().insert("expect", "100-continue".parse().expect("legal"));
            let mut response = client.send(request).await.expect("there is a response");
            let what = format!("{routing:?}, {protocol:?}, {spoken}");
            assert_eq!(response.status(), 200, "{what}");
            for piece in ["a body", " in two pieces"] {
                sender.send(Frame::data(piece.into())).await.expect("the request goes on");
                within(&what, expect_data(response.body_mut(), piece.as_bytes())).await;
            }
            drop(sender);
            assert_eq!(Answer::read(response).await.text(), "", "{what}");
        }
    }
}

/// The same from a client that believes what it reads, and sends nothing.
#[tokio::test]
async fn a_client_that_waits_for_100_continue_and_is_answered_instead_may_keep_its_body() {
    let ebb = warm(|service| service).await;
    for (routing, protocol) in
        ROUTINGS.into_iter().flat_map(|routing| PROTOCOLS.map(|protocol| (routing, protocol)))
    {
        let mut client = Client::connect(&ebb, protocol).await;
        let (sender, body) = channel();
        let mut request = protocol.request(Method::PUT, &routing.host(), "/refuse", body);
        request.headers_mut().insert("expect", "100-continue".parse().expect("legal"));
        let answer = Answer::read(client.send(request).await.expect("there is a response")).await;
        assert_eq!((answer.status, answer.reason()), (413, ""), "{routing:?}, {protocol:?}");
        // Nothing else can be read on this connection before the body, which need not come: it says so.
        let closes = answer.header("connection") == "close";
        assert_eq!(closes, protocol == Protocol::Http1, "{routing:?}, {protocol:?}: {answer:?}");
        drop(sender);
        assert_eq!(Client::connect(&ebb, protocol).await.get(&routing.host(), "/").await.status(), 200);
    }
}
