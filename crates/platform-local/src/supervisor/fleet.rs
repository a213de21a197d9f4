//! Which pods should there be? Every revision of this machine: facts and orders in, actions and news out.
//!
//! No process is started here and no clock is read, so tests walk through hours of rollouts and failures in
//! no time.

mod renewal;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use orchestration::{PodFacts, PodFailure, PodKill, RevisionFacts, RouteInForce};
use settings::ClusterConfig;
use vocabulary::{HopKey, PodCount, PodName, PodState, RevisionName, Timestamp};

use crate::front_door::FrontDoor;
use crate::manifest::{LoadedManifest, ManifestService};
use crate::pod::PodMessage;
use crate::supervisor::causes::StartCause;
use crate::supervisor::failure::ProcessFailure;
use crate::supervisor::handover::records::FleetRecord;
use crate::supervisor::identities::PodNames;
use crate::supervisor::pod::StartWait;
use crate::supervisor::queue_proxy_settings::QueueProxySettings;
use crate::supervisor::supervised_revision::{Action, CountOrder, RevisionSurroundings, SupervisedRevision};

/// Under which a single Service is reached too.
const SINGLE_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What became known of a pod's process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodNews {
    /// It runs, with this process id.
    Spawned(u32),
    /// `ebb pod` sent a message about its pod.
    Message(PodMessage),
    /// It has no process yet, because its image is not here. How far that is, as a sentence.
    Waiting(String),
    /// Its app or queue-proxy ended by itself, or could not be started.
    Failed(ProcessFailure),
    /// It did not end in time, and what is left of it is killed. Which processes, as a sentence.
    Killed(String),
    /// It is gone, with everything that came from it. How, as the end of a sentence.
    Ended(String),
}

/// Whether an order was about something that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetPresence {
    Yes,
    No,
}

/// What changed since the last look, to be published.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Revisions that appeared, or of which the manifest or hosts changed.
    pub(crate) revisions: BTreeSet<RevisionName>,
    /// The pods of these may have changed.
    pub(crate) pods: BTreeSet<RevisionName>,
    /// Pods of these may have failed.
    pub(crate) failures: BTreeSet<RevisionName>,
    /// Pods of these may have been killed.
    pub(crate) kills: BTreeSet<RevisionName>,
    /// All older pods of these are on their way out: this template has taken over.
    pub(crate) rolled_out: Vec<(RevisionName, String)>,
    /// Revisions that are gone with all their pods.
    pub(crate) removed: BTreeSet<RevisionName>,
}

/// How far the end of everything has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EndProgress {
    #[default]
    Not,
    Draining,
    Killed,
}

/// Every revision of this machine.
#[derive(Debug)]
pub(crate) struct Fleet {
    revisions: BTreeMap<RevisionName, SupervisedRevision>,
    names: PodNames,
    actions: Vec<Action>,
    changes: Changes,
    ending: EndProgress,
    front_door: FrontDoor,
    new_hop_key: fn() -> HopKey,
}

impl Fleet {
    /// Nothing yet. Hop keys come from `new_hop_key`.
    pub(crate) fn new(front_door: FrontDoor, new_hop_key: fn() -> HopKey) -> Self {
        Self {
            revisions: BTreeMap::new(),
            names: PodNames::default(),
            actions: Vec::new(),
            changes: Changes::default(),
            ending: EndProgress::Not,
            front_door,
            new_hop_key,
        }
    }

    /// What another process needs to know of it, of those pods that have a process.
    pub(crate) fn record(&self, with_process: &BTreeSet<PodName>, now: Timestamp) -> FleetRecord {
        let revisions = self.revisions.values().map(|revision| revision.record(with_process, now));
        FleetRecord { names_given: self.names.given(), revisions: revisions.collect() }
    }

    /// Goes on with the revisions of another process, as they were there. What the files say is to be applied
    /// after this.
    pub(crate) fn take_over(&mut self, record: FleetRecord, loaded: &LoadedManifest, now: Timestamp) {
        self.names = PodNames::after(record.names_given);
        for record in record.revisions {
            let name = record.name.clone();
            let placed = loaded.services.get(&name).map(|placed| &placed.service);
            let revision = SupervisedRevision::taken_over(record, placed, now);
            revision.repeat_orders(&mut self.actions);
            self.changes.revisions.insert(name.clone());
            self.revisions.insert(name, revision);
        }
    }

