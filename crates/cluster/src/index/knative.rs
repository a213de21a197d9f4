//! What follows from the objects of an installed Knative for the control loop, and for each other? (Contract
//! §1.2, §2, §3.)
//!
//! A revision is there as long as its `PodAutoscaler` is. Its workload is its Deployment, which stands among
//! the workloads under the revision's name; so its pods, its count and its Events go the way of all.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use orchestration::{ActivatorLife, RevisionFacts, Subject};
use scaling::RevisionOrigin;
use vocabulary::{BurstCapacity, LinkChannel, PodCount, RequestTimeouts, RevisionName, Routing, Timestamp};

use super::revision_keys;
use super::revisions::RevisionBounds;
use super::{Index, Topic, Workload};
use crate::event_book::EventObject;
use crate::knative::{
    AUTOSCALER_API, AutoscalerClass, DeskWrite, KnativeSurroundings, PodAutoscalerRecord, PublicSlice,
    ReadinessDecider, RevisionDeployment, RevisionReading, ServerlessRecord, WriteEnd, WrittenObject, pods,
    revision_facts,
};
use crate::moment::Moment;
use crate::notice::{BAD_ANNOTATION, Notice};
use crate::resources::ObjectKey;
use crate::resources::activator::ActivatorObject;
use crate::resources::pod::{PodObject, QueueProxyRecord};

impl Index {
    /// A `PodAutoscaler` as the watch shows it.
    pub(crate) fn put_pod_autoscaler(&mut self, record: PodAutoscalerRecord) {
        let name = revision_keys::name_of(&record.key);
        if self.revisions.put_autoscaler(record)
            && let Some(name) = name
        {
            self.revision_changed(&name);
        }
    }

    /// A `PodAutoscaler` is gone, and with it the revision: nothing of it is written any more.
    pub(crate) fn remove_pod_autoscaler(&mut self, key: &ObjectKey) {
        if self.revisions.remove_autoscaler(key)
            && let Some(name) = revision_keys::name_of(key)
        {
            self.services.drop_route(&name);
            self.revision_changed(&name);
        }
    }

    /// A `ServerlessService` as the watch shows it; the route in force is what it says.
    pub(crate) fn put_serverless_service(&mut self, record: ServerlessRecord) {
        let key = record.key.clone();
        self.revisions.book_mut().put_service(record);
        if let Some(name) = revision_keys::name_of(&key) {
            self.find_route(&name);
        }
    }

    /// The `ServerlessService` with this key is gone.
    pub(crate) fn remove_serverless_service(&mut self, key: &ObjectKey) {
        self.revisions.book_mut().remove_service(key);
    }

    /// A Deployment as the watch shows it; `None` for one of no revision, and for one that is gone.
    pub(crate) fn put_revision_deployment(
        &mut self,
        key: &ObjectKey,
        deployment: Option<RevisionDeployment>,
        origin: RevisionOrigin,
    ) {
        let Some(RevisionDeployment { shown, environment }) = deployment else {
            if let Some(revision) = self.revisions.remove_deployment(key) {
                self.remove_workload(&revision);
            }
            return;
        };
        let revision = shown.record.revision.clone();
        // Its labels named another revision before, which has no workload any more.
        let is_of_another = self.revisions.revision_of_deployment(key).is_some_and(|of| *of != revision);
        if is_of_another && let Some(former) = self.revisions.remove_deployment(key) {
            self.remove_workload(&former);
        }
        let is_news = self.revisions.put_deployment(key.clone(), &revision, environment);
        self.put_workload(*shown, origin);
        if is_news {
            self.notices.tell(Topic::Pods(revision.clone()));
            self.notices.tell(Topic::Revision(revision));
        }
    }

    /// A slice of a public Service; `None` for one of no Service, and for one that is gone.
    pub(crate) fn put_public_slice(&mut self, key: &ObjectKey, slice: Option<PublicSlice>, now: Timestamp) {
        let activators = self.addresses_of_activators();
        for service in self.revisions.put_slice(key, slice) {
            self.revisions.review_path(&service, &activators, now);
            // A pod that leaves waits until no slice names it.
            self.notices.reroute_all(revision_keys::name_of(&service));
        }
    }

    /// The progress deadline that `config-deployment` sets.
    pub(crate) fn put_progress_deadline(&mut self, deadline: Duration) {
        if self.revisions.put_progress_deadline(deadline) {
            for name in self.revisions.names().collect::<Vec<_>>() {
                self.revision_changed(&name);
            }
        }
    }

    /// Activators have come or gone: what slices name may be activators alone from now on, or no more.
    pub(super) fn review_paths(&mut self, now: Timestamp) {
        let activators = self.addresses_of_activators();
        for service in self.revisions.services_with_slices() {
            self.revisions.review_path(&service, &activators, now);
        }
    }

