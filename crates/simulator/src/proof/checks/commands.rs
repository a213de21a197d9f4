//! Versions and epochs only grow, a pod ends only when no activator may send to it, and no command is about
//! something that does not exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::{ControlCommand, LinkId, Order, PlatformOrder, ReleaseProof, Unassignment};
use vocabulary::{
    Assignment, Bucket, Epoch, PodName, PodState, ReplicaName, RevisionName, Slice, Standing, Timestamp,
    Version,
};

use crate::proof::check_failure::{CheckFailure, Checked};
use crate::proof::fault::{OWNERS, OwnerNumber};
use crate::proof::reached_state::{ReachedState, ReachedStates};
use crate::proof::trial_event::OwnerProcess;

const OWN_EPOCH: &str = "an owner speaks and orders in an epoch that it was given";
const VERSIONS_GROW: &str = "versions only grow";
const VERSION_ONCE: &str = "a version means one thing";
const SETTINGS_GROW: &str = "settings of a pod have a greater version each time";
const PODS_END_UNUSED: &str = "a pod ends only when no activator may send to it";
const RELEASED_IS_LEFT: &str = "no assignment names a pod whose end was allowed";
const READY_BY_WORD: &str = "an assignment calls ready what has said so";
const NOTHING_IS_GONE: &str = "no revision that exists is called gone";
const KNOWN_ACTIVATORS: &str = "routes name activators that exist";

/// What the world is like when a command is given.
#[derive(Debug)]
pub(crate) struct CommandScene {
    pub(crate) now: Timestamp,
    /// Of the order to release a pod: the activators that may still send to it.
    pub(crate) senders: Vec<ReplicaName>,
    pub(crate) activators: Vec<ReplicaName>,
}

