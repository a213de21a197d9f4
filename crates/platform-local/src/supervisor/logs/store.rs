//! The last lines of every revision, for readers that ask later.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use runtime::MetricsRegistry;
use serde::Serialize;
use tokio::sync::watch;
use vocabulary::{PodName, RevisionName};

use super::dropped::DroppedLines;

/// What is kept of one revision: a few thousand lines.
const KEPT_BYTES: usize = 1 << 20;
/// The pods whose ends are remembered, for readers that ask what came before.
const ENDS_REMEMBERED: usize = 16;

/// Where a line was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogStream {
    /// By the app, on its standard output.
    Stdout,
    /// By the app, on its standard error.
    Stderr,
    /// By the queue-proxy beside it.
    QueueProxy,
}

/// One line that a pod printed.
#[derive(Clone, Debug, Serialize)]
pub struct LogLine {
    /// Greater than that of every line before.
    #[serde(skip)]
    pub number: u64,
    /// The time at which the line was read from the pod.
    #[serde(skip)]
    pub at: SystemTime,
    /// The same, as logs write it.
    pub timestamp: String,
    /// The revision that the pod belongs to.
    pub revision: RevisionName,
    /// The pod that printed the line.
    pub pod: PodName,
    /// The container, where the pod has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Where it was written: to one of the app's, or the queue-proxy's.
    pub stream: LogStream,
    /// The text of the line, without its newline.
    #[serde(rename = "line")]
    pub text: String,
}

impl LogLine {
    /// The pod that printed it, as it stands before the line: `POD`, or `POD/CONTAINER`.
    pub fn printer(&self) -> String {
        match &self.container {
            Some(container) => format!("{}/{container}", self.pod),
            None => self.pod.to_string(),
        }
    }
}

/// The pod, and the container where there are several, that prints lines.
#[derive(Clone, Debug)]
pub(crate) struct LogSource {
    pub(crate) revision: RevisionName,
    pub(crate) pod: PodName,
    /// Where the pod has several.
    pub(crate) container: Option<String>,
}

/// Which lines of a revision a reader wants.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// Only those after this number.
    pub after: u64,
    /// Only those not older than this.
    pub since: Option<Duration>,
    /// Only those of the pod that ended last.
    pub previous: bool,
}

/// The last lines of every revision.
#[derive(Debug)]
pub struct LogStore {
    kept: Mutex<LineStore>,
    latest: watch::Sender<u64>,
    dropped: DroppedLines,
}

#[derive(Debug, Default)]
struct LineStore {
    given: u64,
    revisions: BTreeMap<RevisionName, KeptLines>,
}

#[derive(Debug, Default)]
struct KeptLines {
    lines: VecDeque<Arc<LogLine>>,
    bytes: usize,
    /// Pods that ended, the latest last.
    ended: VecDeque<PodName>,
}

impl Default for LogStore {
    fn default() -> Self {
        Self { kept: Mutex::default(), latest: watch::Sender::new(0), dropped: DroppedLines::default() }
    }
}

impl LogStore {
    /// Keeps a line of a pod, and returns it with its number and time.
    pub(crate) fn add(&self, source: &LogSource, stream: LogStream, text: &str) -> Arc<LogLine> {
        let mut kept = self.kept.lock();
        kept.given += 1;
        let line = Arc::new(LogLine {
            number: kept.given,
            at: runtime::wall_time(),
            timestamp: runtime::timestamp(),
            revision: source.revision.clone(),
            pod: source.pod.clone(),
            container: source.container.clone(),
            stream,
            text: text.to_owned(),
        });
        let lines = kept.revisions.entry(source.revision.clone()).or_default();
        lines.bytes += cost(&line);
        lines.lines.push_back(Arc::clone(&line));
        // By bytes and not by lines: an app that prints pages must not push others out of memory, and each
        // revision has its own share, so it can only lose what is its own.
        while lines.bytes > KEPT_BYTES
            && let Some(oldest) = lines.lines.pop_front()
        {
            lines.bytes -= cost(&oldest);
        }
        // A woken reader reads at once, and would wait for the lock.
        drop(kept);
        self.latest.send_replace(line.number);
        line
    }

