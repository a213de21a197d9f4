//! The end of a queue-proxy whose app has clients past it, and of one whose pages strangers occupy.

#[path = "../../../../tests/src/queue_proxy.rs"]
mod environment;

use std::net::TcpStream;

use ::link::{PodOrder, Reader, Writer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::LocalSet;
use vocabulary::{AdoptedConnections, AdoptionId, DRAIN_HOOK_PATH, PodSettings, PodWord};

use super::*;

/// For a drain that goes on although nothing is left to wait for.
const PATIENCE: Duration = Duration::from_secs(30);

fn config(app: u16) -> Config {
    Config::read(&environment::environment(app)).expect("it is legal").value
}

/// Names an adoption as the owner, and waits until one connection from before it is told.
async fn adopt(ports: &QueueProxyAnnouncement) -> (Reader<PodWord>, Writer<PodOrder>) {
    let address = SocketAddr::from(([127, 0, 0, 1], ports.link)).into();
    let (mut reader, mut writer) = ::link::dial(address).await.expect("it listens");
    let settings = PodSettings { adoption: Some(AdoptionId(1)), ..PodSettings::default() };
    writer.send(&PodOrder::Settings(settings.into())).await.expect("the link is open");
    loop {
        let word: Option<PodWord> = reader.next().await.expect("the link is open");
        if let Some(PodWord::Adopted(AdoptedConnections::Open(tally))) = word {
            assert_eq!(tally.count, 1);
            return (reader, writer);
        }
    }
}

#[test]
fn a_drain_goes_on_while_a_client_from_before_the_adoption_uses_its_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let app = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = app.local_addr().expect("bound").port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("the app listens");
        let (server, _) = app.accept().expect("open");
        let mut bound = bind(config(port), Clock::start()).expect("free ports");
        bound.own_peers = Rc::new(OwnPeers::Only(Vec::new()));
        let (ports, leaving) = (bound.announcement(), CancellationToken::new());
        let mut ended = tokio::task::spawn_local(bound.run_until(leaving.clone()));
        let _link = adopt(&ports).await;
        leaving.cancel();
        for _ in 0..3 {
            client.write_all(b"ask").expect("the connection is open");
            let drained = tokio::time::timeout(Duration::from_millis(500), &mut ended).await;
            assert!(drained.is_err(), "no request is in flight, and yet the client is there");
        }
        drop((client, server));
        let drained = tokio::time::timeout(PATIENCE, ended).await.expect("nothing is left to wait for");
        assert_eq!(drained.expect("it does not panic"), ProcessEnd::Drained);
    });
}

/// Asks for the end of the drain from this address.
async fn wait_for_drain(from: [u8; 4], admin: u16) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((from, 0))).expect("an address of loopback");
    let mut stream = socket.connect(SocketAddr::from(([127, 0, 0, 1], admin))).await.expect("it listens");
    let request = format!("GET {DRAIN_HOOK_PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is open");
    stream
}

/// The status that comes within the time; `None` while the request waits.
async fn status_within(stream: &mut tokio::net::TcpStream, time: Duration) -> Option<u16> {
    let mut text = String::new();
    let answer = tokio::time::timeout(time, stream.read_to_string(&mut text)).await.ok()?;
    answer.expect("a whole answer");
    text.split(' ').nth(1).and_then(|status| status.parse().ok())
}

#[test]
fn hooks_of_the_pod_wait_for_its_drain_while_strangers_hold_every_other_place() {
    const NODE: [u8; 4] = [127, 0, 0, 2];
    const STRANGER: [u8; 4] = [127, 0, 0, 1];
    const MOMENT: Duration = Duration::from_millis(20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async {
        let app = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = app.local_addr().expect("bound").port();
        let mut bound = bind(config(port), Clock::start()).expect("free ports");
        bound.own_peers = Rc::new(OwnPeers::Only(vec![NODE.into()]));
        let (ports, leaving) = (bound.announcement(), CancellationToken::new());
        let ended = tokio::task::spawn_local(bound.run_until(leaving.clone()));
        let mut strangers = Vec::new();
        for _ in 0..64 {
            strangers.push(wait_for_drain(STRANGER, ports.admin).await);
        }
        let mut hooks = Vec::new();
        for _ in 0..PAGE_LIMITS.own_long_reads {
            hooks.push(wait_for_drain(NODE, ports.admin).await);
        }
        let mut waiting = 0;
        for stranger in &mut strangers {
            match status_within(stranger, MOMENT).await {
                None => waiting += 1,
                Some(status) => assert_eq!(status, 503),
            }
        }
        assert_eq!(waiting, PAGE_LIMITS.long_reads);
        for hook in &mut hooks {
            assert_eq!(status_within(hook, MOMENT).await, None, "it waits");
        }
        leaving.cancel();
        for hook in &mut hooks {
            assert_eq!(status_within(hook, PATIENCE).await, Some(200), "the drain is over");
        }
        let drained = tokio::time::timeout(PATIENCE, ended).await.expect("nothing is left to wait for");
        assert_eq!(drained.expect("it does not panic"), ProcessEnd::Drained);
    });
}
