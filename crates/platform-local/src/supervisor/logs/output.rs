//! Lines on their way to our standard output: a bounded queue, and one thread that writes.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime::{LogFormat, vital_thread};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::store::LogLine;

/// Lines that may wait to be written: enough for the burst of a start-up, little enough to forget about (8
/// MiB at worst).
const LINES_WAITING: usize = 1024;
/// An output that took nothing for so long is not read any more, as far as the end of everything is
/// concerned.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// What becomes of pods' lines on our standard output.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOptions {
    /// Whether a line is printed as text or as JSON.
    pub format: LogFormat,
    /// How long a line may wait until our output is read, before it is dropped and counted; `None` waits for
    /// ever.
    pub patience: Option<Duration>,
}

/// Takes lines. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct LogOutput {
    entries: Sender<OutputEntry>,
    options: LogOptions,
    written: Arc<AtomicU64>,
}

#[derive(Debug)]
enum OutputEntry {
    Line(String),
    Flush(oneshot::Sender<()>),
}

impl LogOutput {
    pub(super) fn start(output: impl Write + Send + 'static, options: LogOptions) -> Self {
        let (entries, waiting) = channel(LINES_WAITING);
        let written = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&written);
        let writer = std::thread::Builder::new().name("pod-logs".to_owned());
        if let Err(error) = writer.spawn(move || {
            vital_thread("the writing of what pods print", || write(waiting, output, &counter));
        }) {
            tracing::error!(%error, "pods' output is lost: no thread to write it");
        }
        Self { entries, options, written }
    }

    /// Sends a line, after a word about those that were `dropped` before it; returns how many are dropped by
    /// now.
    pub(super) async fn send(&self, line: &LogLine, dropped: u64) -> u64 {
        let entry = self.entry(line, dropped);
        let Err(entry) = self.try_send(entry) else { return 0 };
        let sending = self.entries.send(entry);
        let sent = match self.options.patience {
            // Without the thread that writes there is nothing to wait for.
            None => sending.await.is_ok(),
            Some(patience) if patience.is_zero() => false,
            Some(patience) => matches!(tokio::time::timeout(patience, sending).await, Ok(Ok(()))),
        };
        if sent { 0 } else { dropped + 1 }
    }

    /// The same without waiting: a line without room is dropped.
    pub(super) fn send_now(&self, line: &LogLine, dropped: u64) -> u64 {
        if self.try_send(self.entry(line, dropped)).is_ok() { 0 } else { dropped + 1 }
    }

    fn try_send(&self, entry: OutputEntry) -> Result<(), OutputEntry> {
        self.entries.try_send(entry).map_err(TrySendError::into_inner)
    }

    fn entry(&self, line: &LogLine, dropped: u64) -> OutputEntry {
        let gap = if dropped == 0 { String::new() } else { shown_gap(self.options.format, line, dropped) };
        OutputEntry::Line(gap + &shown(self.options.format, line, &line.text))
    }

    /// Waits until everything handed in before is written, for as long as the output takes anything.
    pub(super) async fn flush(&self) {
        let (done, mut is_done) = oneshot::channel();
        let asking = self.entries.clone();
        // A panic drops `done`, which ends the wait below.
        let ask = tokio::spawn(async move { asking.send(OutputEntry::Flush(done)).await });
        loop {
            let before = self.written.load(Ordering::Relaxed);
            let is_over = tokio::time::timeout(STUCK_AFTER, &mut is_done).await.is_ok();
            if is_over || self.written.load(Ordering::Relaxed) == before {
                ask.abort();
                return;
            }
        }
    }
}

fn write(mut waiting: Receiver<OutputEntry>, mut output: impl Write, written: &AtomicU64) {
    while let Some(entry) = waiting.blocking_recv() {
        // An error means that our output has no reader any more: the pods go on, unread.
        match entry {
            OutputEntry::Line(line) => drop(output.write_all(line.as_bytes())),
            OutputEntry::Flush(done) => {
                let _ = output.flush();
                let _ = done.send(());
            }
        }
        written.fetch_add(1, Ordering::Relaxed);
    }
}