    /// What the files say now.
    pub(crate) fn apply(&mut self, loaded: &LoadedManifest, now: Timestamp) {
        if self.ending != EndProgress::Not {
            return;
        }
        for (name, revision) in &mut self.revisions {
            if !loaded.services.contains_key(name) {
                revision.is_going = true;
                self.changes.revisions.insert(name.clone());
            }
        }
        for (name, placed) in &loaded.services {
            self.apply_service(name, &placed.service, &loaded.cluster);
        }
        self.share_single_hosts();
        self.reconcile_all(now);
    }

    fn apply_service(&mut self, name: &RevisionName, service: &ManifestService, cluster: &ClusterConfig) {
        let of_new_pods = QueueProxySettings::of(&service.settings, cluster);
        match self.revisions.get_mut(name) {
            Some(revision) if !revision.is_going => {
                revision.of_new_pods = of_new_pods;
                if revision.service != *service {
                    revision.edit(service.clone());
                    self.changes.revisions.insert(name.clone());
                }
            }
            // It was removed and is back before its last pod ended.
            Some(revision) => {
                revision.of_new_pods = of_new_pods;
                revision.come_back(service.clone(), first_count(service, cluster));
                self.changes.revisions.insert(name.clone());
            }
            None => {
                let mut revision = SupervisedRevision::new(
                    service.clone(),
                    first_count(service, cluster),
                    (self.new_hop_key)(),
                );
                revision.of_new_pods = of_new_pods;
                self.revisions.insert(name.clone(), revision);
                // If it was removed and added again before any subscriber was told, it was never gone.
                self.changes.removed.remove(name);
                self.changes.revisions.insert(name.clone());
            }
        }
    }

    /// Sets the wanted number of pods. Ignored for a revision that is unknown or being taken down. The count
    /// is not published as a change: the autoscaler that ordered it may have ordered the next one already,
    /// and would take the echo of the first for another autoscaler's order.
    pub(crate) fn scale_to(
        &mut self,
        name: &RevisionName,
        order: CountOrder,
        now: Timestamp,
    ) -> TargetPresence {
        let Some(revision) = self.revisions.get_mut(name).filter(|revision| !revision.is_going) else {
            return TargetPresence::No;
        };
        revision.scale_to(order);
        self.reconcile(name, now);
        TargetPresence::Yes
    }

    /// Sets the route of a revision. All requests come to the activators here, which were told by their
    /// links, so the route is only remembered for the autoscaler that owns the revision next.
    pub(crate) fn set_route(&mut self, name: &RevisionName, route: RouteInForce) -> TargetPresence {
        let Some(revision) = self.revisions.get_mut(name) else { return TargetPresence::No };
        revision.route = Some(route);
        TargetPresence::Yes
    }

    /// The route of a revision, if one was ever ordered.
    pub(crate) fn route(&self, name: &RevisionName) -> Option<RouteInForce> {
        self.revisions.get(name)?.route.clone()
    }

    /// Notes why these pods wait for their start.
    pub(crate) fn note_waiting(&mut self, pods: &[PodName], wait: &StartWait) {
        for pod in pods {
            let Some(name) = self.owner_of(pod) else { continue };
            let revision = self.revisions.get_mut(&name).expect("it owns the pod");
            if revision.pod_mut(pod).is_some_and(|pod| pod.note_waiting(wait)) {
                self.changes.pods.insert(name);
            }
        }
    }

    /// Activators pick the pod no more.
    pub(crate) fn release(&mut self, pod: &PodName, now: Timestamp) -> TargetPresence {
        let Some(name) = self.owner_of(pod) else { return TargetPresence::No };
        let revision = self.revisions.get_mut(&name).expect("it owns the pod");
        let mut around = RevisionSurroundings { now, actions: &mut self.actions, names: &mut self.names };
        revision.release(pod, &mut around);
        self.changes.pods.insert(name);
        TargetPresence::Yes
    }

