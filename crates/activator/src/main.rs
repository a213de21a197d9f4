//! The activator as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    activator::main_from_env()
}
