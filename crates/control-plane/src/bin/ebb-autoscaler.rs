//! The autoscaler as a program of a cluster.

use std::process::ExitCode;

// Gives back what a burst of objects took, which the C library's allocator does not (`docs/performance.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    control_plane::autoscaler_main()
}
