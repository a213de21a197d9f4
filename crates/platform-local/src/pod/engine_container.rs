//! The container of an image, which its engine runs, ends and removes.
//!
//! ```text
//! ebb pod ──► ENGINE run            in the foreground; it prints and ends as the container does
//!         ──► ENGINE stop -t GRACE  TERM, or the image's own signal; KILL after the grace
//!         ──► ENGINE rm --force     at the end, however that came
//! ```
//!
//! The container itself is no descendant of `ebb pod`: killing `ENGINE run` ends nothing. So each way out of
//! here leads past [`EngineContainer::remove`], and a container whose `ebb pod` was killed is removed by an
//! `ebb up` (`supervisor/image_keeper.rs`).

use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use runtime::Clock;

use super::messages::{PodMessage, tell};
use super::{PodSpec, descendants};
use crate::control_groups::killed_beyond;
use crate::images::{ContainerOwner, ImageEngine};
use crate::proc::pid_of;

/// How long an engine may take for what it does in a moment. Its supervisor has more patience with `ebb pod`.
const ENGINE_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it has done that.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How engines write a point in time that has not come.
const NEVER: &str = "0001-01-01";
/// Engines end with one of these if they could not start a container; the container's program may, too.
const NOT_STARTED: std::ops::RangeInclusive<i32> = 125..=127;
/// What programs end with that a signal has killed, less the signal's number.
const KILLED_BY: i32 = 128;

/// A container, from before it exists until it is removed.
#[derive(Debug)]
pub(super) struct EngineContainer {
    engine: ImageEngine,
    name: String,
    /// The limit of its memory, if it has one.
    memory_bytes: Option<u64>,
    /// `ENGINE stop`, once that was started.
    stop: Option<Pid>,
    is_removed: bool,
    _owner: ContainerOwner,
}

impl EngineContainer {
    /// Claims the container of a pod whose app is an image; `None` if it is a process.
    pub(super) fn claim(spec: &PodSpec) -> io::Result<Option<Self>> {
        if !spec.template.has_image() {
            return Ok(None);
        }
        let runtime = spec.images.as_ref().ok_or_else(no_engine)?;
        let name = runtime.container_of(&spec.pod);
        let owner = ContainerOwner::claim(&name)?;
        let memory_bytes = spec.template.app.limits.memory_bytes;
        let engine = runtime.engine;
        Ok(Some(Self { engine, name, memory_bytes, stop: None, is_removed: false, _owner: owner }))
    }

    /// Asks it to end, and has it killed if it has not within the grace. Does not wait for that.
    pub(super) fn stop(&mut self, grace: Duration) {
        // Whole seconds are all that engines take. A grace that was not written never gets shorter.
        let seconds = (grace.as_secs() + u64::from(grace.subsec_nanos() > 0)).to_string();
        let stop = self.command(&["stop", "-t", &seconds]).stdout(Stdio::null()).spawn();
        self.stop = stop.ok().map(|stop| pid_of(stop.id()));
    }

    /// Whether this is the end of `ENGINE stop`, which has failed: there is no such container yet, so its
    /// start is to be ended.
    pub(super) fn has_stop_failed(&mut self, status: WaitStatus) -> bool {
        let is_stop = self.stop.is_some() && self.stop == status.pid();
        if is_stop {
            self.stop = None;
        }
        is_stop && !matches!(status, WaitStatus::Exited(_, 0))
    }

    /// How it ended, as the end of a sentence, by how `ENGINE run` did; `None` where that alone says it.
    pub(super) fn how_ended(&self, status: WaitStatus) -> Option<String> {
        let WaitStatus::Exited(_, code) = status else { return None };
        if NOT_STARTED.contains(&code) {
            let engine = self.engine;
            return Some(format!(
                "exited with code {code}, with which {engine} also says that it cannot start a container"
            ));
        }
        let signal = Signal::try_from(code - KILLED_BY).ok()?;
        match self.memory_bytes {
            Some(bytes) if signal == Signal::SIGKILL && self.was_killed_for_memory() => {
                Some(killed_beyond(bytes))
            }
            Some(_) | None => Some(format!("was killed by {signal}")),
        }
    }

    /// Whether `ENGINE run` ended so because the engine could not even start the container that it had made.
    pub(super) fn was_never_started(&self, status: WaitStatus) -> bool {
        let WaitStatus::Exited(_, code) = status else { return false };
        let started = || self.inspected("{{.State.StartedAt}}");
        NOT_STARTED.contains(&code) && started().is_some_and(|at| at.trim().starts_with(NEVER))
    }

    /// Removes what is left of a container that could not be started, whose name is used again.
    pub(super) fn remove_remains(&self) {
        let _ = answer_of(&mut self.command(self.engine.removal()));
    }

