//! Ports that belong to one revision each.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use ::link::ActivatorOrder;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vocabulary::{Assignment, PodExits, PodState, RevisionName, Routing, Version};

use crate::world::{HOST, Pod, World, assignment, until, within};

/// A port on which no program listens, below all that the kernel gives out by itself: one of the kernel's
/// choice could be another test's before the activator has it.
fn unused_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(10_000);
    let mut ports = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    ports.find(|port| TcpListener::bind(at(*port)).is_ok()).unwrap()
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn with_ports(counter: u64, pod: &Pod, ports: &[u16]) -> Assignment {
    let ports = ports.iter().copied().collect();
    Assignment { hosts: Vec::new(), ports, ..assignment(counter, &[("a", pod.address, PodState::Ready)]) }
}

/// A client that keeps its connection.
struct Client(TcpStream);

impl Client {
    async fn connect(port: u16) -> Self {
        Self(TcpStream::connect(at(port)).await.unwrap())
    }

    /// The first line of the answer to a request by that name.
    async fn get(&mut self, host: &str) -> String {
        self.head(host).await.lines().next().unwrap_or_default().to_owned()
    }

    /// The head of the answer to a request by that name.
    async fn head(&mut self, host: &str) -> String {
        let request = format!("GET /path HTTP/1.1\r\nhost: {host}\r\n\r\n");
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        within("an answer", async {
            while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
                let mut part = [0; 1024];
                let count = self.0.read(&mut part).await.unwrap();
                assert_ne!(count, 0, "closed after {answer:?}");
                answer.extend_from_slice(&part[..count]);
            }
        })
        .await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Whether the answer to a request by that name says that the next is to come on another connection.
    async fn is_sent_away(&mut self, host: &str) -> bool {
        let head = self.head(host).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        head.to_ascii_lowercase().contains("connection: close")
    }
}

