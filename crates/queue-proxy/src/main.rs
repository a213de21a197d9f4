//! The queue-proxy as a program of its own.

use std::process::ExitCode;

// Gives back what a burst of requests took, which the C library's allocator does not
// (`cargo bench -p tests --bench memory`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    queue_proxy::main_from_env()
}