    /// A pod prints no more.
    pub(crate) fn note_end(&self, revision: &RevisionName, pod: &PodName) {
        let mut kept = self.kept.lock();
        let lines = kept.revisions.entry(revision.clone()).or_default();
        if lines.ended.len() == ENDS_REMEMBERED {
            lines.ended.pop_front();
        }
        lines.ended.push_back(pod.clone());
    }

    /// A revision is gone, and what it said with it.
    pub(crate) fn forget(&self, revision: &RevisionName) {
        self.kept.lock().revisions.remove(revision);
        self.dropped.forget(revision);
    }

    /// Shows on the process's page what was dropped on its way out.
    pub fn register_metrics(&self, registry: &MetricsRegistry) {
        self.dropped.register(registry);
    }

    /// The counter of a revision's lines that never reached our standard output.
    pub(super) fn dropped_lines(&self, revision: &RevisionName) -> Counter {
        self.dropped.of(revision)
    }

    /// The lines that a reader wants, oldest first.
    pub fn read(&self, revision: &RevisionName, query: &LogQuery) -> Vec<Arc<LogLine>> {
        let kept = self.kept.lock();
        let Some(lines) = kept.revisions.get(revision) else { return Vec::new() };
        let oldest = query.since.and_then(|since| runtime::wall_time().checked_sub(since));
        // The pod that ended last may have said nothing, or nothing that is still here. A person who asks for
        // the one before wants to know why something failed, and an empty page would be no answer.
        let printed = |pod: &&PodName| lines.lines.iter().any(|line| line.pod == **pod);
        let only = query.previous.then(|| lines.ended.iter().rev().find(printed).cloned());
        let is_wanted = |line: &&Arc<LogLine>| {
            line.number > query.after
                && oldest.is_none_or(|oldest| line.at >= oldest)
                && only.as_ref().is_none_or(|only| only.as_ref() == Some(&line.pod))
        };
        lines.lines.iter().filter(is_wanted).cloned().collect()
    }

    /// Changes with every line of every pod.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }
}

fn cost(line: &LogLine) -> usize {
    size_of::<LogLine>() + line.text.len() + line.timestamp.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> RevisionName {
        RevisionName::parse("default/service/hello").expect("a name")
    }

    fn source(pod: &str) -> LogSource {
        LogSource { revision: hello(), pod: PodName::new(pod), container: None }
    }

    fn texts(store: &LogStore, query: &LogQuery) -> Vec<String> {
        store.read(&hello(), query).iter().map(|line| line.text.clone()).collect()
    }

    #[test]
    fn the_last_lines_are_kept_and_can_be_asked_for_by_number_and_pod() {
        let store = LogStore::default();
        let revision = hello();
        let say = |pod: &str, text: &str| store.add(&source(pod), LogStream::Stdout, text).number;
        say("a", "one");
        let second = say("a", "two");
        say("b", "three");
        assert_eq!(texts(&store, &LogQuery::default()), ["one", "two", "three"]);
        assert_eq!(texts(&store, &LogQuery { after: second, ..LogQuery::default() }), ["three"]);
        let previous = LogQuery { previous: true, ..LogQuery::default() };
        assert_eq!(texts(&store, &previous), [""; 0], "no pod has ended");
        store.note_end(&revision, &PodName::new("a"));
        store.note_end(&revision, &PodName::new("silent"));
        assert_eq!(texts(&store, &previous), ["one", "two"]);
        let lately = LogQuery { since: Some(Duration::from_secs(60)), ..LogQuery::default() };
        assert_eq!(texts(&store, &lately).len(), 3);
        assert_eq!(texts(&store, &LogQuery { since: Some(Duration::ZERO), ..LogQuery::default() }).len(), 0);
        store.forget(&hello());
        assert_eq!(texts(&store, &LogQuery::default()), [""; 0]);
    }

    #[test]
    fn kept_lines_have_a_limit_in_bytes() {
        let store = LogStore::default();
        let long = "x".repeat(8 * 1024);
        for _ in 0..1000 {
            store.add(&source("a"), LogStream::Stderr, &long);
        }
        let kept = texts(&store, &LogQuery::default()).len();
        assert!((100..200).contains(&kept), "{kept}");
    }
}
