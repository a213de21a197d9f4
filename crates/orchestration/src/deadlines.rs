//! What is due, and when?

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use vocabulary::{PodId, ReplicaId, RevisionId, Timestamp};

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Deadline {
    /// A leaving pod waits for no acknowledgement any longer.
    Release(RevisionId, PodId),
    /// A pod that refused its link had its time to speak for itself.
    Refusal(RevisionId, PodId),
    /// A retired revision that holds nothing may be forgotten.
    Forget(RevisionId, ReplicaId),
    /// Suspected peers are to be judged.
    HostReview,
}

/// The deadlines of the control loop, in the order of their times.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DeadlineBook {
    planned: BTreeSet<(Timestamp, Deadline)>,
}

impl DeadlineBook {
    pub(crate) fn plan(&mut self, at: Timestamp, deadline: Deadline) {
        self.planned.insert((at, deadline));
    }

    pub(crate) fn cancel(&mut self, at: Timestamp, deadline: Deadline) {
        self.planned.remove(&(at, deadline));
    }

    /// When the earliest deadline is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.planned.first().map(|&(at, _)| at)
    }

    /// The earliest deadline that is due by `now`, which is planned no more.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<Deadline> {
        self.next().filter(|&at| at <= now)?;
        self.planned.pop_first().map(|(_, deadline)| deadline)
    }

    /// A revision is gone or not ours any more: nothing of it is due.
    pub(crate) fn forget_revision(&mut self, id: RevisionId) {
        self.planned.retain(|(_, deadline)| match *deadline {
            Deadline::Release(of, _) | Deadline::Refusal(of, _) | Deadline::Forget(of, _) => of != id,
            Deadline::HostReview => true,
        });
    }

    /// A pod is gone. Its number may soon be another pod's, which the deadlines of this one must not end.
    pub(crate) fn forget_pod(&mut self, pod: PodId) {
        self.planned.retain(|(_, deadline)| match *deadline {
            Deadline::Release(_, of) | Deadline::Refusal(_, of) => of != pod,
            Deadline::Forget(..) | Deadline::HostReview => true,
        });
    }

    /// An activator is gone: it forgets no revision any more.
    pub(crate) fn forget_activator(&mut self, activator: ReplicaId) {
        self.planned.retain(|(_, deadline)| match *deadline {
            Deadline::Forget(_, of) => of != activator,
            Deadline::Release(..) | Deadline::Refusal(..) | Deadline::HostReview => true,
        });
    }
}
