//! Writes lines to an output, and drops them while its reader does not keep up.
//!
//! A log line is written by any thread: the thread that decides, or the one that forwards requests. Neither
//! must wait for a terminal that was stopped (Ctrl-S) or for a log collector that hangs. So the kernel is
//! asked first whether it takes a piece at once.

use std::io::{self, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A pipe or terminal that takes anything takes this much at once (`PIPE_BUF` of Linux; POSIX: at least 512).
const PIECE: usize = 4096;

/// A writer of whole lines, one `write` each, that never waits. Another process that writes to the same pipe
/// in the same instant can still make it.
#[derive(Debug)]
pub(crate) struct LossyWriter<W> {
    output: W,
    /// Says in a line of its own how many lines were dropped.
    notice: fn(u64) -> String,
    dropped: u64,
    /// The dropped lines that are not counted yet.
    newly_dropped: u64,
    /// The last line was cut.
    is_cut: bool,
}

impl<W: Write + AsFd> LossyWriter<W> {
    pub(crate) fn new(output: W, notice: fn(u64) -> String) -> Self {
        Self { output, notice, dropped: 0, newly_dropped: 0, is_cut: false }
    }

    /// How many lines were dropped since this was asked last.
    pub(crate) fn take_newly_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.newly_dropped)
    }

    /// Returns whether all of it was written.
    fn write_at_once(&mut self, line: &[u8]) -> io::Result<bool> {
        for piece in line.chunks(PIECE) {
            if !takes_more(&self.output) {
                return Ok(false);
            }
            self.output.write_all(piece)?;
            self.is_cut = !piece.ends_with(b"\n");
        }
        Ok(true)
    }

    /// Says what was dropped, if that can be said. Returns whether there is nothing left to say.
    fn catch_up(&mut self) -> io::Result<bool> {
        if self.is_cut && !self.write_at_once(b"\n")? {
            return Ok(false);
        }
        if self.dropped > 0 {
            let notice = (self.notice)(self.dropped);
            if !self.write_at_once(notice.as_bytes())? {
                return Ok(false);
            }
            self.dropped = 0;
        }
        Ok(true)
    }
}

impl<W: Write + AsFd> Write for LossyWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !(self.catch_up()? && self.write_at_once(line)?) {
            self.dropped += 1;
            self.newly_dropped += 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Whether a piece can be written without waiting. Where that cannot be found out, it is tried.
fn takes_more(output: &impl AsFd) -> bool {
    let mut asked = [PollFd::new(output.as_fd(), PollFlags::POLLOUT)];
    poll(&mut asked, PollTimeout::ZERO) != Ok(0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn notice(lines: u64) -> String {
        format!("{lines} dropped\n")
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted() {
        // More than any pipe has room for, so the line is cut.
        const LONG: usize = 4 * 1024 * 1024;
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut lossy = LossyWriter::new(writer, notice);
        let mut long = vec![b'x'; LONG];
        long.push(b'\n');
        for line in [&long[..], b"unread\n"] {
            lossy.write_all(line).expect("open");
        }
        let mut part = vec![0; LONG];
        let length = reader.read(&mut part).expect("open");
        assert!(
            length > 0 && length < LONG && part[..length].iter().all(|&byte| byte == b'x'),
            "{length} bytes"
        );
        lossy.write_all(b"read\n").expect("open");
        drop(lossy);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "\n2 dropped\nread\n", "a part of a line ends where the next one begins");
    }

    #[test]
    fn a_closed_output_is_an_error() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let error =
            LossyWriter::new(writer, notice).write_all(b"line\n").expect_err("standard error is closed");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
