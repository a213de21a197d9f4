//! What `ebb pod` does: one app with its queue-proxy.

mod spec;

use std::process::ExitCode;

pub(crate) use spec::{PodSpec, Probes, Template};

/// Runs one pod as told on standard input; ends with it. The program's arguments are not looked at.
pub fn pod_main() -> ExitCode {
    ExitCode::FAILURE
}
