//! The end of a write of histories, which both keepers begin on a task of its own: was it done, or did it
//! fail by a bug?

use futures_util::FutureExt as _;
use tokio::task::{JoinHandle, unconstrained};

/// Waits for the end of a write, and returns its answer. A write that panicked has none, and is logged.
pub(crate) async fn end_of_write<Answer>(write: JoinHandle<Answer>) -> Option<Answer> {
    match write.await {
        Ok(answer) => Some(answer),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "writing histories failed by a bug of ebb: what was measured since the last write is in memory alone"
            );
            None
        }
    }
}

/// The same for a write that has ended. It is told whatever the event loop has done in this turn.
pub(crate) fn end_of_ended_write<Answer>(write: JoinHandle<Answer>) -> Option<Answer> {
    unconstrained(end_of_write(write)).now_or_never().flatten()
}