    fn addresses_of_activators(&self) -> BTreeSet<IpAddr> {
        self.pods.activators().flat_map(|activator| activator.addresses.iter().copied()).collect()
    }

    /// Reads the settings of a revision anew, of which bounds and warnings follow.
    pub(super) fn review_revision(&mut self, revision: &RevisionName) {
        let Some(key) = revision_keys::key_of(revision) else { return };
        let Some(reading) = self.read_revision(&key, PodCount::ZERO) else { return };
        let RevisionReading { facts, warnings } = reading;
        let (limit, deadline) = (facts.container_concurrency, facts.progress_deadline);
        let spec = facts.settings.resolve(self.workloads.cluster(), limit, deadline);
        let bounds = RevisionBounds {
            min: spec.min_scale,
            initial: spec.initial_scale,
            progress_deadline: deadline,
            warnings: warnings.into_iter().map(|text| Notice::new(BAD_ANNOTATION, text)).collect(),
        };
        self.revisions.put_bounds(&key, bounds);
        self.count_ready(revision);
    }

    /// A revision as its objects say it, at this count.
    fn read_revision(&self, key: &ObjectKey, wanted: PodCount) -> Option<RevisionReading> {
        let autoscaler = self.revisions.autoscaler(key)?;
        let around = KnativeSurroundings {
            cluster: self.workloads.cluster(),
            progress_deadline: self.revisions.progress_deadline(),
            environment: self.revisions.environment(key),
            wanted,
            domain: self.revisions.domain()?,
        };
        revision_facts(autoscaler, around).ok()
    }

    /// The facts of a revision; `None` while its `PodAutoscaler` or its Deployment is not there.
    pub(super) fn knative_facts(&self, key: &ObjectKey, workload: &Workload) -> Option<RevisionFacts> {
        let target = &self.revisions.autoscaler(key)?.target.name;
        let wanted = self.workloads.counts().wanted(&workload.record.revision)?;
        let reading = (*target == workload.record.object).then(|| self.read_revision(key, wanted))??;
        // An activator of Knative's shows no key: as long as one is there its word counts without.
        let hop_keys =
            if self.has_knatives_activators() { Vec::new() } else { self.workloads.hop_keys_of(workload) };
        let timeouts = RequestTimeouts { late: self.late_timeout, ..reading.facts.timeouts };
        Some(RevisionFacts { hop_keys, timeouts, ..reading.facts })
    }

    /// Whether an activator of Knative's may be in the path of revisions.
    pub(super) fn has_knatives_activators(&self) -> bool {
        self.pods.activators().any(ActivatorObject::is_knatives)
    }

    /// Whether a pod takes a link. In an installed Knative that is so of ebb's queue-proxies alone, and of
    /// those only if no probe of the pod is kubelet's: else Kubernetes' word on its readiness has to hold.
    pub(super) fn takes_link(&self, revision: &RevisionName, pod: &PodObject) -> bool {
        let Some(key) = revision_keys::key_of(revision) else { return true };
        let is_whole = self.revisions.environment(&key).readiness == ReadinessDecider::QueueProxy;
        is_whole && pod.queue_proxy.as_ref().is_some_and(QueueProxyRecord::takes_link)
    }

    /// How the autoscaler hears of the load of a pod of a revision of Knative's. Two kinds of pods are not
    /// asked: with `target-burst-capacity` −1 activators hold every request, and a revision of another class
    /// is not scaled here.
    pub(super) fn channel_of(&self, revision: &RevisionName) -> Option<LinkChannel> {
        let key = revision_keys::key_of(revision)?;
        // The pods of a revision that is gone go on as they were asked, until they end.
        let Some(RevisionReading { facts, .. }) = self.read_revision(&key, PodCount::ZERO) else {
            return Some(LinkChannel::Scraped);
        };
        let of_cluster = self.workloads.cluster().target_burst_capacity;
        let capacity = facts.settings.target_burst_capacity.unwrap_or(of_cluster);
        let is_asked = facts.may_write && capacity != BurstCapacity::Unlimited;
        Some(if is_asked { LinkChannel::Scraped } else { LinkChannel::Unasked })
    }

    /// The status says how many pods Kubernetes calls ready.
    pub(super) fn count_ready(&mut self, revision: &RevisionName) {
        let Some(key) = revision_keys::key_of(revision) else { return };
        let ready = pods::ready_pods(self.pods_of(revision).map(|pod| &pod.record));
        self.revisions.put_ready(&key, ready);
    }

    /// Takes in what was decided about a revision; one that came by a Service keeps nothing of that.
    pub(crate) fn note_decision(
        &mut self,
        revision: &RevisionName,
        intended: Option<PodCount>,
        activators: PodCount,
    ) {
        let Some(key) = revision_keys::key_of(revision) else { return };
        self.revisions.put_decision(&key, intended, activators);
        self.count_ready(revision);
    }

