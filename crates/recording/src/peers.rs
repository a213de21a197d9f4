//! The pods and activators at the other ends of links, by their names.

use orchestration::Peer;
use vocabulary::{PodName, ReplicaName};

/// The peer of a link, whatever the number of the link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerName {
    Pod(PodName),
    Activator(ReplicaName),
}

impl From<&Peer> for PeerName {
    fn from(peer: &Peer) -> Self {
        match peer {
            Peer::Pod { name, .. } => Self::Pod(name.clone()),
            Peer::Activator { name } => Self::Activator(name.clone()),
        }
    }
}
