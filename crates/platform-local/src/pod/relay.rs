//! What the queue-proxy says, passed on line by line.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use vocabulary::FIRST_ANSWER;

use super::messages::{PodMessage, tell};
use crate::lines::Lines;

/// Longer lines of the queue-proxy are cut.
const LONGEST_LOG_LINE: usize = 8 * 1024;

/// The output of the queue-proxy that a relay reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnnouncementSource {
    /// Its standard output: its ports, and then its app's first answer.
    Announcements,
    /// Its standard error: the lines of its own log.
    Log,
}

/// Passes on what the queue-proxy says, line by line.
pub(super) struct Relay {
    pipe: File,
    source: AnnouncementSource,
    lines: Lines,
}

impl Relay {
    pub(super) fn of(pipe: OwnedFd, source: AnnouncementSource) -> Self {
        Self { pipe: pipe.into(), source, lines: Lines::of_at_most(LONGEST_LOG_LINE) }
    }

    /// By which it is found out whether there is something to read.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Passes on what can be read; false at its end.
    pub(super) fn relay(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let source = self.source;
        match self.pipe.read(&mut buffer) {
            Ok(0) => {
                self.lines.finish(|line| pass_on(source, line));
                false
            }
            Ok(length) => {
                self.lines.push(&buffer[..length], |line| pass_on(source, line));
                true
            }
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }

    /// Passes on what the queue-proxy said before it ended. What it started may hold the pipe open, so its
    /// end is not waited for.
    pub(super) fn drain(&mut self) {
        loop {
            let mut source = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            let is_readable = poll(&mut source, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
            if !is_readable || !self.relay() {
                return;
            }
        }
    }
}

fn pass_on(source: AnnouncementSource, line: &str) {
    let announcement = match source {
        AnnouncementSource::Announcements if line == FIRST_ANSWER => Some(PodMessage::Answered),
        AnnouncementSource::Announcements => serde_json::from_str(line).ok().map(PodMessage::Announced),
        AnnouncementSource::Log => None,
    };
    tell(&announcement.unwrap_or_else(|| PodMessage::QueueProxyLogged { line: line.to_owned() }));
}
