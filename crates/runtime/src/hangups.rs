//! SIGHUP: "read your configuration again", or "your terminal is gone"?
//!
//! The same signal says both. A process whose terminal was closed cannot open `/dev/tty` any more, so one
//! that could at its start can tell. A program that was started with the signal ignored (`nohup`) does
//! neither.

use std::convert::Infallible;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The kernel sends the signal a moment before it takes the terminal away.
const TERMINAL_GOES_WITHIN: Duration = Duration::from_millis(100);

/// The two meanings of SIGHUP for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// The configuration is to be read again.
    Reload,
    /// The terminal from which the program was started is gone.
    TerminalGone,
}

/// The hangups that this process receives. From its creation on they no longer end the process by themselves.
#[derive(Debug)]
pub struct Hangups {
    /// `None` if they are ignored.
    signal: Option<Signal>,
    had_terminal: bool,
}

impl Hangups {
    /// Takes over SIGHUP, unless it is ignored. Must be called within a tokio runtime.
    pub fn listen() -> anyhow::Result<Self> {
        let signal = if is_ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default()) {
            None
        } else {
            Some(signal(SignalKind::hangup()).context("listening for SIGHUP")?)
        };
        Ok(Self { signal, had_terminal: has_terminal() })
    }

    /// The next hangup. Cancel-safe: a signal that arrives while no task waits is kept.
    pub async fn next(&mut self) -> Hangup {
        let Some(signal) = &mut self.signal else {
            let never: Infallible = std::future::pending().await;
            match never {}
        };
        signal.recv().await;
        if !self.had_terminal {
            return Hangup::Reload;
        }
        if has_terminal() {
            tokio::time::sleep(TERMINAL_GOES_WITHIN).await;
        }
        if has_terminal() { Hangup::Reload } else { Hangup::TerminalGone }
    }
}

fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// Whether `/proc/PID/status` counts SIGHUP among the ignored signals: a mask in which a signal's bit is its
/// number less one.
fn is_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (Number::SIGHUP as i32 - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_known_by_the_mask() {
        assert!(is_ignored("SigBlk:\t0\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"));
        assert!(!is_ignored("SigIgn:\t0000000000001000\n"));
        assert!(!is_ignored(""));
    }
}
