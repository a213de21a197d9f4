//! Where the lines of all pods go: into the store, and on to our standard output.

use std::io;
use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use vocabulary::{PodName, RevisionName};

use super::output::{LogOptions, LogOutput};
use super::store::{LogLine, LogSource, LogStore, LogStream};

/// Takes the lines of all pods. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LogSink {
    store: Arc<LogStore>,
    output: LogOutput,
}

impl LogSink {
    /// Starts the writer; it ends with the last sink. `output` is where lines go.
    pub(crate) fn start(output: impl io::Write + Send + 'static, options: LogOptions) -> Self {
        Self { store: Arc::default(), output: LogOutput::start(output, options) }
    }

    /// The last lines of every revision.
    pub(crate) fn store(&self) -> Arc<LogStore> {
        Arc::clone(&self.store)
    }

    /// Waits until everything is written, for as long as a reader reads.
    pub(crate) async fn flush(&self) {
        self.output.flush().await;
    }

    /// Takes the lines of one pod of a revision.
    pub(crate) fn writer(&self, revision: &RevisionName, pod: &PodName) -> LineWriter {
        LineWriter {
            sink: self.clone(),
            source: LogSource { revision: revision.clone(), pod: pod.clone(), container: None },
            gap: 0,
            dropped: self.store.dropped_lines(revision),
        }
    }
}

/// Hands in the lines of one pod.
#[derive(Clone, Debug)]
pub(crate) struct LineWriter {
    sink: LogSink,
    source: LogSource,
    /// Lines dropped since one went out.
    gap: u64,
    /// All that were ever dropped.
    dropped: Counter,
}

impl LineWriter {
    /// The same for one container of several.
    pub(super) fn of_container(&self, container: Option<String>) -> Self {
        Self { source: LogSource { container, ..self.source.clone() }, ..self.clone() }
    }

    /// The pod prints no more.
    pub(super) fn note_end(&self) {
        self.sink.store.note_end(&self.source.revision, &self.source.pod);
    }

    /// Keeps the line, and waits until it is on its way out, or dropped.
    pub(crate) async fn write(&mut self, stream: LogStream, text: &str) {
        let line = self.keep(stream, text);
        let gap = self.sink.output.send(&line, self.gap).await;
        self.note_gap(gap);
    }

    /// The same, but a line for which there is no room is dropped at once.
    pub(crate) fn write_now(&mut self, stream: LogStream, text: &str) {
        let line = self.keep(stream, text);
        let gap = self.sink.output.send_now(&line, self.gap);
        self.note_gap(gap);
    }

    fn note_gap(&mut self, gap: u64) {
        if gap > self.gap {
            self.dropped.inc();
        }
        self.gap = gap;
    }

    fn keep(&self, stream: LogStream, text: &str) -> Arc<LogLine> {
        self.sink.store.add(&self.source, stream, text)
    }
}
