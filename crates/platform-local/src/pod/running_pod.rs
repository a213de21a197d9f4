//! The processes of a pod from their start to the end of the last one: which ends first, and how long each
//! may take.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use runtime::Clock;
use vocabulary::Timestamp;

use super::children::{self, PlacedContainer};
use super::descendants::{self, RemainingChildren};
use super::engine_container::EngineContainer;
use super::exit_words::{background_in_words, queue_proxy_exit_reason};
use super::messages::{PodMessage, tell};
use super::orphans::{self, OrphanAge, Orphans};
use super::port_watch::{PortNews, PortWatch};
use super::ports::ReservedPort;
use super::process::Process;
use super::relay::Relay;
use super::usage::UsageReporter;
use super::{PodSpec, signals};
use crate::images::ImageNetwork;
use crate::proc::pid_of;

/// The time in which a queue-proxy answers what it holds after its app has ended.
const ORPHAN_GRACE: Duration = Duration::from_secs(10);

pub(super) const QUEUE_PROXY: &str = "the queue-proxy";

/// The events for which `poll` returned.
#[derive(Debug, Default)]
struct WakeCauses {
    abandoned: bool,
    signalled: bool,
    /// Which relays have something to read.
    relays: Vec<bool>,
}

pub(super) struct RunningPod {
    pub(super) clock: Clock,
    pub(super) spec: PodSpec,
    /// Of all containers, in their order.
    pub(super) ports: Vec<ReservedPort>,
    /// The processes of all containers, the app's first.
    pub(super) containers: Vec<Process>,
    /// Whether the app listens on the port that it was given.
    pub(super) app_port: PortWatch,
    pub(super) queue_proxy: Process,
    pub(super) told_to_end: bool,
    pub(super) failed: bool,
    /// What the containers' first processes leave behind; `None` until these are told to end.
    pub(super) orphans: Option<Orphans>,
    /// Whether there was a child when children were collected last.
    pub(super) children: RemainingChildren,
    pub(super) usage: UsageReporter,
}

