//! Large bodies arrive whole and unchanged, both ways.

use bytes::Bytes;

use crate::protocols::client::{Answer, Client, PROTOCOLS, full};
use crate::protocols::world::{ROUTINGS, cold, warm};

/// Bytes in which every piece differs from its neighbours, so that a lost or swapped one shows.
fn pattern(length: usize) -> Bytes {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[tokio::test]
async fn eight_mebibytes_come_back_as_they_were_sent() {
    let ebb = warm(|service| service).await;
    let body = pattern(8 * 1024 * 1024);
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            // As it comes, and only when all of it is there.
            for path in ["/stream", "/"] {
                let mut client = Client::connect(&ebb, protocol).await;
                let response = client.post(&routing.host(), path, full(body.clone())).await;
                let answer = Answer::read(response).await;
                assert_eq!(answer.status, 200, "{routing:?} {protocol:?} {path}: {}", answer.reason());
                assert!(answer.body == body, "{routing:?} {protocol:?} {path}: {} bytes", answer.body.len());
            }
        }
    }
}

#[tokio::test]
async fn a_mebibyte_waits_with_its_request_for_the_first_pod() {
    let ebb = cold(|service| service).await;
    let body = pattern(1024 * 1024);
    for (routing, protocol) in ROUTINGS.into_iter().zip(PROTOCOLS) {
        let mut client = Client::connect(&ebb, protocol).await;
        let answer = Answer::read(client.post(&routing.host(), "/", full(body.clone())).await).await;
        assert_eq!(answer.status, 200, "{routing:?} {protocol:?}: {}", answer.reason());
        assert!(answer.body == body, "{routing:?} {protocol:?}: {} bytes", answer.body.len());
        assert!(answer.header("server-timing").starts_with("ebb-wait;dur="), "{routing:?} {protocol:?}");
    }
}