fn shown(format: LogFormat, line: &LogLine, text: &str) -> String {
    match format {
        LogFormat::Text => format!("[{}] {text}\n", line.printer()),
        LogFormat::Json => {
            let line = LogLine { text: text.to_owned(), ..line.clone() };
            let fields = serde_json::to_string(&line).expect("lines are plain data");
            format!("{fields}\n")
        }
    }
}

fn shown_gap(format: LogFormat, line: &LogLine, dropped: u64) -> String {
    let lines = if dropped == 1 { "line was" } else { "lines were" };
    shown(format, line, &format!("({dropped} {lines} dropped: the output is not read fast enough)"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use vocabulary::{PodName, RevisionName};

    use super::*;
    use crate::supervisor::logs::LogStream;
    use crate::supervisor::logs::sink::LogSink;

    fn hello() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("a name")
    }

    #[derive(Clone, Default)]
    struct SharedOutput(Arc<Mutex<Vec<u8>>>);

    impl SharedOutput {
        fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().expect("unpoisoned")).into_owned()
        }
    }

    impl Write for SharedOutput {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("unpoisoned").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Blocks in the first write until it is let go.
    struct Stuck(mpsc::Receiver<()>, SharedOutput);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn stuck(options: LogOptions) -> (mpsc::Sender<()>, SharedOutput, LogSink) {
        let (go, stuck) = mpsc::channel();
        let output = SharedOutput::default();
        let sink = LogSink::start(Stuck(stuck, output.clone()), options);
        (go, output, sink)
    }

    #[tokio::test]
    async fn each_line_carries_its_pods_name_or_is_an_object() {
        for (format, expected) in [
            (LogFormat::Text, "[hello-1] one\n"),
            (
                LogFormat::Json,
                r#""revision":"default/service/hello","pod":"hello-1","stream":"stderr","line":"one"}"#,
            ),
        ] {
            let output = SharedOutput::default();
            let sink = LogSink::start(output.clone(), LogOptions { format, patience: None });
            let mut log = sink.writer(&hello(), &PodName::new("hello-1"));
            log.write(LogStream::Stderr, "one").await;
            sink.flush().await;
            assert!(output.text().contains(expected), "{}", output.text());
            let mut log = log.of_container(Some("shipper".to_owned()));
            log.write(LogStream::Stdout, "two").await;
            sink.flush().await;
            let named =
                ["[hello-1/shipper] two\n", r#""container":"shipper","stream":"stdout","line":"two"}"#];
            assert!(named.iter().any(|named| output.text().contains(named)), "{}", output.text());
        }
    }

    #[tokio::test]
    async fn a_slow_reader_loses_no_line_and_the_pod_waits() {
        let (go, output, sink) = stuck(LogOptions::default());
        let mut log = sink.writer(&hello(), &PodName::new("p"));
        let printing = tokio::spawn(async move {
            for number in 0..LINES_WAITING + 50 {
                log.write(LogStream::Stdout, &number.to_string()).await;
            }
        });
        // It cannot finish before a reader reads.
        tokio::time::timeout(Duration::from_millis(50), async {
            while !printing.is_finished() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect_err("there is room for no more than waits");
        drop(go);
        printing.await.expect("it goes on");
        sink.flush().await;
        assert_eq!(output.text().lines().count(), LINES_WAITING + 50);
    }

    #[tokio::test]
    async fn a_terminal_that_was_stopped_costs_lines_and_stops_nobody() {
        let options = LogOptions { format: LogFormat::Text, patience: Some(Duration::ZERO) };
        let (go, output, sink) = stuck(options);
        let mut log = sink.writer(&hello(), &PodName::new("p"));
        for _ in 0..LINES_WAITING + 50 {
            log.write(LogStream::Stdout, "x").await;
        }
        drop(go);
        sink.flush().await;
        log.write(LogStream::Stdout, "last").await;
        sink.flush().await;
        let written = output.text();
        assert!(written.contains("lines were dropped") && written.ends_with("[p] last\n"), "{written}");
    }
}
