//! How is a run written down without a delay of any decision?
//!
//! The event loop notes each call of the orchestrator with the commands that came out, and hands over what it
//! noted a few times a second, to a thread of its own that encodes and writes. It never waits for that
//! thread: while the thread is too slow, calls are dropped, counted and said. Facts and changes of links are
//! kept all the same, in memory, because the keyframe with which the record goes on is made of them.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use orchestration::{ControlCommand, ControlEvent, OrchestratorSettings, StateSize};
use recording::{
    KEYFRAME_EVERY, KeyframeHistories, RecordEntry, RecordInput, RecordLoss, RecordSettings, RecordWriter,
    RecordedNames, build_of_this_program,
};
use scaling::HistoryRecord;
use tokio::sync::oneshot;
use vocabulary::{ActivatorWord, PodWord, ReplicaName, RevisionName, Timestamp};

use crate::config::RecordTarget;
use crate::metrics::AutoscalerMetrics;
use crate::snapshot::SnapshotReader;

/// So many calls are handed over together: each hand-over may wake the thread.
const CALLS_TOGETHER: usize = 256;
/// Calls are handed over after so long, however few they are.
const HAND_OVER_EVERY: Duration = Duration::from_millis(250);
/// Hand-overs that wait for the thread: a minute of a usual run, and some megabytes of a large one.
const WAITING_MAX: usize = 64;
/// Calls that a keyframe needs and that wait while the thread is too slow. With more of them the record ends.
const KEPT_MAX: usize = 100_000;
/// Calls that have waited for so long are written, although no more come.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long the end of an autoscaler waits for its last calls to be written.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// With more revisions or pods the state of the control loop is not recorded. A copy of it is made between
/// two events and may take 5 ms: at most 20 µs for each revision and 1 µs for each pod, which the benchmark
/// `record` measures. What is more than 4 MiB as bytes is not written anyway.
const STATE_SIZE_MAX: StateSize = StateSize { revisions: 200, pods: 1_000 };

