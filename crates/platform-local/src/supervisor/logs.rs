//! What pods print, line by line on our standard output, each line with its pod's name.
//!
//! One thread writes. A terminal that stopped reading must not stop the pods, so when the queue is full lines are dropped, and how
//! many is said once there is room again.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use vocabulary::PodName;

use crate::lines::Lines;

/// Lines that may wait to be written: enough for the burst of a start-up, little enough to forget about (8 MiB at worst).
const LINES_WAITING: usize = 1024;
/// Longer lines are cut.
const LONGEST_LINE: usize = 8 * 1024;

/// Takes lines for the writer. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LogSink {
    lines: SyncSender<Entry>,
}

enum Entry {
    Line(String),
    Flush(SyncSender<()>),
}

impl LogSink {
    /// Starts the writer; it ends with the last sink. `output` is where lines go.
    pub(crate) fn start(output: impl Write + Send + 'static) -> Self {
        let (lines, waiting) = sync_channel(LINES_WAITING);
        let writer = std::thread::Builder::new().name("pod-logs".to_owned());
        if let Err(error) = writer.spawn(move || write(&waiting, output)) {
            tracing::error!(%error, "pods' output is lost: no thread to write it");
        }
        Self { lines }
    }

    /// Waits until everything handed in before is written, or `false` if the writer is stuck or gone.
    pub(crate) fn flush(&self) -> bool {
        let (written, wait) = sync_channel(1);
        self.lines.try_send(Entry::Flush(written)).is_ok()
            && wait.recv_timeout(std::time::Duration::from_secs(1)).is_ok()
    }

    /// The output of one pod.
    pub(crate) fn of_pod(&self, pod: &PodName) -> PodLog {
        let writer = LineWriter { sink: self.clone(), prefix: format!("[{pod}] "), dropped: 0 };
        PodLog { lines: Lines::of_at_most(LONGEST_LINE), writer }
    }
}

fn write(waiting: &Receiver<Entry>, mut output: impl Write) {
    while let Ok(entry) = waiting.recv() {
        // Nobody reads our output any more: the pods go on, unread.
        let _ = match entry {
            Entry::Line(line) => output.write_all(line.as_bytes()),
            Entry::Flush(written) => {
                let flushed = output.flush();
                let _ = written.try_send(());
                flushed
            }
        };
    }
}

/// One pod's output on its way to the writer.
#[derive(Debug)]
pub(crate) struct PodLog {
    lines: Lines,
    writer: LineWriter,
}

impl PodLog {
    /// Takes in what the pod printed.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self { lines, writer } = self;
        lines.push(bytes, |line| writer.write(line));
    }

    /// The pod prints no more.
    pub(crate) fn finish(mut self) {
        let Self { lines, writer } = &mut self;
        lines.finish(|line| writer.write(line));
    }
}

/// Hands in the lines of one pod, and counts those for which there was no room.
#[derive(Debug)]
struct LineWriter {
    sink: LogSink,
    prefix: String,
    dropped: u64,
}

impl LineWriter {
    fn write(&mut self, line: &str) {
        let Self { sink, prefix, dropped } = self;
        let gap = if *dropped > 0 {
            format!("{prefix}({dropped} lines were dropped: the output is not read fast enough)\n")
        } else {
            String::new()
        };
        match sink.lines.try_send(Entry::Line(format!("{gap}{prefix}{line}\n"))) {
            Ok(()) => self.dropped = 0,
            Err(_) => self.dropped += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("unpoisoned").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_line_carries_its_pods_name() {
        let output = Shared::default();
        let sink = LogSink::start(output.clone());
        let mut log = sink.of_pod(&PodName::new("hello-00001-0001"));
        log.push(b"one\ntw");
        log.push(b"o\n");
        assert!(sink.flush());
        let written = output.0.lock().expect("unpoisoned").clone();
        assert_eq!(String::from_utf8_lossy(&written), "[hello-00001-0001] one\n[hello-00001-0001] two\n");
    }

    /// Blocks in the first write until it is let go.
    struct Stuck(mpsc::Receiver<()>, Shared);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            self.1.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stopped_costs_lines_and_stops_nobody() {
        let (go, stuck) = mpsc::channel();
        let output = Shared::default();
        let sink = LogSink::start(Stuck(stuck, output.clone()));
        let mut log = sink.of_pod(&PodName::new("p"));
        for _ in 0..LINES_WAITING + 50 {
            log.push(b"x\n");
        }
        drop(go);
        // The queue is full until the writer has taken something out of it.
        while !sink.flush() {
            std::thread::yield_now();
        }
        log.push(b"last\n");
        assert!(sink.flush());
        let written = output.0.lock().expect("unpoisoned").clone();
        let written = String::from_utf8_lossy(&written);
        assert!(written.contains("lines were dropped") && written.ends_with("[p] last\n"), "{written}");
    }
}
