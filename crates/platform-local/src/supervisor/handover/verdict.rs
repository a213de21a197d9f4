//! Which of two processes goes on with the pods, and the question that lets a pod's watch wait for that.

use tokio::sync::{mpsc, watch};
use vocabulary::PodName;

use super::handles::PodHandles;

/// Which process goes on with the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOverVerdict {
    Pending,
    Kept,
    Given,
}

/// Waits for the verdict. If the supervisor is gone without one, nothing was given.
pub(crate) async fn decided(verdict: &mut watch::Receiver<HandOverVerdict>) -> HandOverVerdict {
    match verdict.wait_for(|verdict| *verdict != HandOverVerdict::Pending).await {
        Ok(verdict) => *verdict,
        Err(_) => HandOverVerdict::Kept,
    }
}

/// Asks the watch over a pod for what belongs to it, and to stand still from then on.
#[derive(Clone, Debug)]
pub(crate) struct HandOverQuestion {
    pub(crate) reply: mpsc::Sender<(PodName, PodHandles)>,
    pub(crate) verdict: watch::Receiver<HandOverVerdict>,
}
