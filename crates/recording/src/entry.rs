//! What the event loop hands to a recorder: one input of the orchestrator, and the commands that came out.

use orchestration::{ControlCommand, ControlEvent, ExactState};
use vocabulary::Timestamp;

/// One call of the orchestrator, or its state.
#[derive(Clone, Debug)]
pub struct RecordEntry {
    /// The time that the orchestrator was given.
    pub at: Timestamp,
    /// The call that was made, or the state that it found.
    pub input: RecordInput,
    /// All commands that came out before the next call.
    pub commands: Vec<ControlCommand>,
}

/// One of the two calls of [`orchestration::Orchestrator`], or its state between two of them.
#[derive(Clone, Debug)]
pub enum RecordInput {
    /// [`orchestration::Orchestrator::handle`] took in an event.
    Event(Box<ControlEvent>),
    /// [`orchestration::Orchestrator::advance`] did what was due.
    Advance,
    /// Nothing was called: the orchestrator goes by this before its next call. It has no commands.
    State(Box<ExactState>),
}
