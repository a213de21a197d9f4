//! What belongs to a pod's process: its descriptors, and what was begun to be read from them.

use std::os::fd::OwnedFd;

/// What belongs to a pod's process.
#[derive(Debug)]
pub(crate) struct PodHandles {
    /// Our end of its standard input.
    pub(crate) socket: OwnedFd,
    /// A descriptor of the process itself (a pidfd).
    pub(crate) process: OwnedFd,
    pub(crate) pid: i32,
    /// What was read of a message that is not whole yet.
    pub(crate) begun: Vec<u8>,
    /// Of each container, the app's first.
    pub(crate) outputs: Vec<ContainerOutputs>,
}

/// What a container prints to.
#[derive(Debug)]
pub(crate) struct ContainerOutputs {
    /// Which, where there are several.
    pub(crate) container: Option<String>,
    /// `None`: no process prints there any more.
    pub(crate) stdout: Option<PipeHandles>,
    pub(crate) stderr: Option<PipeHandles>,
}

/// What belongs to one of its outputs.
#[derive(Debug)]
pub(crate) struct PipeHandles {
    pub(crate) pipe: OwnedFd,
    /// What was read of a line that is not whole yet.
    pub(crate) begun: Vec<u8>,
    /// The last lines of standard error.
    pub(crate) last: Vec<String>,
}
