//! Which ports of activators lead where, and what about Services' ports should people know?

use std::collections::BTreeSet;
use std::time::Duration;

use orchestration::Entrance;
use vocabulary::{Bucket, PodExits, RevisionName, Timestamp};

use super::Index;
use super::pods::Pod;
use super::proofs::UnsignedSlices;
use crate::notice::{NO_PORT_LEFT, NOT_INJECTED, Notice, PORT_NOT_DECLARED};
use crate::port_book::books::PortHandover;
use crate::port_book::{LeaseNotes, PortEntry, PortNotes, PortSeeker, WallSeconds};
use crate::resources::ObjectKey;
use crate::resources::pod::PodLife;
use crate::resources::ports::{PortKind, ServicePort, TargetPort};
use crate::resources::service::AdoptedService;

/// A workload that is applied together with its Service comes this soon after it.
const WORKLOAD_FOLLOWS_WITHIN: Duration = Duration::from_mins(1);

impl Index {
    /// The ports of a bucket are ours to give from now on.
    pub(crate) fn take_over_ports(
        &mut self,
        bucket: Bucket,
        notes: &LeaseNotes,
        elsewhere: &[&LeaseNotes],
        wall: WallSeconds,
    ) {
        let notes = PortNotes::read(notes);
        let elsewhere = elsewhere.iter().map(|notes| PortNotes::read(notes)).collect();
        // Slices say what the former owner gave, until now.
        let handover = PortHandover { notes, elsewhere, claims: self.claims_of_slices() };
        let believes_unsigned = wall < handover.unsigned_until(wall);
        let waiting = self.revisions_waiting_for_ports();
        self.ports.take_over(bucket, handover, wall);
        // Ports that stand on the Lease already may be used at once.
        for revision in waiting {
            if !self.has_unsettled_ports(&revision) {
                self.revision_changed(&revision);
            }
        }
        self.judge_unsigned(
            bucket,
            if believes_unsigned { UnsignedSlices::Believed } else { UnsignedSlices::Refused },
        );
        self.ports.unsettle_all(self.services.keys().cloned());
        // What changed while the bucket had no owner was written by none, and no order need come for it.
        self.notices.reroute_all(self.services.served().cloned());
    }

    /// The ports of a bucket are another owner's to give.
    pub(crate) fn give_up_ports(&mut self, bucket: Bucket) {
        self.ports.give_up(bucket);
    }

    /// Gives ports to Services that have none yet; what is given may be used once it is noted.
    pub(crate) fn settle_ports(&mut self, now: Timestamp, wall: WallSeconds) {
        for revision in self.ports.expire(now) {
            self.revision_changed(&revision);
        }
        let starving = self.ports.starving(wall);
        let hungry = self.services.all_adopted().filter(|(_, service)| starving.contains(&service.uid));
        self.ports.unsettle_all(hungry.map(|(key, _)| key.clone()));
        for key in self.ports.take_unsettled() {
            let Some(service) = self.services.adopted(&key) else { continue };
            let Some(ports) = self.ports_that_seek(&key, service, wall) else { continue };
            let (uid, revision) = (service.uid.as_str(), &service.revision);
            let seeker = PortSeeker { uid, revision, ports };
            let revision = revision.clone();
            if self.ports.settle(&seeker, now, wall) {
                self.notice_service(&key);
                self.revision_changed(&revision);
            }
        }
        self.ports.all_settled(now, wall);
        self.note_signed_buckets(wall);
    }

