//! What the owner hears of connections from before an adoption. Those of these tests are on loopback, so
//! none of them is a client's.

use std::time::Duration;

use link::PodOrder;
use tokio::net::TcpStream;
use vocabulary::{AdoptedConnections, AdoptionId, ConnectionTally, PodSettings, PodWord, Version};

use crate::world::{App, Proxy, link_address, run};

const NONE: AdoptedConnections = AdoptedConnections::Open(ConnectionTally {
    count: 0,
    age: Duration::ZERO,
    peers: vocabulary::PeerList::NONE,
});

fn settings(counter: u64, adoption: Option<u64>) -> PodOrder {
    let version = Version { counter, ..Version::default() };
    let adoption = adoption.map(AdoptionId);
    PodOrder::Settings(PodSettings { version, adoption, ..PodSettings::default() }.into())
}

/// What is said of connections before so many full seconds have been told.
async fn told(proxy: &mut Proxy, seconds: usize) -> Vec<AdoptedConnections> {
    let mut told = Vec::new();
    let mut left = seconds;
    while left > 0 {
        match proxy.heard().await {
            PodWord::Adopted(connections) => told.push(connections),
            PodWord::Load { .. } => left -= 1,
            PodWord::Hello(_)
            | PodWord::State { .. }
            | PodWord::Present(_)
            | PodWord::SettingsAcknowledged(_) => {}
        }
    }
    told
}

#[test]
fn connections_are_told_to_an_owner_that_names_an_adoption_on_this_link_and_on_the_next() {
    run(async {
        let app = App::hello().await;
        let mut proxy = Proxy::start(app.port, &[]).await;
        let _client = TcpStream::connect(("127.0.0.1", app.port)).await.expect("the app listens");
        assert_eq!(told(&mut proxy, 2).await, [], "an owner of a former version would not understand it");
        proxy.writer.send(&settings(1, Some(7))).await.expect("open");
        assert_eq!(told(&mut proxy, 2).await, [NONE], "peers on loopback are no clients");
        for (counter, adoption, expected) in [(2, None, vec![]), (3, Some(7), vec![NONE])] {
            let (reader, mut writer) = link::dial(link_address(&proxy.ports)).await.expect("it listens");
            writer.send(&settings(counter, adoption)).await.expect("open");
            (proxy.reader, proxy.writer) = (reader, writer);
            assert_eq!(told(&mut proxy, 2).await, expected, "{adoption:?}");
        }
    });
}

#[test]
fn an_address_of_the_node_that_is_none_is_refused_by_name() {
    let environment = crate::world::environment(80, &[("EBB_NODE_ADDRESSES", "10.0.0.1, node-1")]);
    let problems = queue_proxy::Config::read(&environment).expect_err("node-1 is a name");
    assert!(
        problems.iter().any(|problem| problem.to_string().contains("EBB_NODE_ADDRESSES")),
        "{problems:?}"
    );
    let environment = crate::world::environment(80, &[("EBB_NODE_ADDRESSES", "10.0.0.1,fd00::1")]);
    let config = queue_proxy::Config::read(&environment).expect("both are addresses").value;
    assert_eq!(config.node_addresses.len(), 2);
}
