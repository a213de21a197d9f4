//! `ebb`: everything a person does, and the processes that `ebb up` starts for itself.

use std::process::ExitCode;

use autoscaler::Autoscaler;

// Gives back what a burst of requests took, which the C library's allocator does not
// (`cargo bench -p tests --bench memory`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ebb::main(std::env::args_os(), Autoscaler::start)
}
