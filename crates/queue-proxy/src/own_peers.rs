//! Which connections come from the pod itself or from its node? Those of kubelet do, with probes and hooks;
//! those of clients and of strangers do not.

use std::net::IpAddr;

use dataplane::Connection;

use crate::gateways::gateways;

/// The peers that are the pod itself or its node. A peer that shares the node's address passes for it: a pod
/// on the network of the same node, or a client whose address the node translates.
#[derive(Clone, Debug)]
pub(crate) enum OwnPeers {
    /// The pod by any address of its own, and its node by these.
    PodAndNode(Vec<IpAddr>),
    /// These addresses alone, for tests on loopback.
    #[cfg(test)]
    Only(Vec<IpAddr>),
}

impl OwnPeers {
    /// Of a pod whose node has these addresses, and those of the gateways of this network.
    pub(crate) fn of_pod(node_addresses: &[IpAddr]) -> Self {
        Self::PodAndNode(node_addresses.iter().copied().chain(gateways()).collect())
    }

    /// Whether `peer` is one of them on a connection to the address `own`.
    pub(crate) fn include(&self, peer: IpAddr, own: Option<IpAddr>) -> bool {
        match self {
            Self::PodAndNode(node) => peer.is_loopback() || Some(peer) == own || node.contains(&peer),
            #[cfg(test)]
            Self::Only(addresses) => addresses.contains(&peer),
        }
    }

    /// Whether one of them is the other end of this connection.
    pub(crate) fn are_at(&self, connection: &Connection) -> bool {
        self.include(connection.peer().ip(), connection.own_ip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_and_its_node_are_own_peers_and_others_are_not() {
        let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let peers = OwnPeers::PodAndNode(["172.30.0.2", "10.200.0.1", "fd00::1"].map(address).into());
        for (own, peer, is_own) in [
            ("10.200.0.7", "10.200.0.9", false),
            ("10.200.0.7", "172.30.0.1", false),
            ("10.200.0.7", "172.30.0.2", true),
            ("10.200.0.7", "10.200.0.1", true),
            ("10.200.0.7", "10.200.0.7", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("fd00::7", "fd00::1", true),
            ("fd00::7", "fd00::9", false),
            ("::1", "::1", true),
        ] {
            assert_eq!(peers.include(address(peer), Some(address(own))), is_own, "{peer} to {own}");
        }
        assert!(!peers.include(address("10.200.0.7"), None), "an end that is not known proves nothing");
    }
}
