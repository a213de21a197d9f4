//! What pods print: where it goes, and which side waits when it is not read.
//!
//! ```text
//! app ──pipe──► a task per pipe ──► the last lines of each revision, for `ebb logs`
//!                      │
//!                      └── bounded queue ──► one thread ──► our standard output
//! ```
//!
//! Our output is a file or a pipe that a program collects: then no line is dropped, and while the queue is
//! full the task reads no more, so the app's own pipe fills and the app waits, as it does in a container. Or
//! it is a terminal: then a stopped one (Ctrl-S) must not stop the pods, so lines for which there is no room
//! are dropped, and how many is said once there is room again. Either can be chosen
//! ([`LogOptions::patience`]).

mod dropped;
mod output;
mod pipe;
mod sink;
mod store;

use std::io;
use std::time::Duration;

use runtime::vital;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use vocabulary::{PodName, RevisionName};

use super::handover::{ContainerOutputs, HandOverVerdict, PipeHandles};

pub use output::LogOptions;
use pipe::{PipeQuestion, PipeReader};
use sink::LineWriter;
pub(crate) use sink::LogSink;
pub use store::{LogLine, LogQuery, LogStore, LogStream};

/// How long what a failed pod printed last is waited for: it is in the pipe already, unless our own output is
/// stuck.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(200);
/// How long an end waits for output that is still being read.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// The task that reads what one container prints.
#[derive(Debug)]
struct OutputReaders {
    container: Option<String>,
    stdout: Option<mpsc::Sender<PipeQuestion>>,
    stderr: Option<mpsc::Sender<PipeQuestion>>,
}

/// A copy of what one of them reads. One that is at its end has nothing to hand over.
async fn stand_still(
    reader: Option<&mpsc::Sender<PipeQuestion>>,
    verdict: &watch::Receiver<HandOverVerdict>,
) -> Option<PipeHandles> {
    let (reply, answer) = oneshot::channel();
    reader?.send(PipeQuestion::StandStill(reply, verdict.clone())).await.ok()?;
    answer.await.ok()
}

/// The readers of what one pod's containers print.
#[derive(Debug)]
pub(crate) struct PodLog {
    writer: LineWriter,
    /// The pod has ended: what it printed is read, and no task waits for more.
    ending: CancellationToken,
    /// The readers of it: of each container, the app's first.
    readers: Vec<OutputReaders>,
    reading: Vec<tokio::task::JoinHandle<()>>,
}

impl PodLog {
    /// The output of one pod of a revision, from which nothing is read yet.
    pub(crate) fn of(sink: &LogSink, revision: &RevisionName, pod: &PodName) -> Self {
        let writer = sink.writer(revision, pod);
        Self { writer, ending: CancellationToken::new(), readers: Vec::new(), reading: Vec::new() }
    }

    /// Reads what containers print until no process can print any more.
    pub(super) fn read(&mut self, outputs: Vec<ContainerOutputs>) -> io::Result<()> {
        for ContainerOutputs { container, stdout, stderr } in outputs {
            let writer = self.writer.of_container(container.clone());
            let mut start = |output: Option<PipeHandles>, stream| {
                output.map(|output| self.start(output, stream, writer.clone())).transpose()
            };
            let (stdout, stderr) = (start(stdout, LogStream::Stdout)?, start(stderr, LogStream::Stderr)?);
            self.readers.push(OutputReaders { container, stdout, stderr });
        }
        Ok(())
    }

    fn start(
        &mut self,
        output: PipeHandles,
        stream: LogStream,
        writer: LineWriter,
    ) -> io::Result<mpsc::Sender<PipeQuestion>> {
        let PipeHandles { pipe, begun, last } = output;
        let reader = PipeReader::new(Receiver::from_owned_fd(pipe)?, stream, writer).continued(begun, &last);
        let (ask, asked) = mpsc::channel(1);
        let reading = reader.run(self.ending.clone(), asked);
        self.reading.push(tokio::spawn(vital("the reading of what a pod prints", reading)));
        Ok(ask)
    }

    /// Copies of what is read, for another process. Nothing more is read until the verdict, and after it only
    /// if nothing was given.
    pub(super) async fn hand_over(
        &self,
        verdict: &watch::Receiver<HandOverVerdict>,
    ) -> Vec<ContainerOutputs> {
        let mut outputs = Vec::new();
        for readers in &self.readers {
            let stdout = stand_still(readers.stdout.as_ref(), verdict).await;
            let stderr = stand_still(readers.stderr.as_ref(), verdict).await;
            outputs.push(ContainerOutputs { container: readers.container.clone(), stdout, stderr });
        }
        outputs
    }

    /// A line of the queue-proxy's own log. No process waits for those, there or here.
    pub(crate) fn note_queue_proxy(&mut self, line: &str) {
        self.writer.write_now(LogStream::QueueProxy, line);
    }

    /// What a container, or else the app, printed last on its standard error.
    pub(crate) async fn last_words(&self, container: Option<&str>) -> Vec<String> {
        let is_meant = |readers: &&OutputReaders| readers.container.as_deref() == container;
        let readers = self.readers.iter().find(is_meant).or(self.readers.first());
        let Some(ask) = readers.and_then(|readers| readers.stderr.as_ref()) else { return Vec::new() };
        let (reply, answer) = oneshot::channel();
        let asking = async {
            ask.send(PipeQuestion::LastWords(reply)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(LAST_WORDS_PATIENCE, asking).await.ok().flatten().unwrap_or_default()
    }

    /// The pod has ended; returns when all that it printed is on its way. Where that is stuck because our
    /// output is not read, it is read on and no task waits.
    pub(crate) async fn ended(&mut self) {
        self.ending.cancel();
        let read = async {
            for task in std::mem::take(&mut self.reading) {
                // A panic was reported when it happened.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(END_PATIENCE, read).await;
        self.writer.note_end();
    }
}
