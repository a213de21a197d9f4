//! Why is a pod started? For the line of the log that says so.

use std::fmt;

use scaling::Decision;
use vocabulary::{PodCount, PodName};

/// Why a pod is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartCause {
    /// So many are wanted, for this reason.
    Count(String),
    /// A pod failed, and this one takes its place.
    Failure {
        pod: PodName,
        /// How that pod failed, in one line.
        how: String,
    },
    /// Pods of this template take over from older ones.
    Rollout(String),
}

impl fmt::Display for StartCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(why) => formatter.write_str(why),
            Self::Failure { pod, how } => write!(formatter, "instead of {pod}, which failed: {how}"),
            Self::Rollout(template) => write!(formatter, "rollout of {template}"),
        }
    }
}

/// What is known of one revision, for the pods that are started next.
#[derive(Debug)]
pub(crate) struct StartCauses {
    /// Why as many are wanted as are.
    count: String,
    /// Pods that failed since the last look, with how they did. Their successors are added at the next, so
    /// this is short.
    failed: Vec<(PodName, String)>,
}

impl StartCauses {
    /// The causes of a new revision, which has its first pods for this reason.
    pub(crate) fn new(count: String) -> Self {
        Self { count, failed: Vec::new() }
    }

    /// Another count is wanted, for this reason.
    pub(crate) fn note_count(&mut self, why: String) {
        self.count = why;
    }

    /// A pod that is wanted failed.
    pub(crate) fn note_failure(&mut self, pod: PodName, how: String) {
        self.failed.push((pod, how));
    }

    /// Why one more pod is started, in the rollout of a template if there is one. Each failure explains one
    /// start.
    pub(crate) fn next(&mut self, rollout: Option<&str>) -> StartCause {
        match (self.failed.pop(), rollout) {
            (Some((pod, how)), _) => StartCause::Failure { pod, how },
            (None, Some(template)) => StartCause::Rollout(template.to_owned()),
            (None, None) => StartCause::Count(self.count.clone()),
        }
    }

    /// Everything that was to be started is; a failure that called for nothing explains nothing later.
    pub(crate) fn settle(&mut self) {
        self.failed.clear();
    }
}

/// Why so many pods are wanted: the last step of the decision had the last word.
pub(super) fn why(count: PodCount, because: &Decision) -> String {
    match because.reasons.last() {
        Some(reason) => format!("{count} wanted: {}", reason.text),
        None => format!("{count} wanted"),
    }
}
