//! What does one `ebb up` hand to the next, so that pods outlive the process that started them?
//!
//! ```text
//! supervisor ──question──► the watch over each pod ──question──► the readers of its outputs
//!      ◄── copies of their descriptors, and what they had begun to read; then they stand still ──
//! record and descriptors ──► the `ebb up` that takes over …
//! supervisor ◄── decision: given (all copies are dropped, no task waits for a pod any more) or kept (all go on)
//! ```
//!
//! While they stand still nothing is read and nothing is ordered, so nothing is lost between the two: what
//! pods say and print waits in their sockets and pipes for the one that goes on.

mod exchange;
mod handles;
pub(super) mod records;
mod verdict;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tokio::sync::oneshot;

pub(super) use handles::{ContainerOutputs, PipeHandles, PodHandles};
use records::{PlatformRecord, ProcessRecord};
pub(super) use verdict::{HandOverQuestion, HandOverVerdict, decided};

/// All pods with what belongs to them, on their way from one `ebb up` to the next.
#[derive(Debug)]
pub struct Handover {
    /// What the next needs to know, as JSON that only this crate reads.
    pub record: serde_json::Value,
    /// What the record speaks of, in its order.
    pub descriptors: Vec<OwnedFd>,
}

impl Handover {
    /// Whether all of it is understood and complete: to be asked before anything is accepted, while the
    /// process that offers it can still keep it.
    pub fn check(&self) -> Result<(), String> {
        let record = self.read()?;
        let needed: usize = record.processes.values().map(ProcessRecord::descriptors).sum();
        if needed != self.descriptors.len() {
            return Err(format!("{} descriptors came, and the pods have {needed}", self.descriptors.len()));
        }
        match record.processes.keys().find(|pod| !record.fleet.has(pod)) {
            Some(stray) => Err(format!("{stray} came without its revision")),
            None => Ok(()),
        }
    }

    /// The control group that the offering process divides among its pods.
    pub(super) fn control_group(&self) -> Option<PathBuf> {
        self.read().ok()?.control_group
    }

    fn read(&self) -> Result<PlatformRecord, String> {
        serde::Deserialize::deserialize(&self.record)
            .map_err(|error: serde_json::Error| format!("the record of the pods is not understood: {error}"))
    }
}

/// All parts stand still until this is used. If it is dropped, they go on as if no handover had been asked
/// for.
#[derive(Debug)]
pub struct HandoverDecision(oneshot::Sender<()>);

impl HandoverDecision {
    /// Whether everything still stands still, and waits.
    pub fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// Says that the other process has all pods from now on.
    pub fn given(self) {
        // A supervisor that is gone has none either.
        let _ = self.0.send(());
    }
}

/// By this channel the caller gets the [`Handover`], or the reason why there is none.
pub(super) type Reply = oneshot::Sender<Result<(Handover, HandoverDecision), String>>;
