//! `ebb`: everything a person does, and the processes that `ebb up` starts for itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    ebb::main(std::env::args_os())
}
