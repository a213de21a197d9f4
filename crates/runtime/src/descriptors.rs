//! How many files and sockets may this process have open at once?
//!
//! A process starts with the *soft* limit, 1,024 nearly everywhere, for the sake of programs that use
//! `select`, which can name no descriptor beyond that. A proxy that obeyed it would stop at 500 clients. A
//! program that can use more may raise it to the *hard* limit, and ours can; apps that we start get the limit
//! that we found.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, info, warn};

/// The limit of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit that the process was started with.
    pub found: u64,
    /// The limit that is in force now.
    pub present: u64,
}

impl DescriptorLimit {
    /// Logs that the limit was raised, if it was. Programs that start with every pod do not call this: the
    /// line would be in the log of each pod.
    #[must_use]
    pub fn told(self) -> Self {
        let Self { found, present } = self;
        if present != found {
            info!(found, present, "the limit of open files and sockets was raised");
        }
        self
    }
}

/// Raises the limit as far as it goes. Called once, as a program starts.
pub fn raise_descriptor_limit() -> DescriptorLimit {
    let (found, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => {
            warn!(%error, assumed = ASSUMED, "the limit of open files cannot be read");
            return DescriptorLimit { found: ASSUMED, present: ASSUMED };
        }
    };
    let present = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(error) => {
            warn!(found, hard, %error, "the limit of open files cannot be raised");
            found
        }
    };
    debug!(found, present, "open files and sockets are limited");
    DescriptorLimit { found, present }
}

/// How many descriptors this process may have at present.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(ASSUMED, |(soft, _)| soft)
}

/// Gives this process, and what it starts from now on, another soft limit: the one that some `ebb` found.
pub fn set_descriptor_limit(soft: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)
}

/// The default limit of Linux.
const ASSUMED: u64 = 1024;
