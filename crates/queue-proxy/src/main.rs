//! The queue-proxy as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    queue_proxy::main_from_env()
}
