//! The autoscalers that answer together, and the way of a question to them.
//!
//! What was published is read without the loop. A health check reaches it, which proves that the loop turns,
//! and the past that a person tells of.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use orchestration::ControlEvent;
use tokio::sync::{mpsc, oneshot};
use vocabulary::{ReplicaName, Timestamp};

use crate::snapshot::{Snapshot, SnapshotReader};

/// Calls that wait for the event loop. More than that many at once wait for their turn.
const CALLS_MAX: usize = 64;
/// The event loop answers in microseconds; one that takes longer is stuck or gone.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);
/// The same where others can answer.
const ANSWER_MAX_OF_SEVERAL: Duration = Duration::from_secs(1);

/// A call that only a loop that turns answers, with the way back for the answer.
#[derive(Debug)]
pub(crate) enum LoopCall {
    /// A question whether the loop turns at all.
    HealthCheck(oneshot::Sender<LoopHealth>),
    /// A person tells of something that happened; it is to be taken in.
    Take(Box<ControlEvent>, oneshot::Sender<()>),
}

/// What a loop says to a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoopHealth {
    /// It turns, and has not heard everything that is there.
    Turns,
    /// It knows everything that is there.
    Ready,
}

/// The asking end of one autoscaler.
#[derive(Clone, Debug)]
pub(crate) struct ApiHandle {
    name: ReplicaName,
    pub(crate) snapshots: SnapshotReader,
    calls: mpsc::Sender<LoopCall>,
}

impl ApiHandle {
    pub(crate) fn new(name: ReplicaName, snapshots: SnapshotReader) -> (Self, mpsc::Receiver<LoopCall>) {
        let (calls, receiver) = mpsc::channel(CALLS_MAX);
        (Self { name, snapshots, calls }, receiver)
    }

    /// The health of the loop, or `None` if there is no loop that turns.
    async fn check(&self, patience: Duration) -> Option<LoopHealth> {
        let (reply, answer) = oneshot::channel();
        self.answered(LoopCall::HealthCheck(reply), answer, patience).await
    }

    /// Has the loop take in what happened; `None` if there is no loop that turns.
    pub(super) async fn take(&self, event: ControlEvent) -> Option<()> {
        let (reply, answer) = oneshot::channel();
        self.answered(LoopCall::Take(Box::new(event), reply), answer, ANSWER_MAX).await
    }

    async fn answered<Answer>(
        &self,
        call: LoopCall,
        answer: oneshot::Receiver<Answer>,
        patience: Duration,
    ) -> Option<Answer> {
        let asking = async {
            self.calls.send(call).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(patience, asking).await.ok().flatten()
    }
}

/// All autoscalers that answer together.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    handles: Vec<ApiHandle>,
    /// The random name of this panel in the ids of its events. The number of a snapshot means nothing to
    /// another panel, such as that of the autoscaler after a restart.
    run: Arc<str>,
}

/// The latest snapshots of the autoscalers of a panel.
#[derive(Default)]
pub(super) struct PanelSnapshots {
    /// Each with the time at which it is read.
    pub(super) given: Vec<(Arc<Snapshot>, Timestamp)>,
    /// The autoscalers whose loops hang.
    pub(super) silent: Vec<ReplicaName>,
}

impl Panel {
    pub(super) fn new(handles: Vec<ApiHandle>) -> Self {
        let run = runtime::new_seed().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Self { handles, run: format!("{run:016x}").into() }
    }

    /// The name of this panel, which no other one has.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn read(&self) -> PanelSnapshots {
        let mut panel = PanelSnapshots::default();
        for handle in &self.handles {
            match handle.snapshots.read() {
                Some(snapshot) => panel.given.push((snapshot, handle.snapshots.now())),
                None => panel.silent.push(handle.name.clone()),
            }
        }
        panel
    }

    /// The autoscalers that are not silent, each with its latest snapshot and the time at which it is read.
    pub(super) fn answering(&self) -> impl Iterator<Item = (&ApiHandle, Arc<Snapshot>, Timestamp)> {
        self.handles
            .iter()
            .filter_map(|handle| Some((handle, handle.snapshots.read()?, handle.snapshots.now())))
    }

    /// The best health of any of them; `None` if none turns.
    pub(super) async fn check(&self) -> Option<LoopHealth> {
        let patience = if self.handles.len() > 1 { ANSWER_MAX_OF_SEVERAL } else { ANSWER_MAX };
        let answers = join_all(self.handles.iter().map(|handle| handle.check(patience))).await;
        answers.into_iter().flatten().max()
    }
}
