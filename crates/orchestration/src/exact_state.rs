//! The state of the control loop as a value that becomes bytes, for an exact keyframe of a record.
//!
//! The bytes have the form of the private state. They are no promise to anyone: only the executable that
//! wrote them reads them, and any other begins with the facts that a new owner would be told.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vocabulary::{HopKey, LinkAddress, LinkToken, WaitingPage};

use crate::state::ControlState;

/// Everything that an [`crate::Orchestrator`] goes by, between two of its calls. Left out is what only
/// readers are shown: problems, the last decisions of each revision, and the lives of pods.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExactState(ControlState);

impl ExactState {
    /// A copy of the state. Large parts of it are shared until either is changed.
    pub(crate) fn of(state: &ControlState) -> Self {
        Self(state.clone())
    }

    /// The state, for an orchestrator that goes on with it.
    pub(crate) fn into_state(self) -> ControlState {
        self.0
    }

    /// The state as facts of a record would have led to it: with other hop keys and tokens, and without what
    /// no record has and nothing is decided by, such as the address of Prometheus, which may hold a password,
    /// the lines that apps printed, and waiting pages. No secret is left in the result.
    #[must_use]
    pub fn into_recorded(
        mut self,
        hop_key: impl Fn(&HopKey) -> HopKey,
        token: impl Fn(&LinkToken) -> LinkToken,
    ) -> Self {
        let replace_keys = |keys: &mut Vec<HopKey>| {
            for key in keys {
                *key = hop_key(key);
            }
        };
        let replace_token = |address: &mut LinkAddress| address.token = address.token.as_ref().map(&token);
        let state = &mut self.0;
        Arc::make_mut(&mut state.config).prometheus_url = None;
        for (_, activator) in state.activators.iter_mut() {
            replace_token(&mut activator.facts.link);
        }
        for record in state.registry.revisions.values_mut() {
            let facts = Arc::make_mut(&mut record.facts);
            (facts.url, facts.other_autoscaler, facts.waiting_page) = (None, None, WaitingPage::Off);
            replace_keys(&mut facts.hop_keys);
            if let Some(settings) = &mut record.settings {
                replace_keys(&mut Arc::make_mut(settings).hop_keys);
            }
            if let Some(assignment) = &mut record.assignment {
                let assignment = Arc::make_mut(assignment);
                // As in the facts: else the next facts of the record would change it.
                assignment.waiting_page = WaitingPage::Off;
                replace_keys(&mut assignment.hop_keys);
            }
            if let Some(failure) = &mut record.last_failure {
                Arc::make_mut(failure).last_lines.clear();
            }
            for pod in record.pods.values_mut() {
                let facts = Arc::make_mut(&mut pod.facts);
                facts.details.clear();
                if let Some(address) = &mut facts.link {
                    replace_token(address);
                }
                if let Some(link) = &mut pod.link {
                    replace_token(&mut link.address);
                }
            }
        }
        self
    }
}

/// What the state of a control loop is about: a copy takes time in proportion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// The revisions that the platform knows, those of other owners too.
    pub revisions: usize,
    /// Their pods, those that leave too.
    pub pods: usize,
}
