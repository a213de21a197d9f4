//! What the platform says. State, not edges: each fact replaces what was known, and one about a stranger is
//! ignored.

mod order_endings;
mod ownership;

use std::collections::BTreeSet;
use std::sync::Arc;

use scaling::Event;
use settings::{ClusterConfig, ScalingSpec};
use vocabulary::{PodCount, PodId, ReplicaId, ReplicaName, Reporter, RevisionId, RevisionName, Timestamp};

use crate::events::{ControlCommand, Peer, Priority, Unassignment};
use crate::facts::{ActivatorFacts, Entrance, PlatformFact, PodFacts, RevisionFacts, RouteInForce};
use crate::host::HostSigns;
use crate::links::{LinkEnd, LinkOpening};
use crate::pod_record::{OwnPodSettings, PodLink, PodRecord};
use crate::readiness::LinkCondition;
use crate::registry::RevisionRecord;
use crate::removals::RemovedRevision;
use crate::state::ControlState;

/// Takes in facts at one point in time.
pub(crate) struct FactIntake<'a> {
    pub(crate) state: &'a mut ControlState,
    pub(crate) now: Timestamp,
}

impl FactIntake<'_> {
    pub(crate) fn take(&mut self, fact: PlatformFact) {
        match fact {
            PlatformFact::ConfigChanged(config) => self.config_changed(config),
            PlatformFact::ProblemsChanged { about, problems } => {
                self.state.publication.set_problems(about, problems);
            }
            PlatformFact::OwnershipChanged(ownership) => self.ownership_changed(ownership),
            PlatformFact::RevisionChanged(facts) => {
                let wanted = facts.wanted;
                self.revision_changed(facts, wanted);
            }
            PlatformFact::RevisionRemoved(name) => self.revision_removed(&name, Unassignment::Removed),
            PlatformFact::RevisionGivenBack(name) => self.revision_removed(&name, Unassignment::Forgotten),
            PlatformFact::PodsChanged { revision, pods } => self.pods_changed(&revision, pods),
            PlatformFact::PodFailed { revision, failure } => {
                if let Some((id, record)) = self.state.registry.named_mut(&revision) {
                    record.last_failure = Some(Arc::new(failure));
                    self.state.publication.note_changed(id);
                }
            }
            PlatformFact::PodKilled { revision, kill } => {
                if let Some((id, record)) = self.state.registry.named_mut(&revision) {
                    record.last_kill = Some(Arc::new(kill));
                    self.state.publication.note_changed(id);
                }
            }
            PlatformFact::ActivatorsChanged(activators) => self.activators_changed(activators),
            PlatformFact::RouteFound { revision, route } => self.route_found(&revision, route),
            PlatformFact::OrderEnded { order, outcome } => self.order_ended(order, outcome),
            PlatformFact::Synced => self.state.registry.is_platform_synced = true,
        }
    }

    fn config_changed(&mut self, config: Arc<ClusterConfig>) {
        self.state.config = config;
        // The count in the facts is as old as they are; since then the count is the one that was ordered.
        let (state, revisions) = (&*self.state, self.state.registry.revisions.iter());
        let counted = revisions.map(|(&id, record)| (Arc::clone(&record.facts), state.wanted(id, record)));
        let all: Vec<_> = counted.collect();
        for (facts, wanted) in all {
            self.revision_changed(facts, wanted);
        }
    }

    /// New facts or settings of a revision, and the count that it is to have until the next evaluation.
    fn revision_changed(&mut self, facts: Arc<RevisionFacts>, wanted: PodCount) {
        let (spec, origin) = (self.resolve(&facts), facts.origin);
        let name = facts.name.clone();
        let before =
            self.state.registry.named(&name).map(|(_, record)| record.entrances()).unwrap_or_default();
        let record = RevisionRecord::new(facts, Arc::clone(&spec));
        let id = self.state.registry.put_revision(record);
        self.state.publication.note_changed(id);
        self.entrances_changed(id, &before);
        let epoch = self.state.ownership.epoch_of(&name);
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        if epoch.is_some() && record.epoch.is_none() {
            return self.take_over(id);
        }
        if epoch.is_some() {
            self.state.tell(Event::RevisionChanged { revision: id, spec, wanted, origin }, self.now);
            self.state.tell_pods_their_settings(id);
            self.state.unsettled.touch(id);
        }
    }

    /// The settings of a revision and the platform's terms for it; the same value as before if nothing
    /// changed, since thousands may share a change of the cluster's.
    fn resolve(&self, facts: &RevisionFacts) -> Arc<ScalingSpec> {
        let config = &self.state.config;
        let spec = facts.settings.resolve(config, facts.container_concurrency, facts.progress_deadline);
        let spec = ScalingSpec {
            shadow: spec.shadow || !facts.may_write,
            reachable: facts.reachable,
            ..spec.with_floor(facts.floor, facts.floor_cause)
        };
        match self.state.registry.named(&facts.name) {
            Some((_, revision)) if *revision.spec == spec => Arc::clone(&revision.spec),
            Some(_) | None => Arc::new(spec),
        }
    }

    /// Entrances that a revision has no more are released once no activator listens there; an entrance that
    /// is used again is no other revision's.
    fn entrances_changed(&mut self, id: RevisionId, before: &BTreeSet<Entrance>) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        let present = record.entrances();
        record.former_entrances.retain(|entrance, _| !present.contains(entrance));
        let name = record.facts.name.clone();
        self.state.removed.made_again(&name, &present);
        let Some(epoch) = self.state.ownership.epoch_of(&name) else { return };
        for entrance in before.difference(&present) {
            // Greater than what names the entrance, and not greater than what comes next.
            let version = self.state.ownership.next_version(epoch);
            let Some(record) = self.state.registry.noted_mut(id) else { return };
            record.former_entrances.insert(entrance.clone(), version);
        }
    }

    /// A revision is ours from now on.
    fn take_over(&mut self, id: RevisionId) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        record.epoch = self.state.ownership.epoch_of(&record.facts.name);
        let (spec, wanted, origin) = (Arc::clone(&record.spec), record.facts.wanted, record.facts.origin);
        let found = record.route.written.as_ref().map(|route| route.routing);
        let pods = record.pod_facts();
        // Another owner may have told the linked peers (as they are to a standby, too), and what they said
        // then is old; those that link later say what they know.
        self.state.activators.all_may_know(id);
        // First, for the multiscaler passes over each event of a revision that it does not know.
        self.state.tell(Event::RevisionChanged { revision: id, spec, wanted, origin }, self.now);
        if let Some(routing) = found {
            self.routing_found(id, routing);
        }
        if !pods.is_empty() {
            self.state.tell(Event::PodsChanged { revision: id, pods }, self.now);
        }
        self.state.tell_pods_their_settings(id);
        if self.state.links.opening() == LinkOpening::All {
            self.link_pods(id);
        }
        self.state.unsettled.touch(id);
    }

    /// `how` says what becomes of what waits for it.
    fn revision_removed(&mut self, name: &RevisionName, how: Unassignment) {
        let Some((id, record)) = self.state.registry.remove_revision(name) else { return };
        for pod in record.pods.values() {
            self.end_pod_link(pod);
        }
        if let Some(epoch) = record.epoch {
            let version = self.state.ownership.next_version(epoch);
            let known_to = self.unassign_everywhere(id, &record, (version, how));
            let mut entrances = record.entrances();
            entrances.extend(record.former_entrances.into_keys());
            let removed = RemovedRevision { version, how, entrances, known_to };
            self.state.removed.put(name.clone(), removed);
            self.state.tell(Event::RevisionRemoved { revision: id }, self.now);
        }
        // Only now: what activators hold of it has just said which of them must be told that it is gone.
        self.state.activators.forget_revision(id);
        self.forget_number(id);
        self.state.publication.note_removed(id, name.clone());
    }

    /// Tells every activator that may know a revision that it is gone; returns these activators.
    fn unassign_everywhere(
        &mut self,
        id: RevisionId,
        record: &RevisionRecord,
        (version, how): (vocabulary::Version, Unassignment),
    ) -> BTreeSet<ReplicaId> {
        let mut known_to = BTreeSet::new();
        let told = self.state.activators.iter().filter(|(_, known)| known.acknowledges());
        for (activator, known) in told {
            // One that was never heard may know it from an owner before us.
            if known.holdings.contains_key(&id) || known.boot.is_none() {
                known_to.insert(activator);
                self.state.outbox.push(ControlCommand::Unassign {
                    activator: known.link,
                    revision: record.facts.name.clone(),
                    version,
                    how,
                });
            }
        }
        known_to
    }

    /// Nothing is under way for a revision any more.
    fn forget_number(&mut self, id: RevisionId) {
        self.state.unsettled.forget(id);
        self.state.outbox.forget_orders(id);
        self.state.deadlines.forget_revision(id);
    }

    fn pods_changed(&mut self, name: &RevisionName, pods: Vec<PodFacts>) {
        let Some(id) = self.state.registry.revision_id(name) else { return };
        let before = self.own_settings_of_pods(id);
        self.state.publication.note_changed(id);
        for (pod, gone) in self.state.registry.put_pods(id, pods, self.now) {
            self.end_pod_link(&gone);
            self.state.deadlines.forget_pod(pod);
        }
        let Some(record) = self.state.registry.noted(id) else { return };
        if record.epoch.is_none() {
            return;
        }
        let pods = record.pod_facts();
        self.state.tell(Event::PodsChanged { revision: id, pods }, self.now);
        if self.state.links.opening() == LinkOpening::All {
            self.link_pods(id);
        }
        let after = self.own_settings_of_pods(id);
        for (pod, _) in after.into_iter().filter(|settings| !before.contains(settings)) {
            self.state.tell_pod_its_own_settings(id, pod);
        }
        self.state.unsettled.touch(id);
    }

    /// What its pods are told that concerns them alone, of those that are told something.
    fn own_settings_of_pods(&self, id: RevisionId) -> Vec<(PodId, OwnPodSettings)> {
        let Some(record) = self.state.registry.noted(id) else { return Vec::new() };
        let own = record.pods.iter().map(|(&pod, record)| (pod, record.own_settings()));
        own.filter(|(_, settings)| *settings != OwnPodSettings::default()).collect()
    }

    /// Opens links to pods whose link port has become known or has moved, and ends those whose port is gone.
    pub(crate) fn link_pods(&mut self, id: RevisionId) {
        let Some(record) = self.state.registry.noted(id) else { return };
        if record.epoch.is_none() {
            return;
        }
        let moved = record.pods.iter().filter(|(_, pod)| pod.link.map(|link| link.address) != pod.facts.link);
        let moved: Vec<PodId> = moved.map(|(&pod, _)| pod).collect();
        if moved.is_empty() {
            return;
        }
        let priority = self.priority(id);
        for pod in moved {
            self.relink_pod(id, pod, priority);
        }
    }

    fn relink_pod(&mut self, id: RevisionId, pod: PodId, priority: Priority) {
        let Some(record) = self.state.registry.pod_mut(id, pod) else { return };
        let (name, address, own) = (record.facts.name.clone(), record.facts.link, record.own_settings());
        let former = record.link.take();
        let was_up = record.is_linked();
        record.heard.connection = LinkCondition::Down;
        record.heard.host = HostSigns::default();
        // Closed before another is opened: a late word of the pod's former life belongs to no link then.
        if let Some(former) = former {
            self.state.end_link(former.id);
        }
        if let Some(address) = address {
            let settings = self.state.first_settings(id, own);
            let link = self.state.links.open(LinkEnd::Pod(id, pod));
            let peer = Peer::Pod { name, settings };
            self.state.outbox.push(ControlCommand::OpenLink { link, peer, address, priority });
            if let Some(record) = self.state.registry.pod_mut(id, pod) {
                record.link = Some(PodLink { id: link, address });
            }
        }
        // A link that we close ourselves is not reported as lost.
        if was_up {
            self.state.tell(Event::LinkLost { reporter: Reporter::Pod(pod) }, self.now);
            self.state.tell_pod(id, pod, self.now);
        }
    }

    fn end_pod_link(&mut self, pod: &PodRecord) {
        if let Some(link) = pod.link {
            self.state.end_link(link.id);
        }
    }

    fn priority(&self, id: RevisionId) -> Priority {
        match self.state.multiscaler.status(id, self.now) {
            Some(status) if status.waiting > 0 || status.ready_pods == PodCount::ZERO => Priority::Awaited,
            Some(_) | None => Priority::Rest,
        }
    }

    fn activators_changed(&mut self, activators: Vec<ActivatorFacts>) {
        let names: Vec<ReplicaName> = activators.iter().map(|activator| activator.name.clone()).collect();
        for (gone, record) in self.state.activators.retain(&names) {
            self.state.end_link(record.link);
            self.state.unsettled.cancel_sync(gone);
            self.state.deadlines.forget_activator(gone);
            self.state.removed.activator_gone(gone);
            for revision in self.state.registry.revisions.values_mut() {
                revision.oldest_waits.remove(&gone);
            }
            self.state.tell(Event::LinkLost { reporter: Reporter::Activator(gone) }, self.now);
        }
        for facts in activators {
            self.keep_activator(facts);
        }
        let activators = self.state.activators.ids();
        self.state.tell(Event::ActivatorsChanged { activators }, self.now);
        self.state.publication.note_other();
        // The members have changed, and with them the acknowledgements that paths and leaving pods need.
        self.state.touch_all();
    }

    fn keep_activator(&mut self, facts: ActivatorFacts) {
        let id = self.state.activators.intern(&facts.name);
        if let Some(known) = self.state.activators.get_mut(id) {
            if known.facts.link == facts.link {
                known.facts = facts;
                return;
            }
            let former = known.link;
            self.state.end_link(former);
        }
        self.link_activator(id, facts);
    }

    fn link_activator(&mut self, id: ReplicaId, facts: ActivatorFacts) {
        let link = self.state.links.open(LinkEnd::Activator(id));
        let (peer, address) = (Peer::Activator { name: facts.name.clone() }, facts.link);
        let priority = Priority::Activator;
        self.state.outbox.push(ControlCommand::OpenLink { link, peer, address, priority });
        self.state.activators.put(id, facts, link);
    }

    fn route_found(&mut self, name: &RevisionName, route: RouteInForce) {
        let Some(id) = self.state.registry.revision_id(name) else { return };
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        let routing = route.routing;
        record.route.note_found(route);
        if record.epoch.is_some() {
            self.routing_found(id, routing);
        }
    }

    /// The side that serves, from before we were here. What we ordered ourselves is known better.
    pub(crate) fn routing_found(&mut self, id: RevisionId, routing: vocabulary::Routing) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        if record.routing.is_none() {
            record.routing = Some(routing);
            self.state.tell(Event::RoutingObserved { revision: id, routing }, self.now);
            self.state.tell_pods_their_settings(id);
            self.state.unsettled.touch(id);
        }
    }
}