/// The event loop's end of the way to the record.
#[derive(Debug)]
pub(crate) struct Recorder {
    calls: Vec<RecordEntry>,
    /// When the first of these calls was made.
    since: Timestamp,
    /// When the state of the control loop is recorded next, so that a replay can begin there; `None` before
    /// the first call.
    state_at: Option<Timestamp>,
    /// Names in a state cannot be hidden.
    takes_states: bool,
    /// Whether calls before the present ones were dropped.
    continuity: RecordContinuity,
    batches: SyncSender<RecordBatch>,
    finished: oneshot::Receiver<()>,
    metrics: AutoscalerMetrics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordContinuity {
    Whole,
    CallsDropped,
    /// The record has ended, and nothing is noted any more.
    Ended,
}

/// Calls on their way to the thread that writes.
#[derive(Debug)]
enum RecordBatch {
    Whole(Vec<RecordEntry>),
    /// Between these calls others were dropped.
    Remains(Vec<RecordEntry>),
}

/// The control loop whose run is recorded.
#[derive(Clone, Debug)]
pub(crate) struct RecordedLoop {
    pub(crate) owner: ReplicaName,
    pub(crate) orchestrator: OrchestratorSettings,
    pub(crate) metrics: AutoscalerMetrics,
    /// What it publishes, in which keyframes find histories.
    pub(crate) snapshots: SnapshotReader,
}

/// The histories that the control loop has published last.
#[derive(Debug)]
struct PublishedHistories(SnapshotReader);

impl KeyframeHistories for PublishedHistories {
    fn hand_out(&self, take: &mut dyn FnMut(&RevisionName, HistoryRecord) -> ControlFlow<()>) {
        let Some(latest) = self.0.latest() else { return };
        let all = latest.control.history_records(latest.at);
        for (revision, record) in all.filter(|(_, record)| record.forecast().is_some()) {
            if take(revision, record).is_break() {
                return;
            }
        }
    }
}

impl Recorder {
    /// Starts the thread that writes, with the calls that were made before; `None` if there is no thread to
    /// be had.
    pub(crate) fn start(
        target: RecordTarget,
        recorded: RecordedLoop,
        calls: Vec<RecordEntry>,
    ) -> Option<Self> {
        let RecordTarget { folder, bytes_max, version, names } = target;
        let RecordedLoop { owner, orchestrator, metrics, snapshots } = recorded;
        tracing::info!(%owner, folder = %folder.display(), bytes_max, "the run is recorded");
        let (batches, waiting) = sync_channel(WAITING_MAX);
        let (finish, finished) = oneshot::channel();
        let takes_states = matches!(names, RecordedNames::Plain);
        let counted = metrics.clone();
        // A panic ends the record alone: the event loop finds its channel closed, counts what it drops and
        // says so.
        let started = thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            // Here, because it reads the whole executable.
            let build = build_of_this_program(version);
            let settings = RecordSettings { folder, bytes_max, owner, orchestrator, build, names };
            let writer = RecordWriter::new(settings).with_histories(Box::new(PublishedHistories(snapshots)));
            write(&waiting, writer, &counted);
            // The event loop may have ended.
            let _ = finish.send(());
        });
        if let Err(error) = started {
            tracing::error!(%error, "no thread could be started that records; the run is not recorded");
            return None;
        }
        let since = calls.first().map(|call| call.at).unwrap_or_default();
        let state_at = calls.first().map(|call| call.at + KEYFRAME_EVERY);
        let continuity = RecordContinuity::Whole;
        Some(Self { calls, since, state_at, takes_states, continuity, batches, finished, metrics })
    }

    /// The orchestrator is about to be called.
    pub(crate) fn begin(&mut self, input: RecordInput, now: Timestamp) {
        if self.continuity == RecordContinuity::Ended {
            return self.metrics.record_dropped(1);
        }
        if self.calls.is_empty() {
            self.since = now;
        }
        self.state_at.get_or_insert(now + KEYFRAME_EVERY);
        self.calls.push(RecordEntry { at: now, input, commands: Vec::new() });
    }

    /// Whether the state of the control loop, which is this large, is to be recorded before its next call. It
    /// is asked for at most every ten minutes, with the keyframe that every program reads.
    pub(crate) fn takes_state(&mut self, size: StateSize, now: Timestamp) -> bool {
        if self.continuity != RecordContinuity::Whole || self.state_at.is_none_or(|at| now < at) {
            return false;
        }
        self.state_at = Some(now + KEYFRAME_EVERY);
        self.has_room_for(size)
    }

    /// Whether the state of the control loop, which is this large, is to be recorded behind its last call: a
    /// replay from a keyframe on then ends with it.
    pub(crate) fn takes_last_state(&self, size: StateSize) -> bool {
        self.continuity == RecordContinuity::Whole && self.state_at.is_some() && self.has_room_for(size)
    }

    fn has_room_for(&self, size: StateSize) -> bool {
        let StateSize { revisions, pods } = STATE_SIZE_MAX;
        self.takes_states && size.revisions <= revisions && size.pods <= pods
    }

    /// A command came out of the last call.
    pub(crate) fn command(&mut self, command: &ControlCommand) {
        if let Some(call) = self.calls.last_mut() {
            call.commands.push(command.clone());
        }
    }

    /// Hands over the calls that were noted, if they are many or old.
    pub(crate) fn hand_over_if_due(&mut self, now: Timestamp) {
        let is_old = now.saturating_since(self.since) >= HAND_OVER_EVERY;
        let is_due = match self.continuity {
            RecordContinuity::Whole => is_old || self.calls.len() >= CALLS_TOGETHER,
            // However many wait: the thread is not asked at every turn whether it has room again.
            RecordContinuity::CallsDropped => is_old,
            RecordContinuity::Ended => false,
        };
        if is_due && !self.calls.is_empty() {
            self.hand_over();
            self.since = now;
        }
    }

    /// Hands over the rest, and waits for nothing: the autoscaler goes on without a record.
    pub(crate) fn leave(mut self) {
        self.hand_over();
    }

    /// Hands over the rest, and waits until it is written, but not long.
    pub(crate) async fn finish(mut self) {
        self.hand_over();
        let Self { batches, finished, .. } = self;
        // The thread ends with its channel.
        drop(batches);
        if tokio::time::timeout(FINISH_MAX, finished).await.is_err() {
            tracing::warn!("the last calls of the control loop were not recorded in time");
        }
    }

    fn hand_over(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let batch = match self.continuity {
            RecordContinuity::Whole => RecordBatch::Whole(calls),
            RecordContinuity::CallsDropped => RecordBatch::Remains(self.without_words(calls)),
            RecordContinuity::Ended => return,
        };
        match self.batches.try_send(batch) {
            Ok(()) => self.continuity = RecordContinuity::Whole,
            Err(TrySendError::Full(RecordBatch::Whole(calls))) => {
                tracing::warn!(
                    "the record is written too slowly; calls of the control loop are left out of it"
                );
                self.continuity = RecordContinuity::CallsDropped;
                self.calls = self.without_words(calls);
            }
            Err(TrySendError::Full(RecordBatch::Remains(calls))) => {
                self.calls = calls;
                if self.calls.len() > KEPT_MAX {
                    self.end("the record is written too slowly, and ends");
                }
            }
            Err(TrySendError::Disconnected(_)) => self.end("the thread that records has ended"),
        }
    }

    fn end(&mut self, reason: &str) {
        tracing::error!(reason, "the run is not recorded any more");
        self.continuity = RecordContinuity::Ended;
        self.calls = Vec::new();
    }

    /// The calls that a keyframe needs. The others are counted as dropped.
    fn without_words(&self, calls: Vec<RecordEntry>) -> Vec<RecordEntry> {
        let before = calls.len();
        let kept: Vec<RecordEntry> = calls.into_iter().filter(is_needed).collect();
        self.metrics.record_dropped(u64::try_from(before - kept.len()).unwrap_or(u64::MAX));
        kept
    }
}

