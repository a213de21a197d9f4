//! All programs of a cluster but the queue-proxy, in one executable that goes by what it is called: most of
//! each is what the others stand on too, and nodes pull it once.
//!
//! `ebb-activator` starts the activator's own crate and nothing else here: it speaks with no API server,
//! although the client for one lies in its file.

use std::process::ExitCode;

// Gives back what a burst of objects or of requests took, which the C library's allocator does not
// (`cargo bench -p tests --bench memory`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let path = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&path).file_name().unwrap_or_default();
    match name.to_str() {
        Some("ebb-activator") => activator::main_from_env(),
        Some("ebb-injector") => control_plane::injector_main(),
        Some(_) | None => control_plane::autoscaler_main(),
    }
}
