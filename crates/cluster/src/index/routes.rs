//! Which addresses could serve a revision's Services now, and which slices follow from that?

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{PodReach, RouteInForce};
use vocabulary::{PodCount, PodName, PodState, RevisionName, Routing};

use super::{Index, Topic, revision_keys};
use crate::custody::Custody;
use crate::resources::ObjectKey;
use crate::resources::activator::ActivatorObject;
use crate::resources::other_slice::SliceWriter;
use crate::resources::pod::{PodLife, PodObject};
use crate::resources::service::AdoptedService;
use crate::slices::{self, PodReference, Servers, ServiceRoute, ServingAddress, SliceChange};

impl Index {
    /// What is to be written so that a revision's slices are as they should be. Nothing is for a Service
    /// whose ports have not got theirs, nor before anybody has decided while no pod is ready.
    pub(crate) fn slice_changes(&self, revision: &RevisionName) -> Vec<SliceChange> {
        let keys = self.services.keys_of(revision);
        keys.filter_map(|key| self.changes_of_service(key, revision)).flatten().collect()
    }

    /// Whether a Service has slices of ours.
    pub(crate) fn has_slices(&self, key: &ObjectKey) -> bool {
        self.services.has_slices(key)
    }

    /// Whether a revision has no pods and is to have none, so that it got no request lately.
    pub(crate) fn is_at_rest(&self, revision: &RevisionName) -> bool {
        let is_to_have_none =
            self.workloads.counts().greatest_count(revision).is_none_or(|count| count == PodCount::ZERO);
        is_to_have_none
            && self.workloads.get(revision).is_none_or(|workload| workload.record.present == PodCount::ZERO)
    }

    fn changes_of_service(&self, key: &ObjectKey, revision: &RevisionName) -> Option<Vec<SliceChange>> {
        let (service, custody) = (self.services.record(key)?, self.services.custody(key)?);
        let present: Vec<&EndpointSlice> = self.services.slices_of(key, &service.uid).collect();
        // Before the first order, for which an activator or a link is needed, ready pods serve.
        let undecided = RouteInForce { routing: Routing::Direct, activators: Vec::new() };
        let decided = self.services.route(revision);
        let route = decided.unwrap_or(&undecided);
        let side = match custody {
            Custody::Adopted(_) if self.stays_direct(revision) => Routing::Direct,
            Custody::Adopted(_) => route.routing,
            Custody::GivingBack(_) if self.is_served_by_kubernetes(key, revision) => {
                return Some(slices::changes(&[], &present));
            }
            // A Service that is not ours any more is served directly while a pod is ready, as Kubernetes will
            // serve it again.
            Custody::GivingBack(_) | Custody::Abandoned(_) => Routing::Direct,
            Custody::Foreign | Custody::Refused(_) | Custody::Prepared(_) | Custody::Lingering(_) => {
                return None;
            }
        };
        self.workloads.get(revision)?;
        let service = self.services.adopted(key).filter(|service| self.ports.is_settled(&service.uid))?;
        let entrances = self.entrances_of_service(service);
        let proof = self.ports.proof(service, &entrances)?;
        let route = ServiceRoute { service, entrances, proof, route, side };
        let servers = self.servers(&route);
        if decided.is_none() && servers.ready_pods.is_empty() {
            return None;
        }
        let desired = slices::desired(&route, &servers, &present);
        Some(slices::changes(&desired, &present))
    }

    fn servers(&self, route: &ServiceRoute<'_>) -> Servers {
        let ServiceRoute { service, entrances, route, proof: _, side: _ } = route;
        let mut servers = Servers::default();
        let ours = self.pods_of(&service.revision).map(|pod| (&pod.record, pod.reported_state, pod.reach));
        // Pods without a queue-proxy have no link: only kubelet says whether they are ready.
        let plain = self.plain_pods_of(&service.revision).map(|pod| (pod, None, PodReach::Reachable));
        for (pod, reported, reach) in ours.chain(plain) {
            let ready = match reach {
                PodReach::Reachable => &mut servers.ready_pods,
                PodReach::Unreachable => &mut servers.unreachable_pods,
            };
            let Some(address) = self.pod_address(pod, service) else { continue };
            match (pod.life, reported) {
                (PodLife::Terminating(_), _) | (PodLife::Running, Some(PodState::Draining)) => {
                    servers.ending_pods.push(address);
                }
                (PodLife::Running, Some(PodState::Ready)) => ready.push(address),
                (PodLife::Running, None | Some(PodState::Unheard)) if pod.is_ready => ready.push(address),
                (PodLife::Running | PodLife::Pending, _) if service.names_unready => {
                    ready.push(ServingAddress { is_serving: false, ..address });
                }
                (
                    PodLife::Running,
                    None | Some(PodState::Unheard | PodState::Starting | PodState::Unready),
                )
                | (PodLife::Pending | PodLife::Over, _) => {}
            }
        }
        servers.activators = self.activator_addresses(route, entrances);
        servers
    }