impl RunningPod {
    pub(super) fn run(mut self, signals: &SignalFd, mut relays: Vec<Relay>) -> anyhow::Result<ExitCode> {
        // What ended before signals were taken over was not signalled.
        self.take_signals(signals);
        self.advance();
        while self.is_running() {
            let woken = self.wait(signals, &relays)?;
            if woken.abandoned {
                // An engine that is still starting the container could make it after it was removed.
                descendants::kill_all();
                self.remove_containers();
                return Ok(ExitCode::FAILURE);
            }
            let mut is_readable = woken.relays.into_iter();
            relays.retain_mut(|relay| !is_readable.next().unwrap_or(false) || relay.relay());
            if woken.signalled {
                self.take_signals(signals);
            }
            self.advance();
        }
        relays.iter_mut().for_each(Relay::drain);
        self.remove_containers();
        // All are gone, or their time is over; what they left running goes with them.
        descendants::kill_all();
        Ok(if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// What an engine runs is nothing of ours, and is not killed with it.
    fn remove_containers(&mut self) {
        for container in self.containers.iter_mut().filter_map(|process| process.engine.as_mut()) {
            container.remove();
        }
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.containers.iter().chain([&self.queue_proxy])
    }

    /// Whether there is anything to wait for: a process of ours, or what containers that were told to end
    /// have left behind, for as long as these had themselves.
    fn is_running(&self) -> bool {
        let are_orphans_awaited =
            self.orphans.as_ref().is_some_and(|orphans| orphans.are_awaited(self.clock.now()));
        self.processes().any(|process| process.is_alive)
            || (are_orphans_awaited && self.children == RemainingChildren::AtLeastOne)
    }

    fn wait(&self, signals: &SignalFd, relays: &[Relay]) -> anyhow::Result<WakeCauses> {
        let stdin = io::stdin();
        let mut sources = vec![
            PollFd::new(stdin.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        sources.extend(relays.iter().map(|relay| PollFd::new(relay.as_fd(), PollFlags::POLLIN)));
        match poll(&mut sources, self.timeout()) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for something to happen"),
        }
        let is_ready = |index: usize| sources.get(index).and_then(PollFd::any).unwrap_or(false);
        Ok(WakeCauses {
            abandoned: is_ready(0) && is_closed(&stdin),
            signalled: is_ready(1),
            relays: (2..sources.len()).map(is_ready).collect(),
        })
    }

    fn timeout(&self) -> PollTimeout {
        let alive = self.processes().filter(|process| process.is_alive);
        let kills = alive.filter_map(|process| process.kill_at);
        let kills = kills.chain(self.orphans.as_ref().map(Orphans::kill_at));
        let reports = [self.usage.next_deadline(), self.app_port.next_deadline()];
        let Some(next) = kills.chain(reports).min() else { return PollTimeout::NONE };
        // Rounded up, so that the loop does not spin through the last millisecond.
        let wait = next.saturating_since(self.clock.now()) + Duration::from_millis(1);
        PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
    }

    fn take_signals(&mut self, signals: &SignalFd) {
        while let Ok(Some(signal)) = signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or_default();
            if Signal::try_from(number) != Ok(Signal::SIGCHLD) {
                self.told_to_end = true;
            }
        }
        self.children = descendants::reap(|status| self.note_end(status));
    }

    /// Notes the end of a child. A child that is neither a container nor the queue-proxy was an orphan, whose
    /// end is no news.
    fn note_end(&mut self, status: WaitStatus) {
        if let (Some(orphans), Some(pid)) = (&mut self.orphans, status.pid()) {
            orphans.forget(pid);
        }
        self.containers.iter_mut().for_each(|container| container.note_end_of_stop(status));
        let is_app = status.pid() == self.containers.first().map(|app| app.pid);
        if is_app && self.begin_in_host_network(status) {
            return;
        }
        let is_this = |process: &&mut Process| status.pid() == Some(process.pid);
        let found = self.containers.iter_mut().chain([&mut self.queue_proxy]).find(is_this);
        let Some(process) = found else { return };
        process.is_alive = false;
        // The app is expected to end once it was asked to; before that, even while the queue-proxy drains,
        // its end is a failure. The queue-proxy is expected to end once the pod was asked to: one sender may
        // have sent TERM to all of them, and the queue-proxy's end may be read here before the pod's own
        // TERM.
        let is_expected = process.kill_at.is_some() || (self.told_to_end && process.name == QUEUE_PROXY);
        if !is_expected && !self.failed {
            self.failed = true;
            let known = if process.name == QUEUE_PROXY { queue_proxy_exit_reason(status) } else { "" };
            let how = process.how_ended(status);
            let container = process.container.clone();
            let is_container = process.name != QUEUE_PROXY;
            let mut reason = format!("{} {how}{known}", process.name);
            if is_container && matches!(status, WaitStatus::Exited(_, 0)) {
                reason += &self.left_in_background();
            }
            if is_app {
                self.usage.report_end(&reason);
            }
            tell(&PodMessage::Failed { reason, container });
        }
    }

    /// Starts the container of an image once more, in the network of the host, if its engine could not even
    /// start it in a network of its own and may do either. Whether that was because of the network shows when
    /// the pod is ready.
    fn begin_in_host_network(&mut self, status: WaitStatus) -> bool {
        let (Some(images), Some(app)) = (&mut self.spec.images, self.containers.first_mut()) else {
            return false;
        };
        let Some(container) = &app.engine else { return false };
        let may_begin = images.network == ImageNetwork::Auto && !self.told_to_end && app.kill_at.is_none();
        if !may_begin || !container.was_never_started(status) {
            return false;
        }
        container.remove_remains();
        images.network = ImageNetwork::Host;
        let placed = PlacedContainer::of(&self.spec, &self.ports, 0);
        let Ok(child) = signals::unblocked(|| children::start(&self.spec, placed, None)) else {
            return false;
        };
        app.pid = pid_of(child.id());
        let now = self.clock.now();
        self.app_port = PortWatch::of_app(&self.spec, app.pid, self.ports[0].number, now);
        self.usage.note_container(None, now);
        tell(&PodMessage::BeganInHostNetwork);
        true
    }

    /// What a container that ended well has left running, as the end of a sentence: a server that made itself
    /// a daemon has not failed in its own eyes. Empty if nothing is left.
    fn left_in_background(&self) -> String {
        let own = |pid: &Pid| self.processes().any(|process| process.pid == *pid);
        let left = descendants::children().into_iter().filter(|pid| !own(pid));
        let names: BTreeSet<String> = left.filter_map(descendants::name_of).collect();
        background_in_words(&names)
    }

    /// Asks the next process to end, kills those whose time is over, and reports usage.
    fn advance(&mut self) {
        let now = self.clock.now();
        let all_alive = self.containers.iter().all(|container| container.is_alive);
        match (all_alive, self.queue_proxy.is_alive) {
            (true, true) if self.told_to_end => {
                // How long a drain may take is known to the queue-proxy, and watched over by the supervisor.
                self.queue_proxy.end_within(Duration::MAX, now);
            }
            (true, true) => {}
            // The others go on meanwhile: it may have requests that they can answer.
            (false, true) => self.queue_proxy.end_within(ORPHAN_GRACE, now),
            (true | false, false) => self.end_containers(now),
        }
        self.report_kill_if_due(now);
        for process in self.containers.iter_mut().chain([&mut self.queue_proxy]) {
            process.kill_if_due(now);
        }
        if self.usage.awaits_container(now) {
            let app = self.containers.first().filter(|app| app.is_alive && app.kill_at.is_none());
            let container = app.and_then(|app| app.engine.as_ref());
            self.usage.note_container(container.and_then(EngineContainer::first_process), now);
        }
        self.usage.report_if_due(now);
        match self.app_port.news(now) {
            Some(PortNews::Elsewhere(trouble)) => {
                tell(&PodMessage::ListensElsewhere { trouble: Some(trouble) });
            }
            Some(PortNews::Over) => tell(&PodMessage::ListensElsewhere { trouble: None }),
            None => {}
        }
    }

    /// What a container has from TERM to KILL.
    fn app_grace(&self) -> Duration {
        self.spec.template.app_grace()
    }

    fn end_containers(&mut self, now: Timestamp) {
        let grace = self.app_grace();
        let own = |pid: &Pid| self.processes().any(|process| process.is_alive && process.pid == *pid);
        // The children of a pod of an image are engines that do what they were asked to.
        let children = if self.spec.template.has_image() { Vec::new() } else { descendants::children() };
        let orphans: Vec<Pid> = children.into_iter().filter(|pid| !own(pid)).collect();
        if self.containers.iter().any(|container| container.is_alive) {
            // A failed container alone is not told, and what it left is not waited for.
            self.orphans.get_or_insert_with(|| Orphans::at_term(orphans.clone(), now + grace));
        }
        for container in self.containers.iter_mut().filter(|container| container.is_alive) {
            container.end_within(grace, now);
        }
        let mut told = self.containers.iter().filter(|container| container.kill_at.is_some());
        if let Some(known) = &mut self.orphans
            && known.are_awaited(now)
            && told.any(|container| !container.is_alive)
        {
            let all_ended = self.containers.iter().all(|container| !container.is_alive);
            known.tell(if all_ended { OrphanAge::Any } else { OrphanAge::SinceTerm }, &orphans);
        }
    }

    /// Says what is killed in this moment, if a container's time is over and something of it is left.
    fn report_kill_if_due(&mut self, now: Timestamp) {
        let Some(orphans) = &mut self.orphans else { return };
        if !orphans.is_kill_to_be_reported(now) {
            return;
        }
        let containers = self.containers.iter().filter(|container| container.is_alive);
        let containers: Vec<&str> = containers.map(|container| container.name.as_str()).collect();
        if let Some(reason) = orphans::how_killed(&containers, &descendants::all(), self.app_grace()) {
            tell(&PodMessage::Killed { reason });
        }
    }
}

/// Whether the supervisor closed its end. Anything that it might say is not for us: it said all in the first
/// line.
fn is_closed(stdin: &io::Stdin) -> bool {
    let mut buffer = [0; 64];
    matches!(stdin.lock().read(&mut buffer), Ok(0) | Err(_))
}