/// Whether a keyframe after a gap would be wrong without this call: all but measurements.
fn is_needed(call: &RecordEntry) -> bool {
    if !call.commands.is_empty() {
        return true;
    }
    match &call.input {
        RecordInput::Advance | RecordInput::State(_) => false,
        RecordInput::Event(event) => match &**event {
            ControlEvent::Platform(_)
            | ControlEvent::LinkChanged { .. }
            | ControlEvent::WallClockRead { .. } => true,
            ControlEvent::PodSpoke { word, .. } => match word {
                PodWord::Load { .. } | PodWord::Present(_) => false,
                PodWord::Hello(_)
                | PodWord::State { .. }
                | PodWord::SettingsAcknowledged(_)
                | PodWord::Adopted(_) => true,
            },
            ControlEvent::ActivatorSpoke { word, .. } => match word {
                ActivatorWord::Loads { .. } | ActivatorWord::Present { .. } => false,
                ActivatorWord::Hello(_)
                | ActivatorWord::Acknowledged { .. }
                | ActivatorWord::Emptied { .. }
                | ActivatorWord::Draining => true,
            },
            ControlEvent::MetricsAnswered { .. }
            | ControlEvent::ZoneRead { .. }
            | ControlEvent::HistoryRestored { .. }
            | ControlEvent::DemandImported { .. } => false,
        },
    }
}

/// Writes each batch of calls, until the event loop ends.
fn write(batches: &Receiver<RecordBatch>, mut writer: RecordWriter, metrics: &AutoscalerMetrics) {
    loop {
        let written = match batches.recv_timeout(FLUSH_EVERY) {
            Ok(RecordBatch::Whole(calls)) => writer.write(&calls),
            Ok(RecordBatch::Remains(calls)) => {
                writer.pass_over(&calls);
                metrics.record_dropped(u64::try_from(calls.len()).unwrap_or(u64::MAX));
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => writer.flush(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        report(written, metrics);
    }
    report(writer.flush(), metrics);
}

fn report(written: Result<(), RecordLoss>, metrics: &AutoscalerMetrics) {
    let Err(loss) = written else { return };
    metrics.record_dropped(loss.dropped);
    // Without a cause it was said before: the writer waits before it tries again.
    if let Some(error) = loss.cause {
        tracing::warn!(%error, dropped = loss.dropped, "the record could not be written; it goes on in a minute");
    }
}

#[cfg(test)]
mod tests;
