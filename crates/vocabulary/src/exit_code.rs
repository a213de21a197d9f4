//! By which exit code does a reader of Kubernetes' objects know how a program of ebb's ended?

/// The exit code of a process that ended because a vital part of it panicked: `EX_SOFTWARE`, "an internal
/// software error", of `sysexits.h`.
pub const EXIT_PART_FAILED: u8 = 70;
