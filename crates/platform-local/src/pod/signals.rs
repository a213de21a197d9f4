//! Signals as events to poll for, and as every child expects to find them.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that `ebb pod` takes as events.
fn taken() -> SigSet {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD] {
        signals.add(signal);
    }
    signals
}

/// Signals become events to poll for.
pub(super) fn take() -> nix::Result<SignalFd> {
    let signals = taken();
    signals.thread_block()?;
    SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Does something while no signal is blocked: children inherit what is blocked, and would never see their
/// TERM. A TERM that waits or comes meanwhile ends this process, as one does before signals are taken.
pub(super) fn unblocked<Output>(act: impl FnOnce() -> Output) -> Output {
    // Neither can fail for a set of signals that exist.
    let _ = taken().thread_unblock();
    let output = act();
    let _ = taken().thread_block();
    output
}
