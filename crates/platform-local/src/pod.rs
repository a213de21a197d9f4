//! What `ebb pod` does: one app with its queue-proxy, other containers beside it if there are any, and
//! nothing left behind.
//!
//! Its standard input is a socket: one line there tells it what to run, and there it tells its supervisor
//! what happens ([`PodMessage`]). Its standard output and standard error are the app's, those of other
//! containers came with that line; what the queue-proxy logs becomes messages, so that no reader takes it for
//! the app's. TERM ends the queue-proxy first, which drains, then the app. The end of standard input means
//! that the supervisor is gone, however it went: every descendant is killed at once. When a container or the
//! queue-proxy ends by itself, the pod has failed, and the others are ended.
//!
//! It starts with every wake from zero, so it is a plain loop over `poll` without a runtime: it is up in
//! about a millisecond, and being the reaper of all orphans it must collect any child, which no library for
//! child processes wants to share.
//!
//! What TERM means for the processes behind a container's first one stands in [`orphans`]. An app that is an
//! image is run by a container engine ([`engine_container`]).

mod children;
mod descendants;
mod engine_container;
mod exit_words;
mod messages;
mod orphans;
mod port_watch;
mod ports;
mod process;
mod relay;
mod running_pod;
mod signals;
mod spec;
mod start;
mod usage;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use anyhow::Context;
use nix::sys::prctl::{set_child_subreaper, set_thp_disable};
use nix::unistd::Pid;
use runtime::{Clock, set_descriptor_limit};

use crate::control_groups::ContainerGroup;
use crate::proc::pid_of;
use children::PlacedContainer;
use descendants::RemainingChildren;
pub(crate) use descendants::descendants_of;
use engine_container::EngineContainer;
use messages::tell;
pub(crate) use messages::{LONGEST_LINE, PodMessage, SidecarProcess};
use port_watch::PortWatch;
use ports::ReservedPort;
use process::Process;
use relay::{AnnouncementSource, Relay};
use running_pod::{QUEUE_PROXY, RunningPod};
pub(crate) use spec::{Container, DownwardFact, EnvValue, PodSpec, Probes, Template};
pub(crate) use start::send_outputs;
pub(crate) use usage::ProcessUsage;
use usage::UsageReporter;

/// Runs one pod as told on standard input; returns when nothing of it is left. The program's arguments are
/// not looked at. 0 means that it ended because it was told to.
pub fn pod_main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            tell(&PodMessage::Failed { reason: format!("{error:#}"), container: None });
            descendants::kill_all();
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let (spec, outputs) = start::read()?;
    // A container is not ours to reap: its engine watches over it, and may keep a process for all containers
    // of this user.
    set_child_subreaper(!spec.template.has_image()).context("becoming the reaper of orphans")?;
    // The allocator of `ebb` does without huge pages; apps are started with the machine's own setting.
    set_thp_disable(false).context("allowing huge pages")?;
    // Nothing has been started yet and there is no other thread, so this is what the app finds from its first
    // instruction on. We need a dozen ourselves, and the queue-proxy raises its own again.
    if let Some(descriptors) = spec.descriptors {
        set_descriptor_limit(descriptors).context("setting the app's limit of open files")?;
    }
    let ports = reserve_ports(&spec)?;
    let containers = start_containers(&spec, &ports, outputs)?;
    let app = PlacedContainer::of(&spec, &ports, 0);
    let mut queue_proxy =
        children::start_queue_proxy(&spec, app).context("the queue-proxy cannot be started")?;
    // Not earlier: children inherit what is blocked, and would never see their TERM. One that comes before
    // this ends us, nothing was announced yet, and the supervisor kills our group.
    let signals = signals::take().context("taking over signals")?;
    let announcements = queue_proxy.stdout.take().context("the queue-proxy has no output")?;
    let log = queue_proxy.stderr.take().context("the queue-proxy has no log")?;
    let relays = vec![
        Relay::of(announcements.into(), AnnouncementSource::Announcements),
        Relay::of(log.into(), AnnouncementSource::Log),
    ];
    let usage_pipe = queue_proxy.stdin.take().context("the queue-proxy has no input")?;
    let queue_proxy = pid_of(queue_proxy.id());
    tell(&started(&containers, queue_proxy, &ports));
    let clock = Clock::start();
    let app_port = PortWatch::of_app(&spec, containers[0].pid, ports[0].number, clock.now());
    let usage = UsageReporter::new(usage_pipe.into(), queue_proxy)?;
    let usage = if spec.template.has_image() { usage.of_container(clock.now()) } else { usage };
    let pod = RunningPod {
        clock,
        spec,
        ports,
        containers,
        app_port,
        queue_proxy: Process::running(QUEUE_PROXY.to_owned(), queue_proxy),
        told_to_end: false,
        failed: false,
        orphans: None,
        children: RemainingChildren::AtLeastOne,
        usage,
    };
    pod.run(&signals, relays)
}

