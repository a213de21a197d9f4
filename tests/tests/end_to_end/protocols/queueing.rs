//! A pod that takes one request at a time: who waits, who is refused, and what a client that goes away leaves
//! behind.

use std::net::SocketAddr;

use hyper::body::Incoming;
use tests::Ebb;
use tokio::task::JoinSet;

use crate::protocols::client::{Answer, Client, PROTOCOLS, Protocol, get};
use crate::protocols::world::{ROUTINGS, Routing, warm, within};

/// Ten for each slot wait in a queue-proxy.
const PLACES: usize = 10;

/// How many come beyond that.
const SURPLUS: usize = 4;

/// Occupies the only slot of a service until it is dropped or its stream is ended.
async fn occupy(
    ebb: &Ebb,
    routing: Routing,
    protocol: Protocol,
    stream: &str,
) -> (Client, http::Response<Incoming>) {
    let mut client = Client::connect(ebb, protocol).await;
    let response = client.get(&routing.host(), &format!("/events?stream={stream}&first=begun")).await;
    assert_eq!(response.status(), 200, "{routing:?} {protocol:?}");
    (client, response)
}

/// Waits until as many requests wait for a slot, in the activator or in the pod.
async fn until_waiting(ebb: &Ebb, routing: Routing, count: usize) {
    let count = u64::try_from(count).ok();
    ebb.until(routing.service(), &format!("{count:?} wait"), |revision| match routing {
        Routing::ThroughActivator => revision.0["waiting"].as_u64() == count,
        Routing::Direct => revision.pods().iter().any(|pod| pod["queued"].as_u64() == count),
    })
    .await;
}

/// Sends more requests than a pod takes in, while its only slot is taken.
async fn crowd(address: SocketAddr, protocol: Protocol) -> JoinSet<Answer> {
    let mut waiting = JoinSet::new();
    for _ in 0..PLACES + SURPLUS {
        let mut client = Client::connect_to(address, protocol).await;
        waiting.spawn(async move { Answer::read(client.get(&Routing::Direct.host(), "/").await).await });
    }
    waiting
}

async fn assert_served(mut waiting: JoinSet<Answer>, count: usize) {
    assert_eq!(waiting.len(), count);
    while let Some(served) = within("an answer", waiting.join_next()).await {
        let served = served.expect("it does not panic");
        assert_eq!((served.status, served.header("x-in-flight")), (200, "1"), "{served:?}");
    }
}

/// Vectors B1 to B3: what a pod says to a client that talks to it directly, as a Service on a cluster does.
#[tokio::test]
async fn a_pod_refuses_at_once_what_finds_its_queue_full() {
    let ebb = warm(|service| service.spec("containerConcurrency: 1")).await;
    let pod = ebb.revision(Routing::Direct.service()).await.expect("the API answers");
    let pod = pod.pods()[0]["requests"].as_str().expect("pods have addresses").parse().expect("it is one");
    for protocol in PROTOCOLS {
        let occupied = occupy(&ebb, Routing::Direct, protocol, "held").await;
        let mut waiting = crowd(pod, protocol).await;
        // The slot is still taken: a request that is answered now is refused.
        for _ in 0..SURPLUS {
            let refused = within("a refusal", waiting.join_next()).await;
            let refused = refused.expect("all were sent").expect("it does not panic");
            assert_eq!((refused.status, refused.reason()), (503, "queue-full"), "{refused:?}");
            assert!(refused.header("retry-after").parse::<u32>().is_ok_and(|wait| wait > 0), "{refused:?}");
            assert_eq!(refused.text(), "pending request queue full\n");
        }
        drop(occupied);
        assert_served(waiting, PLACES).await;
    }
}

/// Through the front door no request is sent away for that: what no pod took in waits before it.
#[tokio::test]
async fn a_request_that_a_full_pod_does_not_take_in_waits_for_it() {
    let ebb = warm(|service| service.spec("containerConcurrency: 1")).await;
    let occupied = occupy(&ebb, Routing::Direct, Protocol::Http1, "held").await;
    let waiting = crowd(ebb.requests, Protocol::Http1).await;
    until_waiting(&ebb, Routing::Direct, PLACES).await;
    drop(occupied);
    assert_served(waiting, PLACES + SURPLUS).await;
}

#[tokio::test]
async fn a_client_that_goes_away_gives_its_slot_back() {
    let ebb = warm(|service| service.spec("containerConcurrency: 1")).await;
    for routing in ROUTINGS {
        let host = routing.host();
        for protocol in PROTOCOLS {
            let occupied = occupy(&ebb, routing, protocol, "left").await;
            let leaving = async {
                until_waiting(&ebb, routing, 1).await;
                drop(occupied);
            };
            let (answer, ()) = tokio::join!(get(&ebb, protocol, &host, "/"), leaving);
            assert_eq!((answer.status, answer.header("x-in-flight")), (200, "1"), "{routing:?} {protocol:?}");
        }
    }
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_waits_leaves_the_queue() {
    let ebb = warm(|service| service.spec("containerConcurrency: 1")).await;
    for routing in ROUTINGS {
        let occupied = occupy(&ebb, routing, Protocol::Http1, "held").await;
        let mut leaving = JoinSet::new();
        for _ in 0..PLACES {
            let mut client = Client::connect(&ebb, Protocol::Http1).await;
            leaving.spawn(async move { client.get(&routing.host(), "/?sleep=60000").await });
        }
        until_waiting(&ebb, routing, PLACES).await;
        leaving.shutdown().await;
        until_waiting(&ebb, routing, 0).await;
        // Their places are free for others, who need not wait for what they had asked for.
        let mut others = JoinSet::new();
        for _ in 0..PLACES {
            let mut client = Client::connect(&ebb, Protocol::Http1).await;
            others.spawn(async move { Answer::read(client.get(&routing.host(), "/").await).await });
        }
        drop(occupied);
        while let Some(served) = within("an answer", others.join_next()).await {
            assert_eq!(served.expect("it does not panic").status, 200, "{routing:?}");
        }
    }
}
