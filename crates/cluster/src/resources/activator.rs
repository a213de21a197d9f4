//! Which pods of our own namespace are activators, and may they serve?

use std::net::{IpAddr, SocketAddr};

use orchestration::{ActivatorFacts, ActivatorLife};
use vocabulary::{LinkAddress, LinkChannel, ReplicaName};

use crate::resources::pod::{PodLife, PodObject};

/// Where an activator takes its link.
const LINK_PORT: u16 = 8024;

/// An activator that has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActivatorObject {
    pub(crate) name: ReplicaName,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) node: Option<String>,
    /// One address of each family that the cluster has.
    pub(crate) addresses: Vec<IpAddr>,
    /// Where it takes its link.
    link: SocketAddr,
    pub(crate) life: ActivatorLife,
}

/// `None` while it has no address, and once it has ended.
pub(crate) fn of_pod(pod: &PodObject) -> Option<ActivatorObject> {
    let life = match pod.life {
        PodLife::Over => return None,
        PodLife::Terminating(_) => ActivatorLife::Terminating,
        PodLife::Running if pod.is_ready => ActivatorLife::Ready,
        PodLife::Pending | PodLife::Running => ActivatorLife::NotReady,
    };
    Some(ActivatorObject {
        // As it names itself (`POD_NAME`).
        name: ReplicaName::new(&pod.name),
        namespace: pod.namespace.clone(),
        uid: pod.uid.clone(),
        node: pod.node.clone(),
        link: SocketAddr::new(pod.address()?, LINK_PORT),
        addresses: pod.addresses.clone(),
        life,
    })
}

impl ActivatorObject {
    pub(crate) fn facts(&self) -> ActivatorFacts {
        let link = LinkAddress { channel: LinkChannel::TlsOfActivator, ..self.link.into() };
        ActivatorFacts { name: self.name.clone(), link, life: self.life }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::pod::tests::{pod, running};

    #[test]
    fn an_activators_life_is_its_pods() {
        let life = |metadata, status: &serde_json::Value| {
            of_pod(&pod("a", metadata, status)).map(|activator| activator.life)
        };
        assert_eq!(life(json!({}), &running("10.0.0.1", "True")), Some(ActivatorLife::Ready));
        assert_eq!(life(json!({}), &running("10.0.0.1", "False")), Some(ActivatorLife::NotReady));
        assert_eq!(life(json!({}), &json!({"phase": "Pending"})), None);
        let deleted = json!({"deletionTimestamp": "2026-11-22T10:00:00Z"});
        assert_eq!(life(deleted, &running("10.0.0.1", "True")), Some(ActivatorLife::Terminating));
        assert_eq!(life(json!({}), &json!({"phase": "Failed", "podIP": "10.0.0.1"})), None);
    }
}
