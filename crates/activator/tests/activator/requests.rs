//! Requests through an activator, seen from the client.

use std::time::Duration;

use activator::Limits;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use vocabulary::{PodState, RequestTimeouts, Routing};

use crate::world::{Caller, HOP_KEY, HOST, Pod, World, assignment, until, with_concurrency, within};

#[tokio::test]
async fn a_request_waits_for_its_pod_and_is_served_when_that_is_ready() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let waiting = Caller::http1(&world).start("/wake?x=%20y");
    until("the request waits", || world.metric("activator_waiting_requests") > 0.0).await;
    autoscaler.assign(&assignment(2, &[("a", pod.address, PodState::Starting)])).await;
    assert!(pod.seen().is_empty());
    autoscaler.assign(&assignment(3, &[("a", pod.address, PodState::Ready)])).await;
    let got = waiting.await.unwrap();
    assert_eq!(got.status, 200);
    assert!(got.header("server-timing").starts_with("ebb-wait;dur="), "{got:?}");
    let again = Caller::http1(&world).get("/").await;
    assert_eq!((again.status.as_u16(), again.header("server-timing")), (200, ""));
}

#[tokio::test]
async fn the_pod_sees_who_sent_the_request_and_nothing_a_client_made_up() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let request = Request::get("/%2e%2e/x//y")
        .header("ebb-hop-key", "guessed")
        .header("k-original-host", "elsewhere")
        .header("knative-serving-revision", "another")
        .header("user-agent", "test")
        .body(Full::default())
        .unwrap();
    assert_eq!(Caller::http1(&world).send(request).await.status, 200);
    let seen = &pod.seen()[0];
    let values = |name: &str| -> Vec<&str> {
        seen.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    };
    assert_eq!(values("ebb-hop-key"), [HOP_KEY]);
    assert_eq!(values("k-proxy-request"), ["activator"]);
    assert_eq!(values("host"), [HOST]);
    assert_eq!(values("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(values("user-agent"), ["test"]);
    assert!(values("k-original-host").is_empty() && values("knative-serving-revision").is_empty());
    assert_eq!(seen.path, "/%2e%2e/x//y");
}

#[tokio::test]
async fn a_hold_refuses_who_waits_and_who_comes_until_a_pod_is_ready() {
    let (world, pod) = (World::start(), Pod::start());
    let mut autoscaler = world.synced(&[assignment(1, &[])]).await;
    let waiting = Caller::http1(&world).start("/");
    until("the request waits", || world.metric("activator_waiting_requests") > 0.0).await;
    let text = "3 pods in a row failed: the app exited with code 3";
    let held = |counter, state| {
        let pods = [("a", pod.address, state)];
        vocabulary::Assignment { hold: Some(text.to_owned()), ..assignment(counter, &pods) }
    };
    autoscaler.assign(&held(2, PodState::Starting)).await;
    let refused = waiting.await.unwrap();
    assert_eq!(refused.status.as_u16(), 504);
    assert_eq!(refused.header("ebb-error"), format!("no-ready-pod; detail=\"{text}\""));
    assert_eq!(Caller::http1(&world).get("/").await.header("ebb-error"), refused.header("ebb-error"));
    until("nobody waits", || world.metric("activator_waiting_requests") == 0.0).await;
    autoscaler.assign(&held(3, PodState::Ready)).await;
    assert_eq!(Caller::http1(&world).get("/").await.status, 200);
}

/// Enough for one pod, which is to be there when whatever ails it is mended, and for no second one.
#[tokio::test]
async fn requests_refused_under_a_hold_count_as_demand_for_one_pod_however_many_they_are() {
    let world = World::start();
    let hold = Some("its pods fail".to_owned());
    let autoscaler = world.synced(&[vocabulary::Assignment { hold, ..assignment(1, &[]) }]).await;
    let caller = Caller::http1(&world);
    for _ in 0..200 {
        assert_eq!(caller.get("/").await.status.as_u16(), 504);
    }
    let load = |report: &vocabulary::ActivatorWord| {
        let vocabulary::ActivatorWord::Loads { loads, .. } = report else { return None };
        loads.first().map(|of| of.load)
    };
    let load = autoscaler.report("the second's load", load).await;
    for value in [load.concurrency.value(), load.request_rate.value()] {
        assert!(value > 0.0 && value < 0.001, "{load:?}");
    }
    // No request comes any more: the next second holds nothing.
    let is_idle = |report: &vocabulary::ActivatorWord| {
        let vocabulary::ActivatorWord::Loads { loads, .. } = report else { return None };
        loads.is_empty().then_some(())
    };
    let reports = autoscaler.reports().len();
    until("an idle second", || {
        autoscaler.reports()[reports..].iter().any(|report| is_idle(report).is_some())
    })
    .await;
}

#[tokio::test]
async fn with_one_slot_two_never_run_at_once_and_order_is_kept() {
    let (world, pod) = (World::start(), Pod::held());
    let ready = with_concurrency(assignment(1, &[("a", pod.address, PodState::Ready)]), 1);
    let _autoscaler = world.synced(&[ready]).await;
    let caller = Caller::http1(&world);
    let mut requests = vec![caller.start("/0")];
    until("the first runs", || pod.running() == 1).await;
    for number in 1..20 {
        requests.push(caller.start(&format!("/{number}")));
        until("it waits", || world.metric("activator_waiting_requests") >= f64::from(number)).await;
    }
    pod.permits.add_permits(20);
    for request in requests {
        assert_eq!(request.await.unwrap().status, 200);
    }
    assert_eq!(pod.most_at_once(), 1);
    let expected: Vec<String> = (0..20).map(|number| format!("/{number}")).collect();
    assert_eq!(pod.paths(), expected);
}

#[tokio::test]
async fn a_client_that_leaves_gives_back_its_slot_and_its_place() {
    let (world, pod) = (World::start(), Pod::held());
    let ready = with_concurrency(assignment(1, &[("a", pod.address, PodState::Ready)]), 1);
    let _autoscaler = world.synced(&[ready]).await;
    let caller = Caller::http1(&world);
    let running = caller.start("/runs");
    until("the first runs", || pod.running() == 1).await;
    let waiting = caller.start("/waits");
    until("the second waits", || world.metric("activator_waiting_requests") > 0.0).await;
    let last = caller.start("/last");
    until("the third waits", || world.metric("activator_waiting_requests") > 1.0).await;
    waiting.abort();
    until("its place is free", || world.metric("activator_waiting_requests") < 2.0).await;
    running.abort();
    until("the last one runs", || pod.paths().len() == 2 && pod.running() == 1).await;
    pod.permits.add_permits(1);
    assert_eq!(last.await.unwrap().status, 200);
    assert_eq!(pod.paths(), ["/runs", "/last"]);
    assert_eq!(world.metric("activator_in_flight_requests"), 0.0);
}

#[tokio::test]
async fn an_unknown_host_is_unknown_only_after_the_first_sync() {
    let (world, pod) = (World::start(), Pod::start());
    let caller = Caller::http1(&world);
    let (early, unknown) = (caller.start("/early"), caller.to("nobody.example.com").start("/"));
    until("both wait", || world.metric("activator_waiting_requests") > 1.0).await;
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    assert_eq!(early.await.unwrap().status, 200);
    let refused = unknown.await.unwrap();
    assert_eq!(refused.status, 404);
    assert!(refused.header("ebb-error").starts_with("no-such-revision; detail="), "{refused:?}");
    assert_eq!(caller.to("HELLO.default.example.com").get("/").await.status, 200);
    assert_eq!(caller.to("other.example.com").get("/").await.status, 404);
}

#[tokio::test]
async fn direct_requests_bypass_queue_slots_and_load() {
    let (world, pod) = (World::start(), Pod::held());
    let mut direct = with_concurrency(assignment(1, &[("a", pod.address, PodState::Ready)]), 1);
    direct.routing = Routing::Direct;
    let autoscaler = world.synced(&[direct]).await;
    let caller = Caller::http1(&world);
    let requests = [(); 3].map(|()| caller.start("/"));
    until("all three run in the pod", || pod.running() == 3).await;
    pod.permits.add_permits(3);
    for request in requests {
        assert_eq!(request.await.unwrap().status, 200);
    }
    for seen in pod.seen() {
        assert_eq!(seen.headers["ebb-hop-key"], HOP_KEY);
        assert!(!seen.headers.contains_key("k-proxy-request"));
    }
    let present =
        |report: &vocabulary::ActivatorWord| matches!(report, vocabulary::ActivatorWord::Present { .. });
    assert!(!autoscaler.reports().iter().any(present));
    assert_eq!(world.metric("activator_direct_requests_total"), 3.0);
}

#[tokio::test]
async fn direct_without_a_ready_pod_waits_in_the_queue() {
    let (world, pod) = (World::start(), Pod::start());
    let mut direct = assignment(1, &[]);
    direct.routing = Routing::Direct;
    let mut autoscaler = world.synced(&[direct.clone()]).await;
    let waiting = Caller::http1(&world).start("/");
    until("the request waits", || world.metric("activator_waiting_requests") > 0.0).await;
    let mut ready = assignment(2, &[("a", pod.address, PodState::Ready)]);
    ready.routing = Routing::Direct;
    autoscaler.assign(&ready).await;
    assert_eq!(waiting.await.unwrap().status, 200);
    assert_eq!(pod.seen()[0].headers["k-proxy-request"], "activator");
}

#[tokio::test]
async fn v11_no_pod_within_the_timeout_says_what_it_waited_for() {
    let world = World::start();
    let mut quick = assignment(1, &[]);
    quick.timeouts = RequestTimeouts { request: Some(Duration::from_millis(200)), ..Default::default() };
    let _autoscaler = world.synced(&[quick]).await;
    let got = Caller::http1(&world).get("/").await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (504, "activator request timeout"));
    assert_eq!(
        got.header("ebb-error"),
        "no-ready-pod; detail=\"timeoutSeconds of default/service/hello is 200ms; the app exits at once: exit code 3\""
    );
    let grpc = Request::post("/").header("content-type", "application/grpc").body(Full::default()).unwrap();
    let got = Caller::http2(&world).send(grpc).await;
    assert_eq!((got.status.as_u16(), got.header("grpc-status")), (200, "14"));
    until("nobody waits", || world.metric("activator_waiting_requests") == 0.0).await;
}

