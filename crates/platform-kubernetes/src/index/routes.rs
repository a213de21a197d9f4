//! Who could serve a revision's Services now, and which slices follow from that?

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::RouteInForce;
use vocabulary::{PodState, RevisionName, Routing};

use super::Index;
use crate::resources::activator::ActivatorRecord;
use crate::resources::pod::{PodLife, PodRecord};
use crate::resources::service::AdoptedService;
use crate::slices::{self, PodReference, Servers, ServiceRoute, ServingAddress, SliceChange};

impl Index {
    /// What is to be written so that a revision's slices are as they should be. Without a route nothing is, nor for a Service whose ports have not got theirs.
    pub(crate) fn slice_changes(&self, revision: &RevisionName) -> Vec<SliceChange> {
        let Some(route) = self.routes.get(revision).filter(|_| self.workloads.contains_key(revision)) else {
            return Vec::new();
        };
        let side = if self.stays_direct(revision) { Routing::Direct } else { route.routing };
        let settled = self.services_of(revision).filter(|service| self.ports.is_settled(&service.uid));
        let changes = settled.map(|service| {
            let entrances = self.entrances_of_service(service);
            let route = ServiceRoute { service, entrances, route, side };
            let present: Vec<&EndpointSlice> = self.slices_of(service).collect();
            slices::changes(slices::desired(&route, &self.servers(&route)), &present)
        });
        changes.flatten().collect()
    }

    fn servers(&self, route: &ServiceRoute<'_>) -> Servers {
        let ServiceRoute { service, entrances, route, side: _ } = route;
        let mut servers = Servers::default();
        let ours = self.pods_of(&service.revision).map(|pod| (&pod.record, pod.said));
        // Kubernetes' word is all there is of those.
        let plain = self.plain_pods_of(&service.revision).map(|pod| (pod, None));
        for (pod, said) in ours.chain(plain) {
            let Some(address) = pod_address(pod, service) else { continue };
            match (pod.life, said) {
                (PodLife::Terminating(_), _) | (PodLife::Running, Some(PodState::Draining)) => {
                    servers.ending_pods.push(address);
                }
                (PodLife::Running, Some(PodState::Ready)) => servers.ready_pods.push(address),
                (PodLife::Running, None | Some(PodState::Unheard)) if pod.is_ready => {
                    servers.ready_pods.push(address);
                }
                (
                    PodLife::Running,
                    None | Some(PodState::Unheard | PodState::Starting | PodState::Unready),
                )
                | (PodLife::Pending | PodLife::Over, _) => {}
            }
        }
        servers.activators = activator_addresses(self, route, entrances);
        servers
    }
}

fn pod_address(pod: &PodRecord, service: &AdoptedService) -> Option<ServingAddress> {
    Some(ServingAddress {
        address: pod.address?,
        ports: service.ports.iter().map(|port| pod.port(port)).collect(),
        node: pod.node.clone(),
        pod: PodReference { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() },
    })
}

fn activator_addresses(
    index: &Index,
    route: &RouteInForce,
    entrances: &[Option<u16>],
) -> Vec<ServingAddress> {
    let named = route.activators.iter().filter_map(|name| index.activators.get(name));
    let address = |activator: &ActivatorRecord| ServingAddress {
        address: activator.address,
        ports: entrances.to_vec(),
        node: activator.node.clone(),
        pod: PodReference {
            namespace: activator.namespace.clone(),
            name: activator.name.as_str().to_owned(),
            uid: activator.uid.clone(),
        },
    };
    named.map(address).collect()
}