    /// The route of a revision, as it was ordered; `false` if that is none of Knative's.
    pub(crate) fn note_revision_route(&mut self, revision: &RevisionName, routing: Routing) -> bool {
        let Some(key) = revision_keys::key_of(revision) else { return false };
        self.revisions.put_routing(&key, routing);
        true
    }

    /// Whether nothing is written of a revision of Knative's that is known: another controller scales it, or
    /// its `PodAutoscaler` is gone before its pods.
    pub(crate) fn is_served_only(&self, revision: &RevisionName) -> bool {
        match self.class_of(revision) {
            Some(class) => class != AutoscalerClass::Ours,
            None => self.is_left_behind(revision),
        }
    }

    /// Whether a `PodAutoscaler` of ours is there.
    pub(crate) fn has_revision(&self, revision: &RevisionName) -> bool {
        self.class_of(revision) == Some(AutoscalerClass::Ours)
    }

    /// The class of the `PodAutoscaler` of a revision of Knative's, if that is there.
    fn class_of(&self, revision: &RevisionName) -> Option<AutoscalerClass> {
        let key = revision_keys::key_of(revision)?;
        self.revisions.autoscaler(&key).map(|autoscaler| autoscaler.class)
    }

    /// Whether the route that was ordered last is in force.
    pub(crate) fn is_revision_route_in_force(&self, revision: &RevisionName) -> bool {
        let Some(key) = revision_keys::key_of(revision) else { return false };
        self.revisions.is_route_in_force(&key, &self.addresses_beside_route(revision))
    }

    /// The addresses of activators that are not in the route of a revision. While clients get one of them the
    /// route is not in force: an activator on its way out would be let go too early. A route that names no
    /// activator leaves out those that terminate.
    fn addresses_beside_route(&self, revision: &RevisionName) -> BTreeSet<IpAddr> {
        let route = self.services.route(revision);
        let named = route.map(|route| route.activators.as_slice()).unwrap_or_default();
        let is_beside = |activator: &&ActivatorObject| {
            if named.is_empty() {
                activator.life == ActivatorLife::Terminating
            } else {
                !named.contains(&activator.name)
            }
        };
        let beside = self.pods.activators().filter(is_beside);
        beside.flat_map(|activator| activator.addresses.iter().copied()).collect()
    }

    /// Whether nothing could reach the last pod past activators; `true` for what is none of Knative's.
    pub(super) fn may_end_last_pod(&self, revision: &RevisionName) -> bool {
        revision_keys::key_of(revision).is_none_or(|key| self.revisions.is_path_confirmed(&key))
    }

    /// The next write of a revision for which `is_owned` holds. Ask until there is none.
    pub(crate) fn next_revision_write(
        &mut self,
        moment: Moment,
        is_owned: impl Fn(&RevisionName) -> bool,
    ) -> Option<(RevisionName, DeskWrite)> {
        let is_owned = |key: &ObjectKey| revision_keys::name_of(key).is_some_and(|name| is_owned(&name));
        let (key, write) = self.revisions.book_mut().next_write(moment, is_owned)?;
        Some((revision_keys::name_of(&key)?, write))
    }

    /// A write of a revision has ended.
    pub(crate) fn revision_write_ended(
        &mut self,
        revision: &RevisionName,
        object: WrittenObject,
        end: WriteEnd,
        now: Timestamp,
    ) {
        if let Some(key) = revision_keys::key_of(revision) {
            self.revisions.book_mut().ended(&key, object, end, now);
        }
    }

    /// When a write of a revision may be due; at once while one waits for its turn.
    pub(crate) fn next_revision_deadline(&self) -> Option<Timestamp> {
        let waiting = self.revisions.book().is_touched().then_some(Timestamp::ZERO);
        waiting.into_iter().chain(self.revisions.book().next_deadline()).min()
    }

    /// The objects on which people see what is said about a subject: of a revision of Knative's its
    /// Deployment, too.
    pub(crate) fn event_objects(&self, about: &Subject) -> Vec<EventObject> {
        let deployment = match about {
            Subject::Revision(revision) if revision_keys::key_of(revision).is_some() => {
                self.workload_object(revision)
            }
            Subject::Revision(_) | Subject::Configuration | Subject::Pod(_) | Subject::Activator(_) => None,
        };
        self.event_object(about).into_iter().chain(deployment).collect()
    }

    /// The object of a revision of Knative's that it exists by: its `PodAutoscaler`.
    pub(super) fn revision_object(&self, key: &ObjectKey) -> Option<EventObject> {
        let autoscaler = self.revisions.autoscaler(key)?;
        Some(EventObject {
            api_version: AUTOSCALER_API.to_owned(),
            kind: "PodAutoscaler".to_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: autoscaler.uid.clone(),
        })
    }
}