/// One for each container: on one machine two that always listen on the same could not be there twice.
fn reserve_ports(spec: &PodSpec) -> anyhow::Result<Vec<ReservedPort>> {
    let reserve = |_| ports::reserve(std::process::id()).context("no port for the app");
    spec.template.containers().map(reserve).collect()
}

/// Starts all of them, the app first. `outputs` are those of the others, two for each.
fn start_containers(
    spec: &PodSpec,
    ports: &[ReservedPort],
    outputs: Vec<OwnedFd>,
) -> anyhow::Result<Vec<Process>> {
    anyhow::ensure!(outputs.len() == 2 * spec.template.sidecars.len(), "the containers' outputs are missing");
    let mut outputs = outputs.into_iter();
    let mut processes = Vec::new();
    for (index, container) in spec.template.containers().enumerate() {
        let name = display_name(container);
        let streams = if index == 0 { None } else { outputs.next().zip(outputs.next()) };
        let group = group_of(spec, container).with_context(|| format!("the limits of {name}"))?;
        let engine = EngineContainer::claim(spec).with_context(|| format!("the image of {name}"))?;
        let start = || children::start(spec, PlacedContainer::of(spec, ports, index), streams);
        let child = match &group {
            Some(group) => group.start(start),
            None => start(),
        };
        let child = child.with_context(|| format!("{name} cannot be started"))?;
        let process = Process::running(name, pid_of(child.id()));
        processes.push(Process { container: container.name.clone(), group, engine, ..process });
    }
    Ok(processes)
}

/// The control group of a container, if it needs one and there is a place for it. Limits of an image are its
/// engine's to keep.
fn group_of(spec: &PodSpec, container: &Container) -> io::Result<Option<ContainerGroup>> {
    let is_needed = !container.limits.are_none() && container.image.is_none();
    let root = spec.control_group.as_deref().filter(|_| is_needed);
    let name = || {
        let container = container.name.as_deref().unwrap_or("app");
        format!("{}.{}.{container}", spec.namespace, spec.pod)
    };
    root.map(|root| ContainerGroup::make(root, &name(), container.limits)).transpose()
}

/// The name of a container in messages for people.
fn display_name(container: &Container) -> String {
    container.name.as_ref().map_or_else(|| "the app".to_owned(), |name| format!("the container {name}"))
}

fn started(containers: &[Process], queue_proxy: Pid, ports: &[ReservedPort]) -> PodMessage {
    let mut processes = containers.iter().zip(ports).map(|(process, port)| SidecarProcess {
        name: process.container.clone().unwrap_or_default(),
        pid: process.pid.as_raw(),
        port: port.number,
    });
    let app = processes.next().expect("a pod has an app");
    PodMessage::Started {
        app_pid: app.pid,
        queue_proxy_pid: queue_proxy.as_raw(),
        app_port: app.port,
        sidecars: processes.collect(),
    }
}
