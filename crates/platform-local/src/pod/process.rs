//! A process that `ebb pod` watches over: the first one of a container, the engine that runs an image in the
//! foreground, or the queue-proxy.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use vocabulary::Timestamp;

use super::engine_container::EngineContainer;
use super::exit_words::exit_in_words;
use crate::control_groups::ContainerGroup;

/// How much longer than its grace the end of a container may take: its engine kills it then, and tells.
const ENGINE_SLACK: Duration = Duration::from_secs(5);

/// A container's process, or the queue-proxy's.
#[derive(Debug)]
pub(super) struct Process {
    /// The name in messages for people, such as "the app".
    pub(super) name: String,
    /// The container, where there are several.
    pub(super) container: Option<String>,
    /// Its control group, if it has one.
    pub(super) group: Option<ContainerGroup>,
    /// The container behind it, if it is an engine that runs an image.
    pub(super) engine: Option<EngineContainer>,
    pub(super) pid: Pid,
    pub(super) is_alive: bool,
    /// Set once it was told to end: when it is killed.
    pub(super) kill_at: Option<Timestamp>,
}

impl Process {
    pub(super) fn running(name: String, pid: Pid) -> Self {
        Self { name, container: None, group: None, engine: None, pid, is_alive: true, kill_at: None }
    }

    /// Asks it to end, once; after `patience` it is killed.
    pub(super) fn end_within(&mut self, patience: Duration, now: Timestamp) {
        let slack = if self.engine.is_some() { ENGINE_SLACK } else { Duration::ZERO };
        let latest = now + patience.saturating_add(slack);
        match self.kill_at {
            None => {
                if let Some(container) = &mut self.engine {
                    container.stop(patience);
                } else {
                    let _ = kill(self.pid, Signal::SIGTERM);
                }
                self.kill_at = Some(latest);
            }
            // A shorter patience than before: the other process went.
            Some(kill_at) => self.kill_at = Some(kill_at.min(latest)),
        }
    }

    pub(super) fn kill_if_due(&mut self, now: Timestamp) {
        if self.is_alive && self.kill_at.is_some_and(|kill_at| kill_at <= now) {
            let _ = kill(self.pid, Signal::SIGKILL);
            self.kill_at = Some(Timestamp::MAX);
        }
    }

    /// A child ended that may have been the one that asks the container to end. Where there was no container
    /// yet, its start is ended.
    pub(super) fn note_end_of_stop(&mut self, status: WaitStatus) {
        let has_failed = self.engine.as_mut().is_some_and(|container| container.has_stop_failed(status));
        if has_failed && self.is_alive {
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }

    /// How it ended, as the end of a sentence.
    pub(super) fn how_ended(&self, status: WaitStatus) -> String {
        let of_memory = self.group.as_ref().and_then(ContainerGroup::killed_for_memory);
        let of_engine = || self.engine.as_ref()?.how_ended(status);
        of_memory.or_else(of_engine).unwrap_or_else(|| exit_in_words(status))
    }
}