    /// What a pod said on its link.
    pub(crate) fn note_state(&mut self, pod: &PodName, state: PodState, now: Timestamp) -> TargetPresence {
        let Some(name) = self.owner_of(pod) else { return TargetPresence::No };
        // Unheard says nothing about the pod.
        if state != PodState::Unheard {
            let revision = self.revisions.get_mut(&name).expect("it owns the pod");
            revision.note_ready(pod, state == PodState::Ready, now);
            self.reconcile(&name, now);
        }
        TargetPresence::Yes
    }

    /// What became known of a pod's process.
    pub(crate) fn note(&mut self, pod: &PodName, news: &PodNews, now: Timestamp) {
        let Some(name) = self.owner_of(pod) else { return };
        let revision = self.revisions.get_mut(&name).expect("it owns the pod");
        match news {
            PodNews::Ended(how) => {
                revision.note_end(pod, how, now);
                self.changes.failures.insert(name.clone());
            }
            PodNews::Spawned(pid) => {
                if let Some(pod) = revision.pod_mut(pod) {
                    pod.note_pid(*pid);
                }
            }
            PodNews::Message(PodMessage::Answered) => revision.note_answer(pod, now),
            PodNews::Message(message) => {
                if let Some(pod) = revision.pod_mut(pod) {
                    pod.note(message);
                }
            }
            PodNews::Waiting(why) => {
                if let Some(pod) = revision.pod_mut(pod) {
                    pod.note_waiting(&StartWait::Room(why.clone()));
                }
            }
            PodNews::Failed(failure) => {
                revision.note_failure(pod, failure, now);
                self.changes.failures.insert(name.clone());
            }
            PodNews::Killed(reason) => revision.note_kill(pod, reason.clone(), now),
        }
        self.reconcile(&name, now);
    }

    /// Ends every pod in an orderly way; orders and edits are no longer taken.
    pub(crate) fn drain(&mut self, now: Timestamp) {
        if self.ending == EndProgress::Not {
            self.ending = EndProgress::Draining;
            for (name, revision) in &mut self.revisions {
                revision.is_going = true;
                self.changes.revisions.insert(name.clone());
            }
        }
        self.reconcile_all(now);
    }

    /// Ends every pod at once.
    pub(crate) fn kill(&mut self, now: Timestamp) {
        self.ending = EndProgress::Killed;
        for revision in self.revisions.values_mut() {
            revision.kill(&mut self.actions);
        }
        self.reconcile_all(now);
    }

    /// Ends the wait for activators, as no autoscaler is left to tell them.
    pub(crate) fn release_all(&mut self, now: Timestamp) {
        for revision in self.revisions.values_mut() {
            let mut around = RevisionSurroundings { now, actions: &mut self.actions, names: &mut self.names };
            revision.release_all(&mut around);
        }
        self.changes.pods.extend(self.revisions.keys().cloned());
    }

    /// Whether everything was told to end and has.
    pub(crate) fn has_ended(&self) -> bool {
        self.ending != EndProgress::Not && self.revisions.is_empty()
    }

    /// The longest that a pod may drain.
    pub(crate) fn longest_drain(&self) -> Duration {
        self.revisions.values().map(SupervisedRevision::longest_drain).max().unwrap_or_default()
    }

    /// The longest that the end of a pod may take: its drain, and what its app has after that.
    pub(crate) fn longest_end(&self) -> Duration {
        self.revisions.values().map(SupervisedRevision::longest_end).max().unwrap_or_default()
    }

    /// The longest that a container has from TERM to KILL.
    pub(crate) fn longest_grace(&self) -> Duration {
        self.revisions.values().map(SupervisedRevision::longest_grace).max().unwrap_or_default()
    }

    /// Whether everything was told to end at once.
    pub(crate) fn is_killed(&self) -> bool {
        self.ending == EndProgress::Killed
    }

