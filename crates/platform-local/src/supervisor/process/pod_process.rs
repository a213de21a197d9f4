//! The process of a pod with our ends of what connects us: started here, or taken over from another `ebb up`.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout, Command};

use crate::pod::{Container, PodSpec, send_outputs};
use crate::supervisor::handover::{ContainerOutputs, PipeHandles, PodHandles};
use crate::supervisor::process_control::ProcessControl;

/// Variables by which a service manager and `ebb up` speak to each other; pods do not get them.
const OF_SERVICE_MANAGER: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// A process, and our ends of what connects us.
pub(super) struct PodProcess {
    pub(super) control: ProcessControl,
    /// Its standard input is the other end.
    pub(super) socket: UnixStream,
    /// The bytes of a message that another process began to read.
    pub(super) begun: Vec<u8>,
    /// Of each container, the app's first.
    pub(super) outputs: Vec<ContainerOutputs>,
}

impl PodProcess {
    pub(super) fn taken_over(handles: PodHandles) -> std::io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(handles.socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            control: ProcessControl::of_descriptor(handles.process, handles.pid)?,
            socket: UnixStream::from_std(socket)?,
            begun: handles.begun,
            outputs: handles.outputs,
        })
    }
}

/// The process leads a group of its own, so that Ctrl-C in a terminal reaches `ebb up` alone, and so that the
/// group can be killed whole. Its arguments name its pod, for readers of a list of processes.
pub(super) fn spawn(ebb: &Path, spec: &PodSpec) -> std::io::Result<PodProcess> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(ebb);
    for name in OF_SERVICE_MANAGER {
        command.env_remove(name);
    }
    let mut child = command
        .arg0("ebb")
        .arg("pod")
        .arg(spec.full_name())
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().map(ChildStdout::into_owned_fd).transpose()?;
    let stderr = child.stderr.take().map(ChildStderr::into_owned_fd).transpose()?;
    let (mut outputs, mut theirs) = (Vec::new(), Vec::new());
    outputs.push(outputs_of(&spec.template.app, stdout, stderr));
    for container in &spec.template.sidecars {
        let ((stdout, to_stdout), (stderr, to_stderr)) = (std::io::pipe()?, std::io::pipe()?);
        theirs.extend([OwnedFd::from(to_stdout), to_stderr.into()]);
        outputs.push(outputs_of(container, Some(stdout.into()), Some(stderr.into())));
    }
    send_outputs(&ours, &theirs)?;
    let socket = UnixStream::from_std(ours)?;
    Ok(PodProcess { control: ProcessControl::of_child(child), socket, begun: Vec::new(), outputs })
}

fn outputs_of(container: &Container, stdout: Option<OwnedFd>, stderr: Option<OwnedFd>) -> ContainerOutputs {
    let new =
        |pipe: Option<OwnedFd>| pipe.map(|pipe| PipeHandles { pipe, begun: Vec::new(), last: Vec::new() });
    ContainerOutputs { container: container.name.clone(), stdout: new(stdout), stderr: new(stderr) }
}

/// A process that is gone already does not read; that shows when its output ends.
pub(super) async fn send_spec(input: &mut UnixStream, spec: &PodSpec) {
    let mut line = serde_json::to_vec(spec).expect("specifications are plain data");
    line.push(b'\n');
    let _ = input.write_all(&line).await;
}