#[tokio::test]
async fn a_pod_that_does_not_answer_in_time_is_named_by_the_timer() {
    let (world, pod) = (World::start(), Pod::held());
    let mut assigned = assignment(1, &[("a", pod.address, PodState::Ready)]);
    assigned.timeouts =
        RequestTimeouts { response_start: Some(Duration::from_millis(100)), ..Default::default() };
    let mut autoscaler = world.synced(&[assigned.clone()]).await;
    let got = Caller::http1(&world).get("/").await;
    assert_eq!((got.status.as_u16(), got.body.as_str()), (504, "activator request timeout"));
    assert!(
        got.header("ebb-error").starts_with("response-start-timeout; detail=\"responseStartTimeoutSeconds")
    );
    until("the exchange is broken off at the pod", || pod.running() == 0).await;
    assigned.version.counter = 2;
    assigned.timeouts = RequestTimeouts { request: Some(Duration::from_millis(100)), ..Default::default() };
    autoscaler.assign(&assigned).await;
    let grpc = Request::post("/").header("content-type", "application/grpc").body(Full::default()).unwrap();
    let got = Caller::http2(&world).send(grpc).await;
    assert_eq!((got.status.as_u16(), got.header("grpc-status")), (200, "4"));
}

#[tokio::test]
async fn more_than_a_limit_of_waiting_requests_are_refused() {
    let limits = Limits { waiting_per_revision: 2, ..Limits::default() };
    let world = World::with_limits(limits);
    let _autoscaler = world.synced(&[assignment(1, &[])]).await;
    let caller = Caller::http1(&world);
    let waiting = [caller.start("/"), caller.start("/")];
    until("two wait", || world.metric("activator_waiting_requests") > 1.0).await;
    let got = caller.get("/").await;
    assert_eq!((got.status.as_u16(), got.header("retry-after")), (503, "1"));
    assert!(
        got.header("ebb-error").starts_with("queue-full; detail=\"2 requests wait for default/service/hello")
    );
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn the_whole_activator_has_a_limit_too() {
    let limits = Limits { waiting_in_all: 1, ..Limits::default() };
    let world = World::with_limits(limits);
    let (busy, idle) = (assignment(1, &[]), Pod::start());
    let mut other = assignment(1, &[("b", idle.address, PodState::Ready)]);
    other.revision = "default/service/other".to_owned().try_into().unwrap();
    other.hosts = vec!["other.example.com".to_owned()];
    let _autoscaler = world.synced(&[busy, other]).await;
    let caller = Caller::http1(&world);
    let waiting = caller.start("/");
    until("one waits", || world.metric("activator_waiting_requests") > 0.0).await;
    let got = caller.get("/").await;
    assert_eq!(got.status, 503);
    assert!(got.header("ebb-error").contains("1 requests wait in this activator"), "{got:?}");
    assert_eq!(
        caller.to("other.example.com").get("/").await.status,
        200,
        "who need not wait is not concerned"
    );
    waiting.abort();
}

#[tokio::test]
async fn http2_stays_http2_and_http1_stays_http1() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let body = Bytes::from(vec![b'x'; 300_000]);
    for caller in [Caller::http2(&world), Caller::http1(&world)] {
        let got = caller.post("/", body.clone()).await;
        assert_eq!((got.status.as_u16(), got.body.len()), (200, body.len()));
    }
    let versions: Vec<_> = pod.seen().iter().map(|seen| seen.version).collect();
    assert_eq!(versions, [http::Version::HTTP_2, http::Version::HTTP_11]);
}