    /// Whether everything was told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending != EndProgress::Not
    }

    /// Does what is due at this moment.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        let is_due =
            |revision: &SupervisedRevision| revision.next_deadline().is_some_and(|deadline| deadline <= now);
        let due = self.revisions.iter().filter(|(_, revision)| is_due(revision));
        let due: Vec<RevisionName> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.reconcile(&name, now);
        }
    }

    fn reconcile_all(&mut self, now: Timestamp) {
        let all: Vec<RevisionName> = self.revisions.keys().cloned().collect();
        for name in all {
            self.reconcile(&name, now);
        }
    }

    /// Lets a revision start and end what it should, after anything about it changed.
    fn reconcile(&mut self, name: &RevisionName, now: Timestamp) {
        let Some(revision) = self.revisions.get_mut(name) else { return };
        let mut around = RevisionSurroundings { now, actions: &mut self.actions, names: &mut self.names };
        revision.advance(&mut around);
        if let Some(template) = revision.take_rolled_out() {
            self.changes.rolled_out.push((name.clone(), template));
        }
        if revision.is_gone() {
            self.revisions.remove(name);
            // Only the removal is published: a subscriber that gets a change, too, would look for a revision
            // that is gone.
            self.changes.revisions.remove(name);
            self.changes.pods.remove(name);
            self.changes.failures.remove(name);
            self.changes.kills.remove(name);
            self.changes.removed.insert(name.clone());
        } else {
            self.changes.pods.insert(name.clone());
            self.changes.kills.insert(name.clone());
        }
    }

    /// When [`Fleet::advance`] is due at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.revisions.values().filter_map(SupervisedRevision::next_deadline).min()
    }

    /// What is to be done now, in this order.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// How many revisions have no pod with a process, and none on its way there.
    pub(crate) fn asleep(&self) -> usize {
        self.revisions.values().filter(|revision| revision.is_asleep()).count()
    }

    /// The names of all revisions, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &RevisionName> {
        self.revisions.keys()
    }

    /// A revision as the platform's users see it.
    pub(crate) fn facts(&self, name: &RevisionName) -> Option<RevisionFacts> {
        let front_door = self.front_door;
        self.revisions.get(name).map(|revision| revision.facts(front_door))
    }

    /// Its pods as the platform's users see them.
    pub(crate) fn pods(&self, name: &RevisionName) -> Option<Vec<PodFacts>> {
        self.revisions.get(name).map(SupervisedRevision::pod_facts)
    }

    /// Why a pod is started.
    pub(crate) fn start_cause(&self, pod: &PodName) -> Option<&StartCause> {
        self.revisions.values().find_map(|revision| revision.start_cause(pod))
    }

    /// How a pod of it failed last.
    pub(crate) fn last_failure(&self, name: &RevisionName) -> Option<&PodFailure> {
        self.revisions.get(name).and_then(SupervisedRevision::last_failure)
    }

    /// How a pod of it was killed last.
    pub(crate) fn last_kill(&self, name: &RevisionName) -> Option<&PodKill> {
        self.revisions.get(name).and_then(SupervisedRevision::last_kill)
    }

    /// The revision that has the pod.
    pub(crate) fn owner_of(&self, pod: &PodName) -> Option<RevisionName> {
        self.revisions.iter().find(|(_, revision)| revision.has(pod)).map(|(name, _)| name.clone())
    }

    /// Gives plain `localhost` to the only Service, and takes it back when there are several.
    fn share_single_hosts(&mut self) {
        let staying = self.revisions.values().filter(|revision| !revision.is_going).count();
        for (name, revision) in &mut self.revisions {
            let hosts = if staying == 1 && !revision.is_going { SINGLE_HOSTS.as_slice() } else { &[] };
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            if revision.more_hosts != hosts {
                revision.more_hosts = hosts;
                self.changes.revisions.insert(name.clone());
            }
        }
    }
}

/// A new revision begins with its initial scale, as on Knative, and never with less than its least.
pub(crate) fn first_count(service: &ManifestService, cluster: &ClusterConfig) -> PodCount {
    let limit = service.template.container_concurrency;
    let spec = service.settings.resolve(cluster, limit, service.progress_deadline);
    spec.initial_scale.max(spec.min_scale)
}