    fn pod_address(&self, pod: &PodObject, service: &AdoptedService) -> Option<ServingAddress> {
        let PodObject { namespace, name, uid, .. } = pod;
        (!pod.addresses.is_empty()).then(|| ServingAddress {
            addresses: pod.addresses.clone(),
            is_serving: true,
            ports: service.ports.iter().map(|port| pod.port(port)).collect(),
            node: pod.node.clone(),
            zone: self.pods.zone(pod.node.as_deref()),
            pod: PodReference { namespace: namespace.clone(), name: name.clone(), uid: uid.clone() },
        })
    }

    fn activator_addresses(&self, route: &RouteInForce, entrances: &[Option<u16>]) -> Vec<ServingAddress> {
        let named = route.activators.iter().filter_map(|name| self.pods.activator(name));
        let address = |activator: &ActivatorObject| ServingAddress {
            addresses: activator.addresses.clone(),
            is_serving: true,
            ports: entrances.to_vec(),
            node: activator.node.clone(),
            zone: self.pods.zone(activator.node.as_deref()),
            pod: PodReference {
                namespace: activator.namespace.clone(),
                name: activator.name.as_str().to_owned(),
                uid: activator.uid.clone(),
            },
        };
        named.map(address).collect()
    }

    /// Whether those that Kubernetes writes for its selector have somebody ready. Without the workload nobody
    /// ever will be.
    pub(super) fn is_served_by_kubernetes(&self, key: &ObjectKey, revision: &RevisionName) -> bool {
        let mut own = self.services.leftovers_of(key).filter(|slice| slice.writer == SliceWriter::Controller);
        own.any(|slice| slice.has_ready) || self.workloads.is_missing(revision)
    }

    /// Whether clients get a pod's address, as far as we know: a slice of ours names the pod, or, where the
    /// revision is Knative's, a slice of its public Service does.
    pub(crate) fn is_pod_named(&self, revision: &RevisionName, pod: &PodName) -> bool {
        let Some(pod) = self.pods.get(pod) else { return false };
        if let Some(key) = revision_keys::key_of(revision) {
            return self.revisions.named(&key).any(|address| pod.record.addresses.contains(&address));
        }
        let slices = self.services.all_slices_of(revision);
        let mut references =
            slices.flat_map(|slice| &slice.endpoints).filter_map(|endpoint| endpoint.target_ref.as_ref());
        references.any(|reference| reference.uid.as_deref() == Some(pod.record.uid.as_str()))
    }

    /// The route that is in force before anybody has ordered one: that of our slices, or, where Kubernetes
    /// writes them, its pods.
    pub(super) fn found_route(&self, revision: &RevisionName) -> Option<RouteInForce> {
        if let Some(key) = revision_keys::key_of(revision) {
            return self.revisions.found_route(&key);
        }
        let written = self.services.all_slices_of(revision).find_map(slices::route_of);
        let mut keys = self.services.keys_of(revision);
        written.or_else(|| {
            // Before all is listed, slices of ours may yet come.
            let is_direct = self.workloads.is_listed()
                && keys.any(|key| self.services.leftovers_of(key).next().is_some());
            is_direct.then(|| RouteInForce { routing: Routing::Direct, activators: Vec::new() })
        })
    }

    /// Takes in the route that is in force, unless a better one is known. Who stands by follows what the
    /// owner writes, so as to go on from there.
    pub(super) fn find_route(&mut self, revision: &RevisionName) {
        if self.services.is_route_ordered(revision) {
            return;
        }
        let Some(found) = self.found_route(revision) else { return };
        self.note_revision_route(revision, found.routing);
        if self.services.put_found_route(revision, found) {
            self.notices.tell(Topic::Route(revision.clone()));
        }
    }
}
