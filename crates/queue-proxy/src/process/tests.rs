//! The end of a queue-proxy whose app has clients past it.

#[path = "../../../../tests/src/queue_proxy.rs"]
mod environment;

use std::net::TcpStream;

use ::link::{PodOrder, Reader, Writer};
use tokio::task::LocalSet;
use vocabulary::{AdoptedConnections, AdoptionId, PodSettings, PodWord};

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
        bound.peers = CountedPeers::All;
        let (ports, leaving) = (bound.announcement(), CancellationToken::new());
        let mut ended = tokio::task::spawn_local(bound.run_until(leaving.clone()));
        let _link = adopt(&ports).await;
        leaving.cancel();
        for _ in 0..6 {
            client.write_all(b"ask").expect("the connection is open");
            let drained = tokio::time::timeout(Duration::from_millis(500), &mut ended).await;
            assert!(drained.is_err(), "no request is in flight, and yet the client is there");
        }
        drop((client, server));
        let drained = tokio::time::timeout(PATIENCE, ended).await.expect("nothing is left to wait for");
        assert_eq!(drained.expect("it does not panic"), ProcessEnd::Drained);
    });
}
