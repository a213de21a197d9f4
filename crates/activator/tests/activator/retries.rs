//! Requests that a pod never started.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use activator::Limits;
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use vocabulary::{PodState, RequestTimeouts, Routing, Slice};

use crate::world::{Caller, HOST, Pod, World, assignment, until, with_concurrency, within};

/// An address without a listener, and that no other socket can have as long as this lives: other tests take
/// any port that is free.
struct DeadAddress(TcpSocket);

impl DeadAddress {
    fn take() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        Self(socket)
    }

    fn get(&self) -> SocketAddr {
        self.0.local_addr().expect("bound")
    }
}

#[tokio::test]
async fn a_request_whose_pod_is_gone_goes_to_another_with_its_body() {
    let (world, alive, dead) = (World::start(), Pod::start(), DeadAddress::take());
    let pods = [("a", dead.get(), PodState::Ready), ("b", alive.address, PodState::Ready)];
    let _autoscaler = world.synced(&[with_concurrency(assignment(1, &pods), 1)]).await;
    for caller in [Caller::http1(&world), Caller::http2(&world)] {
        for number in 0..3 {
            let got = caller.post("/", format!("body {number}")).await;
            assert_eq!((got.status.as_u16(), got.body), (200, format!("body {number}")));
        }
    }
}

#[tokio::test]
async fn a_refusal_before_the_start_moves_a_request_and_no_body_byte_was_sent_there() {
    let (world, refusing, taking) = (World::start(), Pod::start(), Pod::start());
    refusing.refusals.store(1, Ordering::SeqCst);
    let pods = [("a", refusing.address, PodState::Ready), ("b", taking.address, PodState::Ready)];
    let _autoscaler = world.synced(&[with_concurrency(assignment(1, &pods), 1)]).await;
    let got = Caller::http1(&world).post("/", vec![b'x'; 200_000]).await;
    assert_eq!((got.status.as_u16(), got.body.len()), (200, 200_000), "more than is ever kept");
    assert_eq!(refusing.seen()[0].headers["expect"], "100-continue");
    assert_eq!(taking.seen().len(), 1);
    assert_eq!(world.metric("activator_retries_total"), 1.0);
    assert_eq!(world.metric("activator_replay_bytes"), 0.0);
}

#[tokio::test]
async fn a_body_that_can_be_kept_leaves_with_its_head_and_is_sent_again() {
    let limits = Limits::default();
    let (world, refusing, taking) = (World::start(), Pod::start(), Pod::start());
    refusing.refusals.store(1, Ordering::SeqCst);
    let pods = [("a", refusing.address, PodState::Ready), ("b", taking.address, PodState::Ready)];
    let _autoscaler = world.synced(&[with_concurrency(assignment(1, &pods), 1)]).await;
    let got = Caller::http1(&world).post("/", vec![b'x'; limits.replay_bytes_per_request]).await;
    assert_eq!((got.status.as_u16(), got.body.len()), (200, 65_536), "as much as is ever kept");
    for pod in [&refusing, &taking] {
        assert_eq!(pod.seen().len(), 1);
        assert!(!pod.seen()[0].headers.contains_key("expect"), "nothing has to be awaited");
    }
    // What the first attempt has left to write may be there a little longer.
    until("the room is given back", || world.metric("activator_replay_bytes") == 0.0).await;
}

#[tokio::test]
async fn a_body_that_there_is_no_room_for_waits_until_it_is_asked_for() {
    let (pod, limits) = (Pod::start(), Limits { replay_bytes_in_all: 100, ..Limits::default() });
    let world = World::with_limits(limits);
    pod.refusals.store(1, Ordering::SeqCst);
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let got = Caller::http1(&world).post("/", vec![b'x'; 101]).await;
    assert_eq!((got.status.as_u16(), got.body.len()), (200, 101), "nothing had left when it was refused");
    for seen in pod.seen() {
        assert_eq!(seen.headers["expect"], "100-continue");
    }
    assert_eq!(pod.seen().len(), 2);
}

