//! The calls of a control loop, for records of made-up runs.

use orchestration::{ControlCommand, ControlEvent};
use vocabulary::Timestamp;

/// One call of the control loop, with all that came out before the next call.
#[derive(Clone, Debug)]
pub struct OwnerCall {
    /// The time that the control loop was given.
    pub at: Timestamp,
    /// The event that it took in; `None` where it did what was due.
    pub event: Option<ControlEvent>,
    /// The commands that came out, in their order.
    pub commands: Vec<ControlCommand>,
}

/// Whether the calls of the control loop are kept. A day has millions of them.
#[derive(Clone, Debug)]
pub(crate) enum CallLog {
    Forgotten,
    Kept(Vec<OwnerCall>),
}

impl CallLog {
    /// The control loop is about to be called.
    pub(crate) fn begin(&mut self, at: Timestamp, event: Option<&ControlEvent>) {
        match self {
            Self::Forgotten => {}
            Self::Kept(calls) => {
                calls.push(OwnerCall { at, event: event.cloned(), commands: Vec::new() });
            }
        }
    }

    /// A command came out of the last call.
    pub(crate) fn command(&mut self, command: &ControlCommand) {
        match self {
            Self::Forgotten => {}
            Self::Kept(calls) => {
                if let Some(call) = calls.last_mut() {
                    call.commands.push(command.clone());
                }
            }
        }
    }

    /// Takes all calls out; a log that is kept goes on with none.
    pub(crate) fn take(&mut self) -> Vec<OwnerCall> {
        match self {
            Self::Forgotten => Vec::new(),
            Self::Kept(calls) => std::mem::take(calls),
        }
    }
}