#[tokio::test]
async fn an_ambiguous_request_is_refused_and_its_connection_closed() {
    let (world, pod) = (World::start(), Pod::start());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let mut socket = TcpStream::connect(world.address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: {HOST}\r\nhost: other\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within("the connection's end", socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("ebb-error: bad-request"), "{answer}");
    assert!(pod.seen().is_empty());
}

#[tokio::test]
async fn a_websocket_is_carried_and_holds_its_slot() {
    let world = World::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let ready = with_concurrency(assignment(1, &[("a", address, PodState::Ready)]), 1);
    let _autoscaler = world.synced(&[ready]).await;
    let socket = TcpStream::connect(world.address).await.unwrap();
    let (mut client, _) =
        within("the switch", tokio_tungstenite::client_async(format!("ws://{HOST}/chat"), socket))
            .await
            .unwrap();
    for text in ["one", "two"] {
        client.send(text.into()).await.unwrap();
        assert_eq!(within("the echo", client.next()).await.unwrap().unwrap().to_text().unwrap(), text);
    }
    assert_eq!(world.metric("activator_in_flight_requests"), 1.0);
    drop(client);
    until("the slot is free", || world.metric("activator_in_flight_requests") == 0.0).await;
}

#[tokio::test]
async fn held_requests_are_answered_before_an_activator_ends() {
    let (world, held, open) = (World::start(), Pod::held(), Pod::start());
    let _autoscaler = world.synced(&[assignment(1, &[("a", held.address, PodState::Ready)])]).await;
    let caller = Caller::http1(&world);
    let mut requests = vec![caller.start("/old")];
    until("it runs", || held.running() == 1).await;
    let next = world.another();
    let _next_autoscaler = next.synced(&[assignment(1, &[("b", open.address, PodState::Ready)])]).await;
    world.activator.stop_accepting();
    // The kernel may still hand a connection or two to the old one, which serves them too.
    within("the new one serves", async {
        while open.seen().is_empty() {
            requests.push(caller.start("/new"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let drained = tokio::spawn(world.activator.drained(Duration::from_secs(20)));
    held.permits.add_permits(requests.len());
    let old = requests.remove(0).await.unwrap();
    assert_eq!((old.status.as_u16(), old.header("connection")), (200, "close"));
    for request in requests {
        assert_eq!(request.await.unwrap().status, 200);
    }
    within("the drain", drained).await.unwrap();
}

#[tokio::test]
async fn an_activator_that_is_dropped_cuts_off_what_it_holds() {
    let (world, pod) = (World::start(), Pod::held());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let socket = TcpStream::connect(world.address).await.unwrap();
    let mut socket = socket;
    socket.write_all(format!("GET / HTTP/1.1\r\nhost: {HOST}\r\n\r\n").as_bytes()).await.unwrap();
    until("it runs", || pod.running() == 1).await;
    drop(world);
    let mut nothing = Vec::new();
    let _ = within("the end of the connection", socket.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty());
    until("the pod is let go", || pod.running() == 0).await;
}

/// As at a queue-proxy: the refusals of a program are what it did to clients, and not what those did to
/// themselves.
#[tokio::test]
async fn a_client_that_breaks_its_body_off_is_told_nothing_and_counts_as_no_refusal() {
    let (world, pod) = (World::start(), Pod::held());
    let _autoscaler = world.synced(&[assignment(1, &[("a", pod.address, PodState::Ready)])]).await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nhost: {HOST}\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    until("the pod has the request", || pod.running() == 1).await;
    client.shutdown().await.unwrap();
    let mut said = Vec::new();
    within("the connection ends", client.read_to_end(&mut said)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&said), "");
    assert_eq!(world.metric("activator_refused_requests_total"), 0.0);
    let mut client = TcpStream::connect(world.address).await.unwrap();
    client.write_all(format!("{head}not a length\r\n").as_bytes()).await.unwrap();
    let mut said = Vec::new();
    within("what is no body is refused", client.read_to_end(&mut said)).await.unwrap();
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("ebb-error: bad-request; detail="), "{said}");
    assert_eq!(world.metric("activator_refused_requests_total"), 1.0);
}
