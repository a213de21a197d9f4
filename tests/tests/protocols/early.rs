//! An app may answer before it has read the request.

use bytes::Bytes;
use hyper::body::Frame;

use crate::client::{Answer, Client, PROTOCOLS, Protocol, channel};
use crate::world::{ROUTINGS, warm};

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

/// The same from an app that only ever looks at the head, and to a client that keeps sending. What is written and what is read race at every hop, so it
/// is done several times.
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
