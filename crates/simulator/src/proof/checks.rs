//! What holds in every made-up world.
//!
//! Apart from the world on purpose: the checks see what the world lets happen, keep their own books, and know
//! nothing of how the world carries anything out. They look at every request, every command of an owner,
//! every order that an activator takes in, and every word that it says; and once at the end, when no fault
//! has happened for two stable windows.
//!
//! | What | where |
//! |---|---|
//! | each request is answered, or refused for a reason, by its time limit | `requests` |
//! | counts keep bounds, rates and their decision; none falls in panic or because of silence | `counts` |
//! | a pod ends only when no activator may send to it; versions and epochs only grow | `commands` |
//! | a late owner changes nothing; nothing is acknowledged that is not in force | `activators` |
//! | in the end everything is linked, nothing waits beside a free slot, counts are the twin's | `ending` |

mod activators;
mod commands;
mod counts;
mod ending;
mod requests;

use orchestration::ControlCommand;
use throttling::ActivatorEvent;
use vocabulary::{ActivatorWord, Bucket, Epoch, PodName, PodState, RevisionName, Timestamp, Version};

use super::check_failure::{CheckFailure, Checked, RequestEnd};
use super::fault::OwnerNumber;
use super::plan::WorldPlan;
use super::reached_state::{ReachedState, ReachedStates};
use super::trial_event::{ActivatorProcess, ConnectionNumber, OwnerProcess, RequestNumber};
use activators::ActivatorChecks;
use commands::CommandChecks;
pub(crate) use commands::CommandScene;
use counts::CountChecks;
pub(crate) use ending::{EndLink, EndScene, EndService, WaitingAtEnd};
use requests::RequestChecks;

/// All checks, and the states that were reached.
#[derive(Debug)]
pub(crate) struct Checks {
    pub(crate) reached: ReachedStates,
    failure: Option<CheckFailure>,
    requests: RequestChecks,
    counts: CountChecks,
    commands: CommandChecks,
    activators: ActivatorChecks,
}

impl Checks {
    pub(crate) fn new(plan: &WorldPlan) -> Self {
        Self {
            reached: ReachedStates::default(),
            failure: None,
            requests: RequestChecks::default(),
            counts: CountChecks::new(plan),
            commands: CommandChecks::default(),
            activators: ActivatorChecks::default(),
        }
    }

    /// The first check that failed.
    pub(crate) fn failure(&self) -> Option<&CheckFailure> {
        self.failure.as_ref()
    }

    fn judge(&mut self, checked: Checked) {
        if let Err(failure) = checked {
            self.failure.get_or_insert(failure);
        }
    }

    pub(crate) fn reached(&mut self, state: ReachedState) {
        self.reached.note(state);
    }

    /// Time has passed; no request is overdue.
    pub(crate) fn time_is(&mut self, now: Timestamp) {
        let checked = self.requests.overdue(now);
        self.judge(checked);
    }

    pub(crate) fn request_arrived(&mut self, request: RequestNumber, answer_by: Timestamp) {
        self.requests.arrived(request, answer_by);
    }

    pub(crate) fn request_ended(&mut self, request: RequestNumber, end: RequestEnd) {
        let reached = match end {
            RequestEnd::Served | RequestEnd::NoActivator => None,
            RequestEnd::WaitedTooLong => Some(ReachedState::WaitedTooLong),
            RequestEnd::Refused(_) => Some(ReachedState::QueueFull),
            RequestEnd::LostWithActivator => Some(ReachedState::LostWithActivator),
            RequestEnd::LostWithPod => Some(ReachedState::LostWithPod),
        };
        if let Some(state) = reached {
            self.reached(state);
        }
        let checked = self.requests.ended(request, end);
        self.judge(checked);
    }

    /// A synced activator that a route names does not know the revision of a request.
    pub(crate) fn revision_unknown(&mut self, activator: ActivatorProcess, revision: &RevisionName) {
        self.judge(Err(CheckFailure::new(
            "an activator that a route names knows the revision",
            format!("activator {} does not know {revision}", activator.activator.0),
        )));
    }

    /// The platform gave a bucket to an owner.
    pub(crate) fn epoch_granted(&mut self, bucket: Bucket, epoch: Epoch, owner: OwnerNumber) {
        self.commands.granted(bucket, epoch, owner);
    }

    /// An owner heard a reporter of a revision.
    pub(crate) fn load_heard(&mut self, owner: OwnerNumber, revision: &RevisionName, now: Timestamp) {
        self.counts.heard(owner, revision, now);
    }

    /// An owner heard a reporter of all revisions.
    pub(crate) fn loads_heard(&mut self, owner: OwnerNumber, now: Timestamp) {
        self.counts.heard_of_all(owner, now);
    }

    /// An owner heard what a pod says of itself.
    pub(crate) fn pod_heard(&mut self, owner: OwnerNumber, pod: &PodName, state: PodState) {
        self.commands.pod_heard(owner, pod, state);
    }

    /// A process of an owner is gone, with all that it knew.
    pub(crate) fn owner_gone(&mut self, owner: OwnerNumber) {
        self.commands.owner_gone(owner);
        self.counts.owner_gone(owner);
    }

    pub(crate) fn owner_commanded(
        &mut self,
        process: OwnerProcess,
        command: &ControlCommand,
        scene: &CommandScene,
    ) {
        let counts = self.counts.commanded(process.owner, command, scene.now, &mut self.reached);
        self.judge(counts);
        let checked = self.commands.commanded(process, command, scene, &mut self.reached);
        self.judge(checked);
    }

    /// The control loop asks again and again for the same instant.
    pub(crate) fn owner_restless(&mut self, process: OwnerProcess) {
        self.judge(Err(CheckFailure::new(
            "the control loop comes to rest",
            format!("owner {} has a deadline that stays due", process.owner.0),
        )));
    }

    /// An activator has taken in an order of an owner; the version in force was another one before.
    pub(crate) fn activator_ordered(
        &mut self,
        process: ActivatorProcess,
        event: &ActivatorEvent,
        before: Option<Version>,
        after: Option<Version>,
    ) {
        let checked = self.activators.ordered(process, event, before, after);
        self.judge(checked);
    }

    /// An activator sends a request to a pod that does not wait there.
    pub(crate) fn granted_without_wait(&mut self, activator: ActivatorProcess) {
        self.judge(Err(CheckFailure::new(
            "only a request that waits is sent to a pod",
            format!("activator {} sends a request that does not wait", activator.activator.0),
        )));
    }

    /// An activator says a word about a revision of which it has a version in force and holds requests.
    pub(crate) fn activator_said(
        &mut self,
        connection: ConnectionNumber,
        word: &ActivatorWord,
        in_force: Option<Version>,
        held: u32,
    ) {
        let checked = self.activators.said(connection, word, in_force, held);
        self.judge(checked);
    }

    /// No fault has happened for two stable windows.
    pub(crate) fn ended(&mut self, scene: &EndScene) {
        let checked = ending::judge(scene);
        self.judge(checked);
    }
}