#[tokio::test]
async fn over_http2_the_body_that_was_kept_is_sent_again() {
    let (world, refusing, taking) = (World::start(), Pod::start(), Pod::start());
    refusing.refusals.store(1, Ordering::SeqCst);
    let pods = [("a", refusing.address, PodState::Ready), ("b", taking.address, PodState::Ready)];
    let _autoscaler = world.synced(&[with_concurrency(assignment(1, &pods), 1)]).await;
    let got = Caller::http2(&world).post("/", vec![b'x'; 40_000]).await;
    assert_eq!((got.status.as_u16(), got.body.len()), (200, 40_000));
    assert_eq!((refusing.seen().len(), taking.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_clients_own_expectation_travels_under_another_name() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let mut socket = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: 4\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    within("the go-ahead", socket.read_exact(&mut go_on)).await.unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 Continue\r\n"));
    socket.write_all(b"body").await.unwrap();
    let mut answer = String::new();
    within("the answer", socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("body"), "{answer}");
    let seen = &pod.seen()[0];
    assert_eq!(seen.headers["ebb-expect"], "1");
    assert_eq!(
        seen.headers["expect"], "100-continue",
        "the hop's own: nothing is asked of the client before its turn"
    );
}

#[tokio::test]
async fn a_direct_request_that_was_not_started_waits_in_the_queue() {
    let (world, pod) = (World::start(), Pod::start());
    let dead = DeadAddress::take();
    let mut direct = assignment(1, &[("a", dead.get(), PodState::Ready)]);
    direct.routing = Routing::Direct;
    let mut autoscaler = world.synced(&[direct.clone()]).await;
    let waiting = Caller::http1(&world).start("/");
    until("it is tried again", || world.metric("activator_retries_total") > 0.0).await;
    direct = assignment(2, &[("b", pod.address, PodState::Ready)]);
    direct.routing = Routing::Direct;
    autoscaler.assign(&direct).await;
    assert_eq!(waiting.await.unwrap().status, 200);
}

#[tokio::test]
async fn with_dead_pods_only_a_request_waits_to_its_deadline_and_nobody_spins() {
    let world = World::start();
    let dead = DeadAddress::take();
    let mut assigned = assignment(1, &[("a", dead.get(), PodState::Ready)]);
    assigned.timeouts = RequestTimeouts { request: Some(Duration::from_millis(600)), ..Default::default() };
    let _autoscaler = world.synced(&[assigned]).await;
    let got = Caller::http1(&world).get("/").await;
    assert_eq!(got.status, 504);
    assert!(got.header("ebb-error").starts_with("no-ready-pod"), "{got:?}");
    let attempts = world.metric("activator_retries_total");
    assert!((1.0..=8.0).contains(&attempts), "10, 20, 40 … ms apart: {attempts} attempts");
}

#[tokio::test]
async fn a_pod_that_breaks_off_a_request_it_may_have_started_is_a_502() {
    let world = World::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 1024]).await;
        }
    });
    let _autoscaler = world.synced(&[assignment(1, &[("a", address, PodState::Ready)])]).await;
    let got = Caller::http1(&world).send(Request::post("/").body(Full::default()).unwrap()).await;
    assert_eq!(got.status, 502);
    assert!(got.header("ebb-error").starts_with("upstream-closed; detail="), "{got:?}");
    assert_eq!(world.metric("activator_refused_requests_total"), 1.0);
}

/// Two pods with one slot each: the first in this activator's slice, the second in another's.
fn sliced(own: &Pod, other: &Pod) -> vocabulary::Assignment {
    let pods = [("a", own.address, PodState::Ready), ("b", other.address, PodState::Ready)];
    let mut assigned = with_concurrency(assignment(1, &pods), 1);
    assigned.pods[0].slice = Slice::Inside;
    assigned.pods[1].slice = Slice::Outside;
    assigned
}

#[tokio::test]
async fn a_request_that_finds_its_slice_full_is_tried_at_pods_of_other_activators() {
    let (world, own, other) = (World::start(), Pod::held(), Pod::start());
    other.full.store(3, Ordering::SeqCst);
    let _autoscaler = world.synced(&[sliced(&own, &other)]).await;
    for (number, caller) in [Caller::http1(&world), Caller::http2(&world)].into_iter().enumerate() {
        let first = caller.start("/first");
        until("its own pod is full", || own.seen().len() == number + 1).await;
        let got = caller.post("/second", "body").await;
        assert_eq!((got.status.as_u16(), got.body.as_str()), (200, "body"));
        own.permits.add_permits(1);
        assert_eq!(first.await.unwrap().status, 200);
    }
    assert_eq!(other.seen().len(), 3 + 2, "refused three times, taken twice");
    for seen in own.seen().iter().chain(&other.seen()) {
        assert_eq!(seen.headers["ebb-no-queue"], "1", "nobody waits where slots of others are not seen");
    }
    assert_eq!(world.metric("activator_full_pods_total"), 3.0);
    assert_eq!(world.metric("activator_retries_total"), 0.0, "a full pod is no failure");
}

#[tokio::test]
async fn a_pod_of_its_own_slice_that_others_filled_is_asked_again_soon() {
    let (world, own) = (World::start(), Pod::start());
    own.full.store(4, Ordering::SeqCst);
    let mut assigned = with_concurrency(assignment(1, &[("a", own.address, PodState::Ready)]), 1);
    assigned.pods[0].slice = Slice::Inside;
    let _autoscaler = world.synced(&[assigned]).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
    assert_eq!((own.seen().len(), world.metric("activator_full_pods_total")), (5, 4.0));
}
