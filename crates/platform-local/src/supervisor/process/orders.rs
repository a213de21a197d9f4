//! What the supervisor orders of the watch over a process, and asks it.

use tokio::sync::{mpsc, watch};

use crate::supervisor::handover::HandOverQuestion;

/// What the supervisor wants of a process; it only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProcessWish {
    #[default]
    Run,
    /// Answer what the pod holds, and end then.
    Terminate,
    /// End at once, with every descendant.
    Kill,
}

/// The supervisor's end of the channels to the watch over a process.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    /// What is wanted of it.
    pub(crate) wish: watch::Sender<ProcessWish>,
    /// Whether it can be handed over.
    pub(in crate::supervisor) questions: mpsc::Sender<HandOverQuestion>,
}

/// The watch's end of the same channels.
#[derive(Debug)]
pub(crate) struct ProcessOrders {
    pub(super) wish: watch::Receiver<ProcessWish>,
    pub(super) questions: mpsc::Receiver<HandOverQuestion>,
}

impl ProcessHandle {
    pub(crate) fn new() -> (Self, ProcessOrders) {
        let (wish, wishes) = watch::channel(ProcessWish::Run);
        // One is asked at a time.
        let (ask, questions) = mpsc::channel(1);
        (Self { wish, questions: ask }, ProcessOrders { wish: wishes, questions })
    }
}
