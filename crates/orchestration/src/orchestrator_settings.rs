//! What an orchestrator is told at its start, by the program that it runs in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a leaving pod waits at most on one machine for the activators that may send to it, before it is
/// ended all the same. An acknowledgement takes milliseconds there, and a process that stalls under load
/// comes back within a second or two: an activator that has said nothing for 5 s is not waited for. The
/// platform counts it too, for the case that no autoscaler decides.
pub const RELEASE_AFTER: Duration = Duration::from_secs(5);

/// What an orchestrator knows before it knows anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OrchestratorSettings {
    /// How long a leaving pod waits for the acknowledgement of every activator that may send to it.
    pub release_after: Duration,
    /// Which activators serve a revision.
    pub choice: ActivatorChoice,
}

/// Which activators serve a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActivatorChoice {
    /// All of them: a request may come to any.
    #[default]
    All,
    /// As many as its load calls for, chosen by its name: routes name them.
    AsManyAsNeeded,
    /// All of them, of which as many share the slots of its pods as its load calls for: those that the
    /// controller of an installed Knative chooses by their addresses.
    AllOfWhichSomeShare,
}

impl Default for OrchestratorSettings {
    /// The settings of an autoscaler on one machine.
    fn default() -> Self {
        Self { release_after: RELEASE_AFTER, choice: ActivatorChoice::All }
    }
}