    /// The ports of a Service for which ports of activators are sought; `None` while none is to be given.
    fn ports_that_seek<'a>(
        &self,
        key: &ObjectKey,
        service: &'a AdoptedService,
        wall: WallSeconds,
    ) -> Option<Vec<&'a ServicePort>> {
        if let Some(workload) = self.workloads.get(&service.revision) {
            let kinds = &workload.record.ports;
            let served = service.ports.iter().filter(|port| kinds.kind(port) == PortKind::Served);
            return Some(served.collect());
        }
        // Which of them are served, the workload's template will say. A port that proves to be none of these
        // is let go then.
        let may_be_served = service.ports.iter().filter(|port| port.speaks_http());
        self.awaits_workload(key, service, wall).then(|| may_be_served.collect())
    }

    /// Whether a Service was made a moment ago and its workload is to follow. Its ports are given now, so
    /// that they are on the Lease when the workload comes and the first connections wait for no write of the
    /// Lease. A Service that stands alone for longer gets its ports with the workload: what is given before
    /// stands in no slice, so each new owner of the bucket would let it rest and give another port.
    fn awaits_workload(&self, key: &ObjectKey, service: &AdoptedService, wall: WallSeconds) -> bool {
        let created = self.services.record(key).and_then(|service| service.created);
        let created = created.and_then(|created| u64::try_from(created.as_second()).ok()).map(WallSeconds);
        let is_new = created.is_some_and(|created| wall.since(created) < WORKLOAD_FOLLOWS_WITHIN);
        is_new
            && self.workloads.is_missing(&service.revision)
            && !self.workloads.is_unscalable(&service.revision)
            && !self.ports.has_some_of(&service.uid)
    }

    /// What is to stand on Leases of ours, where that may be something else than at the last call.
    pub(crate) fn port_notes(&mut self) -> Vec<(Bucket, LeaseNotes)> {
        self.ports.news()
    }

    /// What stands on a bucket's.
    pub(crate) fn ports_noted(&mut self, bucket: Bucket, notes: &LeaseNotes) {
        if !self.ports.is_waiting(bucket) {
            return;
        }
        let waiting = self.revisions_waiting_for_ports();
        if self.ports.recorded(bucket, &PortNotes::read(notes)) {
            for revision in waiting {
                self.revision_changed(&revision);
            }
        }
    }

    /// The revisions with Services whose ports are not settled. Asked before something settles them: after
    /// that it is lost which Services waited.
    fn revisions_waiting_for_ports(&self) -> BTreeSet<RevisionName> {
        let services = self.services.all_adopted().map(|(_, service)| service);
        let waiting = services.filter(|service| !self.ports.is_settled(&service.uid));
        waiting.map(|service| service.revision.clone()).collect()
    }

    /// No activator listens at this port any more.
    pub(crate) fn release_port(&mut self, port: u16, wall: WallSeconds) {
        self.ports.rest(port, wall);
    }

    /// When [`Index::settle_ports`] has something to do by itself.
    pub(crate) fn next_port_deadline(&self) -> Option<Timestamp> {
        self.ports.next_deadline()
    }

    /// Whether pods serve past us, so that no activator could hold requests for them, or count them: then
    /// they are not taken out of the path, nor away.
    pub(crate) fn stays_direct(&self, revision: &RevisionName) -> bool {
        let mut services = self.services.of_revision(revision);
        services.any(|service| self.unheld_ports(service).next().is_some()) || self.has_bare_pods(revision)
    }

    /// What a workload's template says of its Services' ports may be something else now.
    pub(super) fn unsettle(&mut self, revision: &RevisionName) {
        self.ports.unsettle_all(self.services.keys_of(revision).cloned());
    }

    /// The activators' ports before a Service's, in the order of these.
    pub(super) fn entrances_of_service(&self, service: &AdoptedService) -> Vec<Option<u16>> {
        service.ports.iter().map(|port| self.entry(service, port).and_then(|entry| entry.port)).collect()
    }

    fn entry(&self, service: &AdoptedService, port: &ServicePort) -> Option<&PortEntry> {
        self.ports.of_service(&service.uid).find(|entry| entry.name == port.name)
    }

    /// All of a revision's; `None` while they are not all known.
    pub(super) fn entrances(&self, revision: &RevisionName) -> Option<Vec<Entrance>> {
        // Less than all must not be told: what is missing would be taken for given up, and released.
        if self.has_unsettled_ports(revision) {
            return None;
        }
        let mut entrances = BTreeSet::new();
        for service in self.services.of_revision(revision) {
            let ports = self.ports.of_service(&service.uid).filter_map(|entry| entry.port);
            entrances.extend(ports.map(Entrance::Port));
        }
        let former = self.ports.former_of(revision).map(|(port, _)| Entrance::Port(port));
        entrances.extend(former);
        Some(entrances.into_iter().collect())
    }

    /// Whether a workload would be served, were all ports of its Services on the Lease.
    pub(super) fn awaits_ports(&self, revision: &RevisionName) -> bool {
        let has_settings = self.workloads.get(revision).is_some_and(|workload| workload.settings.is_some());
        has_settings && self.has_unsettled_ports(revision)
    }

    fn has_unsettled_ports(&self, revision: &RevisionName) -> bool {
        self.services.of_revision(revision).any(|service| !self.ports.is_settled(&service.uid))
    }

    /// Where in a pod requests go that come by an activator's port, if not where it takes requests usually.
    pub(super) fn exits(&self, revision: &RevisionName, pod: &Pod) -> PodExits {
        let Some(usual) = pod.record.queue_proxy.as_ref().map(|queue_proxy| queue_proxy.requests_port) else {
            return PodExits::default();
        };
        let served =
            self.services.of_revision(revision).flat_map(|service| self.ports.of_service(&service.uid));
        let served = served.filter_map(|entry| Some((entry.port?, entry.target.as_ref())));
        let former = self.ports.former_of(revision).map(|(port, former)| (port, former.target.as_ref()));
        let exits = served.chain(former).filter_map(|(entrance, target): (u16, Option<&TargetPort>)| {
            let target = target?;
            // A pod of another template may have no queue-proxy before it.
            let port = pod.record.served(target).or_else(|| pod.record.ports.number(target))?;
            (port != usual).then_some((entrance, port))
        });
        PodExits(exits.collect())
    }

    /// Ports of a Service that lead past activators although their requests are ours to hold.
    fn unheld_ports<'a>(
        &'a self,
        service: &'a AdoptedService,
    ) -> impl Iterator<Item = (&'a ServicePort, PortKind)> {
        let kinds = self.workloads.get(&service.revision).map(|workload| &workload.record.ports);
        let ports = service.ports.iter().filter_map(move |port| Some((port, kinds?.kind(port))));
        ports.filter(|(port, kind)| match kind {
            PortKind::Plain => false,
            PortKind::Undeclared => true,
            PortKind::Served => self.entry(service, port).is_some_and(|entry| entry.port.is_none()),
        })
    }

    /// Whether there are pods without a queue-proxy, or without one before each port that a Service leads to.
    fn has_bare_pods(&self, revision: &RevisionName) -> bool {
        let pods = self.pods_of(revision).map(|pod| &pod.record).chain(self.plain_pods_of(revision));
        let mut living = pods.filter(|pod| matches!(pod.life, PodLife::Pending | PodLife::Running));
        living.any(|pod| {
            let mut ports = self.services.of_revision(revision).flat_map(|service| &service.ports);
            ports.any(|port| pod.ports.kind(port) == PortKind::Served && pod.served(&port.target).is_none())
        })
    }

    /// What people should know of a Service's ports.
    pub(super) fn port_problems(&self, service: &AdoptedService) -> Vec<Notice> {
        let revision = &service.revision;
        let mut problems: Vec<Notice> = Vec::new();
        for (port, kind) in self.unheld_ports(service) {
            let named = port.text();
            problems.push(match kind {
                PortKind::Plain | PortKind::Served => Notice::new(NO_PORT_LEFT, format!(
                    "port {named}: all ports of activators are given, so {revision} is served direct and its count not lowered, until one comes free"
                )),
                PortKind::Undeclared => Notice::new(PORT_NOT_DECLARED, undeclared(port, revision)),
            });
        }
        if self.has_bare_pods(revision) {
            let text = format!(
                "there are pods without a queue-proxy, or not before each port; until they are gone {revision} is served direct and its count not lowered (the label ebb.dev/inject: \"true\" on its template, or `ebb inject`, gives new pods one)"
            );
            problems.push(Notice::new(NOT_INJECTED, text));
        }
        problems
    }
}

fn undeclared(port: &ServicePort, revision: &RevisionName) -> String {
    let (target, line) = match &port.target {
        TargetPort::Number(number) => (
            number.to_string(),
            format!(
                "\"containerPort: {number}\", or the annotation ebb.dev/ports: \"{number}\" (ebb.dev/plain-ports if it is no HTTP)"
            ),
        ),
        TargetPort::Name(name) => (format!("{name:?}"), format!("a port of the name {name:?}")),
    };
    format!(
        "port {} leads to {target}, which no container of {revision} declares, so that is served direct and its count not lowered; add {line} to its template",
        port.text()
    )
}
