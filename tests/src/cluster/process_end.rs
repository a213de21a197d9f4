//! What may be missing when a process ends unasked: what it held, and what was sent to it before
//! that could be known. All else is a loss.

use std::time::Duration;

use crate::client::{Outcome, Tally, Unanswered};

/// From the end of what a Service leads to until no request is sent there any more: a proxy must notice,
/// write a slice, and kube-proxy must read it.
const LED_PAST_WITHIN: Duration = Duration::from_secs(2);
/// How long an activator on a busy machine may take to read that a connection was closed, and one request to
/// overtake another.
const READ_LATE: Duration = Duration::from_millis(500);

/// The end of a process, as [`crate::bench::clock::now`] counts.
#[derive(Clone, Copy, Debug)]
pub struct ProcessEnd {
    /// When its end was begun.
    pub begun: Duration,
    /// When it had nothing open any more.
    pub over: Duration,
}

/// Who sends requests to what has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSender {
    /// An activator, which sees that no pod is there and keeps what comes later.
    Activator,
    /// The nodes of Kubernetes, until a slice says otherwise.
    Service,
    /// The same, but only kubelet, which starts it again, can tell: its pod is there, and its queue-proxy.
    ServiceOfItsPod,
}

impl ProcessEnd {
    /// Panics if more is missing than its end explains.
    pub fn explains(self, tally: &Tally, sender: RequestSender) {
        let late = tally.unanswered.iter().map(|request| request.begun.saturating_sub(self.over)).max();
        let late = late.unwrap_or_default();
        println!(
            "{sender:?}: {} of {} unanswered, the last {late:?} late",
            tally.unanswered.len(),
            tally.sent
        );
        let until = match sender {
            RequestSender::Activator => self.over + READ_LATE,
            RequestSender::Service => self.over + LED_PAST_WITHIN,
            RequestSender::ServiceOfItsPod => {
                let answered = tally.answered_since.iter().filter(|begun| **begun > self.over);
                *answered.min().expect("it is followed") + READ_LATE
            }
        };
        let is_explained = |request: &&Unanswered| {
            request.ended >= self.begun && request.begun <= until && is_of_an_end(request)
        };
        let unexplained: Vec<_> = tally.unanswered.iter().filter(|request| !is_explained(request)).collect();
        assert!(
            unexplained.is_empty(),
            "{sender:?}, not explained by {self:?}: {unexplained:?} of {:?}",
            tally.outcomes
        );
        assert_eq!(tally.answered() + tally.unanswered.len(), tally.sent, "{:?}", tally.outcomes);
    }
}

/// Whether it looks like the end of the process that had the request, or was to have it.
fn is_of_an_end(request: &Unanswered) -> bool {
    match &request.outcome {
        Outcome::Answered => false,
        Outcome::BrokenAfterStart | Outcome::ClosedWhileIdle | Outcome::ConnectionRefused => true,
        Outcome::Refused(status, reason) => *status == 502 && reason.starts_with("upstream-"),
        Outcome::Lost(what) => what.starts_with("no response") || what.starts_with("connecting"),
    }
}
