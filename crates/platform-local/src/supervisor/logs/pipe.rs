//! Reading one of an app's outputs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::sink::LineWriter;
use super::store::LogStream;
use crate::lines::Lines;
use crate::supervisor::handover::{HandOverVerdict, PipeHandles, decided};

/// The most bytes of a line; a longer one becomes several.
const LONGEST_LINE: usize = 8 * 1024;
/// How many lines a failed pod's last words are, and how long each: what fits a screen.
const LAST_LINES: usize = 10;
const LAST_LINE_MAX: usize = 512;
/// How long output may come after the pod's end. Only a descendant that left the group of a killed `ebb pod`
/// could print longer, and is not waited for.
const SILENCE_AFTER_END: Duration = Duration::from_millis(500);

/// One of an app's outputs on its way to the writer.
#[derive(Debug)]
pub(super) struct PipeReader {
    pipe: Receiver,
    stream: LogStream,
    writer: LineWriter,
    lines: Lines,
    last: VecDeque<String>,
}

/// A question to the reader of a pipe.
#[derive(Debug)]
pub(super) enum PipeQuestion {
    /// The last lines of all that was printed until now.
    LastWords(oneshot::Sender<Vec<String>>),
    /// To read nothing more until the verdict, and to hand over copies.
    StandStill(oneshot::Sender<PipeHandles>, watch::Receiver<HandOverVerdict>),
}

/// Whether there may be more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    Empty,
    Closed,
}

impl PipeReader {
    /// A reader of a pipe from which nothing was read.
    pub(super) fn new(pipe: Receiver, stream: LogStream, writer: LineWriter) -> Self {
        let lines = Lines::continued(Vec::new(), LONGEST_LINE);
        Self { pipe, stream, writer, lines, last: VecDeque::new() }
    }

    /// The same where another process has read: the bytes of a line that it had `begun` to read, and the
    /// `last` lines that it remembered.
    pub(super) fn continued(self, begun: Vec<u8>, last: &[String]) -> Self {
        let lines = Lines::continued(begun, LONGEST_LINE);
        let mut continued = Self { lines, ..self };
        // Cut and counted by the rules of this version, whatever those of the other process were.
        for line in last {
            continued.remember(line);
        }
        continued
    }

    /// Reads to the end, or until another process has taken the pipe over.
    pub(super) async fn run(mut self, ended: CancellationToken, mut asked: mpsc::Receiver<PipeQuestion>) {
        let mut state = Pipe::Empty;
        while state == Pipe::Empty {
            // Cancel-safe: what was printed stays in the pipe, and questions in their channel.
            tokio::select! {
                readable = self.pipe.readable() => match readable {
                    Ok(()) => state = self.read().await,
                    Err(_) => state = Pipe::Closed,
                },
                Some(question) = asked.recv() => match question {
                    PipeQuestion::LastWords(reply) => {
                        state = self.read().await;
                        let _ = reply.send(self.last_words());
                    }
                    PipeQuestion::StandStill(reply, mut verdict) => {
                        if let Ok(pipe) = self.pipe.as_fd().try_clone_to_owned() {
                            let begun = self.lines.begun().to_vec();
                            let last = self.last.iter().cloned().collect();
                            let _ = reply.send(PipeHandles { pipe, begun, last });
                        }
                        if decided(&mut verdict).await == HandOverVerdict::Given {
                            return;
                        }
                    }
                },
                () = silence_after(&ended) => state = Pipe::Closed,
            }
        }
        let mut rest = None;
        self.lines.finish(|line| rest = Some(line.to_owned()));
        if let Some(line) = rest {
            self.remember(&line);
            self.writer.write(self.stream, &line).await;
        }
        self.answer(&ended, &mut asked).await;
    }

    /// No process prints there any more, but what was printed last may still be asked for: of several
    /// containers one ends before its pod has.
    async fn answer(&self, ended: &CancellationToken, asked: &mut mpsc::Receiver<PipeQuestion>) {
        loop {
            // Cancel-safe: questions stay in their channel.
            tokio::select! {
                question = asked.recv() => match question {
                    Some(PipeQuestion::LastWords(reply)) => drop(reply.send(self.last_words())),
                    // There is nothing to hand over.
                    Some(PipeQuestion::StandStill(_, _)) => {}
                    None => return,
                },
                () = ended.cancelled() => return,
            }
        }
    }

    /// Reads what can be read without waiting.
    async fn read(&mut self) -> Pipe {
        let mut buffer = vec![0; 8192];
        loop {
            match self.pipe.try_read(&mut buffer) {
                Ok(0) => return Pipe::Closed,
                Ok(length) => {
                    let mut complete = Vec::new();
                    self.lines.push(&buffer[..length], |line| complete.push(line.to_owned()));
                    for line in complete {
                        self.remember(&line);
                        self.writer.write(self.stream, &line).await;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Pipe::Empty,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Pipe::Closed,
            }
        }
    }

    fn remember(&mut self, line: &str) {
        if self.stream != LogStream::Stderr {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line[..line.floor_char_boundary(LAST_LINE_MAX)].to_owned());
    }

    fn last_words(&self) -> Vec<String> {
        let begun = Some(self.lines.begun()).filter(|begun| !begun.is_empty());
        let begun = begun.map(|begun| String::from_utf8_lossy(begun).into_owned());
        self.last.iter().cloned().chain(begun).collect()
    }
}

async fn silence_after(ended: &CancellationToken) {
    ended.cancelled().await;
    tokio::time::sleep(SILENCE_AFTER_END).await;
}
