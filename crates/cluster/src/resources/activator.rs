//! Which pods of our own namespace are activators, and may they serve?

use std::net::{IpAddr, SocketAddr};

use orchestration::{ActivatorFacts, ActivatorLife};
use vocabulary::{LinkAddress, LinkChannel, ReplicaName};

use crate::resources::pod::{PodLife, PodObject};
use crate::resources::ports::TargetPort;

/// Where an activator takes its link.
const LINK_PORT: u16 = 8024;
/// The name of that port in the container of ebb's activator.
const LINK_PORT_NAME: &str = "link";

/// An activator that has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActivatorObject {
    pub(crate) name: ReplicaName,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) node: Option<String>,
    /// One address of each family that the cluster has.
    pub(crate) addresses: Vec<IpAddr>,
    /// Where it takes its link, or, if it is Knative's, that it takes none.
    link: LinkAddress,
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
        link: LinkAddress {
            channel: LinkChannel::TlsOfActivator,
            ..SocketAddr::new(pod.address()?, LINK_PORT).into()
        },
        addresses: pod.addresses.clone(),
        life,
    })
}

impl ActivatorObject {
    /// The same in an installed Knative, where an activator may be Knative's: only ebb's declares a port by
    /// the name of a link.
    pub(crate) fn beside_knatives(self, pod: &PodObject) -> Self {
        let is_ebbs = pod.ports.number(&TargetPort::Name(LINK_PORT_NAME.to_owned())).is_some();
        let channel = if is_ebbs { self.link.channel } else { LinkChannel::Pushed };
        Self { link: LinkAddress { channel, ..self.link }, ..self }
    }

    /// Whether it is Knative's, which knows no hop key.
    pub(crate) fn is_knatives(&self) -> bool {
        self.link.channel == LinkChannel::Pushed
    }

    pub(crate) fn facts(&self) -> ActivatorFacts {
        ActivatorFacts { name: self.name.clone(), link: self.link, life: self.life }
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

    #[test]
    fn an_activator_of_knatives_takes_no_link() {
        let channel = |ports: serde_json::Value| {
            let mut of = pod("a", json!({}), &running("10.0.0.1", "True"));
            let spec = json!({"containers": [{"name": "activator", "ports": ports}]});
            let spec = serde_json::from_value(spec).expect("the spec of a pod");
            of.ports = crate::resources::ports::ContainerPorts::read(Some(&spec), None);
            of_pod(&of).expect("it has an address").beside_knatives(&of).facts().link.channel
        };
        assert_eq!(channel(json!([{"name": "http1", "containerPort": 8012}])), LinkChannel::Pushed);
        let ours = json!([{"name": "link", "containerPort": 8024}]);
        assert_eq!(channel(ours), LinkChannel::TlsOfActivator);
    }
}
