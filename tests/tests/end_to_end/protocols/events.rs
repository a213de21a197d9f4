//! Server-sent events arrive as they are sent, not when a buffer is full.

use crate::protocols::client::{Client, PROTOCOLS, expect_data, get};
use crate::protocols::world::{ROUTINGS, warm, within};
use http_body_util::BodyExt;

#[tokio::test]
async fn each_event_arrives_before_the_next_is_sent() {
    let ebb = warm(|service| service).await;
    for routing in ROUTINGS {
        let host = routing.host();
        for protocol in PROTOCOLS {
            let mut client = Client::connect(&ebb, protocol).await;
            let stream = format!("{protocol:?}");
            let mut response = client.get(&host, &format!("/events?stream={stream}")).await;
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            for event in ["one", "two", "three"] {
                let release = format!("/release?stream={stream}&event={event}");
                assert_eq!(get(&ebb, protocol, &host, &release).await.status, 200);
                expect_data(response.body_mut(), format!("data: {event}\n\n").as_bytes()).await;
            }
            assert_eq!(get(&ebb, protocol, &host, &format!("/release?stream={stream}")).await.status, 200);
            let rest = within("the end of the stream", response.into_body().collect()).await;
            let rest = rest.expect("the stream ends cleanly").to_bytes();
            assert!(rest.is_empty(), "{routing:?} {protocol:?}: {rest:?}");
        }
    }
}