async fn is_refused(port: u16) -> bool {
    TcpStream::connect(at(port))
        .await
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[tokio::test]
async fn a_port_is_its_revisions_whatever_host_is_named() {
    let (world, pod) = (World::start(), Pod::start());
    let (port, other) = (unused_port(), Pod::start());
    let mut autoscaler = world.synced(&[]).await;
    let mut assigned = with_ports(1, &pod, &[port]);
    autoscaler.assign(&assigned).await;
    for host in ["shop.example.com", "hello.default.example.com", "10.0.0.1:80"] {
        assert_eq!(Client::connect(port).await.get(host).await, "HTTP/1.1 200 OK", "{host}");
    }
    assert_eq!((pod.seen().len(), world.metric("activator_revision_ports")), (3, 1.0));
    // A second port, that leads to another port of the pod.
    let second = unused_port();
    assigned.version.counter = 2;
    assigned.ports.insert(second);
    assigned.pods[0].exits = PodExits([(second, other.address.port())].into());
    autoscaler.assign(&assigned).await;
    assert_eq!(Client::connect(second).await.get("a").await, "HTTP/1.1 200 OK");
    assert_eq!(Client::connect(port).await.get("a").await, "HTTP/1.1 200 OK");
    assert_eq!((pod.seen().len(), other.seen().len()), (4, 1));
}

#[tokio::test]
async fn a_port_is_closed_before_that_is_acknowledged_and_who_came_in_there_is_served() {
    let (world, pod) = (World::start(), Pod::held());
    let port = unused_port();
    let mut autoscaler = world.synced(&[with_ports(1, &pod, &[port])]).await;
    autoscaler.acknowledged(&with_ports(1, &pod, &[]).revision, with_ports(1, &pod, &[]).version).await;
    let mut client = Client::connect(port).await;
    let answered = tokio::spawn(async move { client.get("a").await });
    until("the request runs", || pod.running() == 1).await;
    autoscaler.assign(&with_ports(2, &pod, &[])).await;
    assert!(is_refused(port).await);
    assert_eq!(world.metric("activator_revision_ports"), 0.0);
    pod.permits.add_permits(1);
    assert_eq!(within("the answer", answered).await.unwrap(), "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn a_port_that_is_given_back_while_it_is_closed_is_open_in_the_end() {
    let (world, pod, port) = (World::start(), Pod::start(), unused_port());
    let first = with_ports(1, &pod, &[port]);
    let mut autoscaler = world.synced(std::slice::from_ref(&first)).await;
    autoscaler.acknowledged(&first.revision, first.version).await;
    for counter in (2..12).step_by(2) {
        autoscaler.send(ActivatorOrder::Assign(Box::new(with_ports(counter, &pod, &[])))).await;
        autoscaler.assign(&with_ports(counter + 1, &pod, &[port])).await;
        assert_eq!(Client::connect(port).await.get("a").await, "HTTP/1.1 200 OK");
        assert_eq!(world.metric("activator_revision_ports"), 1.0);
    }
}

#[tokio::test]
async fn a_port_that_was_anothers_is_open_only_after_that_has_let_go_of_it() {
    let (world, pod, other) = (World::start(), Pod::start(), Pod::start());
    let port = unused_port();
    let first = with_ports(1, &pod, &[port]);
    let mut autoscaler = world.synced(std::slice::from_ref(&first)).await;
    autoscaler.acknowledged(&first.revision, first.version).await;
    let mut client = Client::connect(port).await;
    assert_eq!(client.get("a").await, "HTTP/1.1 200 OK");
    // What should never be: the port is given to another while it is still in use.
    let revision = RevisionName::parse("default/service/other").unwrap();
    let second = Assignment { revision, ..with_ports(1, &other, &[port]) };
    autoscaler.send(ActivatorOrder::Assign(Box::new(second.clone()))).await;
    // A connection belongs to whose the port was when it was accepted.
    assert_eq!(client.get("a").await, "HTTP/1.1 200 OK");
    assert_eq!((pod.seen().len(), other.seen().len()), (2, 0));
    let version = Version { counter: 2, ..first.version };
    let removal = ActivatorOrder::Remove { revision: first.revision.clone(), version };
    autoscaler.send(removal).await;
    autoscaler.acknowledged(&first.revision, version).await;
    autoscaler.acknowledged(&second.revision, second.version).await;
    assert_eq!(Client::connect(port).await.get("a").await, "HTTP/1.1 200 OK");
    assert_eq!((pod.seen().len(), other.seen().len()), (2, 1));
}

#[tokio::test]
async fn connections_to_a_revisions_port_end_when_the_activator_drains() {
    let (world, pod) = (World::start(), Pod::start());
    let port = unused_port();
    let first = with_ports(1, &pod, &[port]);
    let autoscaler = world.synced(std::slice::from_ref(&first)).await;
    autoscaler.acknowledged(&first.revision, first.version).await;
    let mut client = Client::connect(port).await;
    assert_eq!(client.get("a").await, "HTTP/1.1 200 OK");
    let World { activator, .. } = world;
    within("the end", activator.drained(std::time::Duration::from_secs(10))).await;
    let mut rest = Vec::new();
    within("the end of the connection", client.0.read_to_end(&mut rest)).await.unwrap();
    assert!(is_refused(port).await);
}

/// With nothing sent on it.
async fn http2(port: u16) -> SendRequest<Empty<Bytes>> {
    let socket = TokioIo::new(TcpStream::connect(at(port)).await.unwrap());
    let (client, connection) = http2::handshake(TokioExecutor::new(), socket).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Who stays on the path that was left would be served by it for good.
#[tokio::test]
async fn after_a_path_switch_clients_are_told_to_come_back() {
    let (world, pod, port) = (World::start(), Pod::start(), unused_port());
    let through = Assignment { hosts: vec![HOST.to_owned()], ..with_ports(1, &pod, &[port]) };
    let mut autoscaler = world.synced(std::slice::from_ref(&through)).await;
    autoscaler.acknowledged(&through.revision, through.version).await;
    let (mut at_port, mut by_host) =
        (Client::connect(port).await, Client::connect(world.address.port()).await);
    let mut h2 = http2(port).await;
    let get = || Request::get("http://h/").body(Empty::new()).unwrap();
    assert!(!at_port.is_sent_away("a").await);
    assert_eq!(h2.send_request(get()).await.unwrap().status(), 200);

    let direct = Version { counter: 2, ..through.version };
    autoscaler.assign(&Assignment { routing: Routing::Direct, version: direct, ..through.clone() }).await;
    assert!(at_port.is_sent_away("a").await);
    within("the end of the connection", at_port.0.read_to_end(&mut Vec::new())).await.unwrap();
    assert_eq!(Client::connect(port).await.get("a").await, "HTTP/1.1 200 OK", "new ones are served");
    // The request that was on its way is served, and those until its library has heard.
    let mut answered = 0;
    while within("ready", h2.ready()).await.is_ok() {
        let Ok(response) = h2.send_request(get()).await else { break };
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        answered += 1;
    }
    assert!(answered > 0);
    // Of a host there is no other way.
    assert!(!by_host.is_sent_away(HOST).await);
}

/// While none is ready activators are the path, whatever the routing.
#[tokio::test]
async fn a_client_that_waited_for_the_first_pod_is_not_sent_away() {
    let (world, pod, port) = (World::start(), Pod::start(), unused_port());
    let ready = Assignment { routing: Routing::Direct, ..with_ports(2, &pod, &[port]) };
    let empty = Version { counter: 1, ..ready.version };
    let none = Assignment { pods: Vec::new(), version: empty, ..ready.clone() };
    let mut autoscaler = world.synced(std::slice::from_ref(&none)).await;
    autoscaler.acknowledged(&none.revision, none.version).await;
    let mut client = Client::connect(port).await;
    let waiting = tokio::spawn(async move { (client.is_sent_away("a").await, client) });
    until("it waits", || world.metric("activator_waiting_requests") > 0.0).await;
    autoscaler.assign(&ready).await;
    let (is_sent_away, mut client) = within("the answer", waiting).await.unwrap();
    assert!(!is_sent_away);
    assert!(client.is_sent_away("a").await, "a pod is ready by now");
}
