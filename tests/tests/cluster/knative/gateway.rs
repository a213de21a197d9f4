//! The ingress, through which clients of users come in.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tests::client::whole_answer;
use tests::cluster::{KNATIVE_SYSTEM, PATIENCE, TestNamespace};
use tests::eventually;

/// The port for requests of clients.
const GATEWAY_PORT: u16 = 8080;
/// The port at which the ingress says which hosts are programmed.
const VERDICTS_PORT: u16 = 8081;

/// The ingress by its address, which no step of a roll-over changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gateway(IpAddr);

impl Gateway {
    pub(crate) async fn find(namespace: &TestNamespace) -> Self {
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
        let address = eventually("the ingress has an address", PATIENCE, || async {
            let selected = ListParams::default().labels("app=ingress");
            let pods = pods.list(&selected).await.map_err(|error| error.to_string())?.items;
            let address = pods.into_iter().find_map(|pod| pod.status?.pod_ip?.parse().ok());
            address.ok_or_else(|| "none yet".to_owned())
        });
        Self(address.await)
    }

    /// The address to which clients send requests.
    pub(crate) fn requests(self) -> SocketAddr {
        SocketAddr::new(self.0, GATEWAY_PORT)
    }

    /// Waits until the ingress has seen its probes of these hosts answered.
    pub(crate) async fn has_programmed(self, hosts: &[String]) {
        eventually("the hosts are programmed", PATIENCE, || async {
            let page = whole_answer(SocketAddr::new(self.0, VERDICTS_PORT), "verdicts", "/").await;
            let page = page.map_err(|error| error.to_string())?;
            let is_programmed = |host: &String| page.contains(&format!("{host} programmed"));
            if hosts.iter().all(is_programmed) { Ok(()) } else { Err(page) }
        })
        .await;
    }
}