    /// Removes it, whether it runs or not, and says so. A container that the engine does not remove is left
    /// to the supervisor.
    pub(super) fn remove(&mut self) {
        if self.is_removed {
            return;
        }
        self.is_removed = true;
        if answer_of(&mut self.command(self.engine.removal())).is_some() {
            tell(&PodMessage::ContainerRemoved);
        }
    }

    /// The first process of the container, by its number on this machine; `None` if it does not run.
    pub(super) fn first_process(&self) -> Option<Pid> {
        let number: i32 = self.inspected("{{.State.Pid}}")?.trim().parse().ok()?;
        (number > 0).then(|| Pid::from_raw(number))
    }

    fn was_killed_for_memory(&self) -> bool {
        self.inspected("{{.State.OOMKilled}}").is_some_and(|answer| answer.trim() == "true")
    }

    fn inspected(&self, format: &str) -> Option<String> {
        answer_of(&mut self.command(&["container", "inspect", "--format", format]))
    }

    /// What the engine is asked about the container.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.engine.program());
        command.args(words).arg(&self.name).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for EngineContainer {
    /// For the ways out on which something failed. What is still starting the container is killed first: it
    /// could make it after it was removed.
    fn drop(&mut self) {
        if !self.is_removed {
            descendants::kill_all();
            self.remove();
        }
    }
}

/// Why an image cannot be run by an `ebb up` that runs none.
pub(super) fn no_engine() -> io::Error {
    io::Error::other(
        "this `ebb up` runs no images: neither podman nor docker is in $PATH, or --images is off",
    )
}

/// What a command of the engine prints, if it ends well and in time.
fn answer_of(command: &mut Command) -> Option<String> {
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let clock = Clock::start();
    let deadline = clock.now() + ENGINE_PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return printed(&mut child).filter(|_| status.success()),
            Ok(None) if clock.now() < deadline => std::thread::sleep(LOOK_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// What a process that has ended has printed: less than a pipe holds.
fn printed(child: &mut Child) -> Option<String> {
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::{ContainerImage, ImageNetwork, ImageRuntime, new_instance};

    fn container(memory_bytes: Option<u64>) -> EngineContainer {
        let instance = new_instance(std::process::id());
        let runtime = ImageRuntime { engine: ImageEngine::Docker, network: ImageNetwork::Auto, instance };
        // Each test has a name of its own.
        let name = runtime.container_of(&format!("{memory_bytes:?}"));
        let owner = ContainerOwner::claim(&name).expect("no other test has it");
        // It is never made, so there is nothing to remove.
        let (engine, is_removed) = (runtime.engine, true);
        EngineContainer { engine, name, memory_bytes, stop: None, is_removed, _owner: owner }
    }

    #[test]
    fn exit_codes_of_an_engine_are_told_as_those_of_a_process() {
        let container = container(None);
        let how = |code| container.how_ended(WaitStatus::Exited(Pid::this(), code));
        assert_eq!((how(0), how(3), how(200)), (None, None, None));
        assert_eq!(how(137).as_deref(), Some("was killed by SIGKILL"));
        assert_eq!(how(143).as_deref(), Some("was killed by SIGTERM"));
        assert_eq!(
            how(127).as_deref(),
            Some("exited with code 127, with which docker also says that it cannot start a container")
        );
        assert_eq!(container.how_ended(WaitStatus::Signaled(Pid::this(), Signal::SIGKILL, false)), None);
    }

    #[test]
    fn the_end_of_a_stop_is_told_from_other_ends() {
        let mut container = container(Some(1));
        container.stop = Some(Pid::from_raw(17));
        assert!(!container.has_stop_failed(WaitStatus::Exited(Pid::from_raw(18), 125)));
        assert!(container.has_stop_failed(WaitStatus::Exited(Pid::from_raw(17), 125)));
        assert!(!container.has_stop_failed(WaitStatus::Exited(Pid::from_raw(17), 125)), "it is told once");
    }

    #[test]
    fn an_image_without_an_engine_is_refused_and_a_process_needs_none() {
        let mut template = crate::pod::Template::default();
        let spec = |template| PodSpec {
            pod: "hello-00001-0001".to_owned(),
            namespace: "default".to_owned(),
            service: "hello".to_owned(),
            revision: "hello-00001".to_owned(),
            template,
            drain_limit: Duration::ZERO,
            ignored_user_agents: vocabulary::IgnoredUserAgents::default(),
            descriptors: None,
            control_group: None,
            images: None,
        };
        assert!(EngineContainer::claim(&spec(template.clone())).is_ok_and(|claimed| claimed.is_none()));
        template.app.image = Some(ContainerImage::named("app:1"));
        let refusal = EngineContainer::claim(&spec(template)).expect_err("no engine").to_string();
        assert!(refusal.contains("podman") && refusal.contains("docker"), "{refusal}");
    }
}