/// The words of owners and pods on which later checks depend.
#[derive(Debug, Default)]
pub(super) struct CommandChecks {
    granted: BTreeMap<BucketEpoch, OwnerNumber>,
    assigned: BTreeMap<AssignedRevision, Arc<Assignment>>,
    settings: BTreeMap<LinkOfOwner, Version>,
    /// What each owner has heard last of a pod.
    words: [BTreeMap<PodName, PodState>; OWNERS],
    /// The pods whose end an owner has allowed with every acknowledgement, and in which epoch.
    released: BTreeMap<PodName, Epoch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BucketEpoch {
    bucket: Bucket,
    epoch: Epoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LinkOfOwner {
    owner: OwnerNumber,
    life: u64,
    link: LinkId,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AssignedRevision {
    link: LinkOfOwner,
    revision: RevisionName,
}

impl CommandChecks {
    pub(super) fn granted(&mut self, bucket: Bucket, epoch: Epoch, owner: OwnerNumber) {
        self.granted.insert(BucketEpoch { bucket, epoch }, owner);
    }

    pub(super) fn pod_heard(&mut self, owner: OwnerNumber, pod: &PodName, state: PodState) {
        self.words[owner.0].insert(pod.clone(), state);
    }

    pub(super) fn owner_gone(&mut self, owner: OwnerNumber) {
        self.words[owner.0].clear();
        self.assigned.retain(|assigned, _| assigned.link.owner != owner);
        self.settings.retain(|link, _| link.owner != owner);
    }

    pub(super) fn commanded(
        &mut self,
        process: OwnerProcess,
        command: &ControlCommand,
        scene: &CommandScene,
        reached: &mut ReachedStates,
    ) -> Checked {
        let OwnerProcess { owner, life } = process;
        let of = |link: LinkId| LinkOfOwner { owner, life, link };
        match command {
            ControlCommand::Sync { activator, assignments, .. } => {
                assignments.iter().try_for_each(|assignment| self.assign(of(*activator), assignment, reached))
            }
            ControlCommand::Assign { activator, assignment, .. } => {
                self.assign(of(*activator), assignment, reached)
            }
            ControlCommand::Unassign { revision, how: Unassignment::Removed, .. } => {
                Err(CheckFailure::new(NOTHING_IS_GONE, format!("{revision} is called gone")))
            }
            ControlCommand::TellPod { pod, settings } => self.tell_pod(of(*pod), settings.version),
            ControlCommand::Order(order) => self.order(owner, order, scene, reached),
            ControlCommand::CloseLink { link } => {
                self.settings.remove(&of(*link));
                Ok(())
            }
            ControlCommand::OpenLink { .. }
            | ControlCommand::Unassign { how: Unassignment::Forgotten, .. }
            | ControlCommand::ReleaseActivator { .. }
            | ControlCommand::AskMetrics { .. }
            | ControlCommand::Publish { .. } => Ok(()),
        }
    }

    fn assign(
        &mut self,
        link: LinkOfOwner,
        assignment: &Arc<Assignment>,
        reached: &mut ReachedStates,
    ) -> Checked {
        let (revision, version) = (&assignment.revision, assignment.version);
        if !self.granted.iter().any(|(granted, owner)| granted.epoch == version.epoch && *owner == link.owner)
        {
            return Err(CheckFailure::new(OWN_EPOCH, format!("{revision} is assigned in version {version}")));
        }
        self.check_pods(link.owner, assignment)?;
        if assignment.pods.iter().any(|pod| pod.slice != Slice::Undivided) {
            reached.note(ReachedState::PodsDivided);
        }
        if assignment.standing == Standing::Retired {
            reached.note(ReachedState::RevisionRetired);
        }
        let place = AssignedRevision { link, revision: revision.clone() };
        let before = self.assigned.insert(place, Arc::clone(assignment));
        let Some(before) = before else { return Ok(()) };
        if version < before.version {
            let text = format!("{revision} in version {version} after {}", before.version);
            return Err(CheckFailure::new(VERSIONS_GROW, text));
        }
        if version == before.version && !means_the_same(&before, assignment) {
            let text = format!("{revision} in version {version}: {before:?}, then {assignment:?}");
            return Err(CheckFailure::new(VERSION_ONCE, text));
        }
        Ok(())
    }

    fn check_pods(&self, owner: OwnerNumber, assignment: &Assignment) -> Checked {
        for pod in assignment.pods.iter().filter(|pod| pod.state != PodState::Draining) {
            let released = self.released.get(&pod.pod);
            if released.is_some_and(|epoch| *epoch <= assignment.version.epoch) {
                let text = format!("{} in version {}", pod.pod, assignment.version);
                return Err(CheckFailure::new(RELEASED_IS_LEFT, text));
            }
            let heard = self.words[owner.0].get(&pod.pod);
            if pod.state == PodState::Ready && heard != Some(&PodState::Ready) {
                let text = format!("{} has last said {heard:?} to owner {}", pod.pod, owner.0);
                return Err(CheckFailure::new(READY_BY_WORD, text));
            }
        }
        Ok(())
    }

    fn tell_pod(&mut self, link: LinkOfOwner, version: Version) -> Checked {
        let before = self.settings.insert(link, version);
        match before {
            Some(before) if before >= version => {
                let text = format!("settings {version} after {before}");
                Err(CheckFailure::new(SETTINGS_GROW, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn order(
        &mut self,
        owner: OwnerNumber,
        order: &PlatformOrder,
        scene: &CommandScene,
        reached: &mut ReachedStates,
    ) -> Checked {
        let given = BucketEpoch { bucket: order.fence.bucket, epoch: order.fence.epoch };
        if self.granted.get(&given) != Some(&owner) {
            let text = format!("owner {} orders in {given:?}", owner.0);
            return Err(CheckFailure::new(OWN_EPOCH, text));
        }
        match &order.what {
            Order::ReleasePod { pod, proof: ReleaseProof::Acknowledged } => {
                reached.note(ReachedState::PodReleasedAcknowledged);
                self.released.insert(pod.clone(), given.epoch);
                if scene.senders.is_empty() {
                    return Ok(());
                }
                let text = format!("{pod} may end, and {:?} may send to it", scene.senders);
                Err(CheckFailure::new(PODS_END_UNUSED, text))
            }
            Order::ReleasePod { proof: ReleaseProof::OutOfTime, .. } => {
                reached.note(ReachedState::PodReleasedOutOfTime);
                Ok(())
            }
            Order::Route { activators, .. } => {
                let strangers: Vec<&ReplicaName> =
                    activators.iter().filter(|name| !scene.activators.contains(name)).collect();
                if strangers.is_empty() {
                    return Ok(());
                }
                Err(CheckFailure::new(KNOWN_ACTIVATORS, format!("{strangers:?} in a route")))
            }
            Order::ScaleTo { .. }
            | Order::NoteDrained { .. }
            | Order::ReleaseEntrance { .. }
            | Order::NotePodState { .. }
            | Order::NotePodReach { .. }
            | Order::Tell { .. } => Ok(()),
        }
    }
}

/// Whether two assignments of one version agree in what an activator serves by. The share of an activator
/// and its standing may be another one in the same version.
fn means_the_same(one: &Assignment, other: &Assignment) -> bool {
    let pods = |assignment: &Assignment| -> BTreeMap<PodName, PodState> {
        assignment.pods.iter().map(|pod| (pod.pod.clone(), pod.state)).collect()
    };
    one.routing == other.routing && pods(one) == pods(other)
}
