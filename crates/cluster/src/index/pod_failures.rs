//! How has a pod failed since it was last ready, and why should no request wait for it?
//!
//! Kubelet counts the failures of a container since its pod was made. How many of them came after the pod was
//! last ready is remembered here. An autoscaler that sees a pod for the first time, which was ready before,
//! counts the last failure alone. So a new owner may refuse too late, never too early.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::PodFailure;
use vocabulary::{PodState, Timestamp};

use crate::moment::Moment;
use crate::notice::{CRASH_LOOP, NOT_STARTABLE, Notice};
use crate::resources::app_container::{ContainerEnd, FailedContainer};
use crate::resources::pod::PodObject;

/// After so many failures no request waits for the next attempt: as on one machine.
const FAILURES_MAX: u32 = 3;
/// For so long a container may be impossible to start: a registry may be restarting, and a Secret may come
/// after the workload that names it.
const NOT_STARTABLE_FOR: Duration = Duration::from_secs(30);
/// How long after a container's end, at most, kubelet writes that its pod is not ready.
const END_BEFORE_UNREADINESS: Duration = Duration::from_secs(5);

/// The failures of one pod since it was last ready.
#[derive(Clone, Debug, Default)]
pub(super) struct PodFailures {
    /// Those of each container when the pod was last ready.
    before: BTreeMap<String, u32>,
    start: StartTrouble,
    /// The most recent failure of any container.
    last: Option<PodFailure>,
}

/// Whether a container of a pod cannot be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum StartTrouble {
    #[default]
    None,
    Since(Timestamp),
    /// For [`NOT_STARTABLE_FOR`]; what was the matter then. Kubelet's words change with each attempt.
    Standing(String),
}

/// Why requests for a revision are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitRefusal {
    /// The notice as the trouble began, so that people are told once.
    pub(super) notice: Notice,
    /// The reason as it is now, for refusals of requests.
    pub(super) why: String,
}

impl PodFailures {
    /// The failures of a pod that was not known before.
    pub(super) fn first_seen(record: &PodObject) -> Self {
        let Some(until) = record.ready_until else { return Self::default() };
        let is_since = |container: &FailedContainer| {
            let finished = container.last_end.as_ref().and_then(|end| end.finished);
            finished.is_some_and(|finished| Moment::between(finished, until) <= END_BEFORE_UNREADINESS)
        };
        let before = record.failed.iter().map(|container| {
            let since = u32::from(is_since(container));
            (container.name.clone(), container.failures.saturating_sub(since))
        });
        Self { before: before.collect(), ..Self::default() }
    }

    /// Takes in what is known of the pod now.
    pub(super) fn observe(&mut self, record: &PodObject, reported: Option<PodState>, now: Timestamp) {
        self.note_readiness(record, reported);
        let is_troubled = record.failed.iter().any(|container| container.not_startable.is_some());
        match (is_troubled, &self.start) {
            (false, _) => self.start = StartTrouble::None,
            (true, StartTrouble::None) => self.start = StartTrouble::Since(now),
            (true, StartTrouble::Since(_) | StartTrouble::Standing(_)) => {}
        }
    }

    /// A pod that is ready, by kubelet's word or its own, begins its count of failures anew.
    pub(super) fn note_readiness(&mut self, record: &PodObject, reported: Option<PodState>) {
        if record.is_ready || reported == Some(PodState::Ready) {
            let failures = |container: &FailedContainer| (container.name.clone(), container.failures);
            self.before = record.failed.iter().map(failures).collect();
        }
    }

    /// Remembers how the pod failed, if it has done so once more than `former` says; returns whether it has.
    pub(super) fn note(&mut self, record: &PodObject, former: Option<&PodObject>, now: Timestamp) -> bool {
        let count = |record: &PodObject, name: &str| {
            let container = record.failed.iter().find(|container| container.name == name);
            container.map_or(0, |container| container.failures)
        };
        let has_failed = |container: &&FailedContainer| {
            container.failures > former.map_or(0, |former| count(former, &container.name))
        };
        // What ends with its pod has not failed.
        let Some(container) = record.failed.iter().find(has_failed).filter(|_| record.stays()) else {
            return false;
        };
        self.last = Some(PodFailure {
            pod: record.pod_name(),
            at: now,
            reason: container.end_in_words(),
            last_lines: container.last_end.iter().flat_map(|end| end.last_lines.clone()).collect(),
        });
        true
    }

    /// The most recent failure of any container.
    pub(super) fn last(&self) -> Option<&PodFailure> {
        self.last.as_ref()
    }

    /// When a container will have been impossible to start for long enough.
    pub(super) fn due(&self) -> Option<Timestamp> {
        match self.start {
            StartTrouble::Since(since) => Some(since + NOT_STARTABLE_FOR),
            StartTrouble::None | StartTrouble::Standing(_) => None,
        }
    }

    /// That time has come: a container that cannot be started is a reason from now on.
    pub(super) fn start_wait_over(&mut self, record: &PodObject) {
        let trouble = record.failed.iter().find_map(|container| {
            let why = container.not_startable.as_ref()?;
            Some(format!("container {}: {why}", container.name))
        });
        self.start = trouble.map_or(StartTrouble::None, StartTrouble::Standing);
    }

    /// How the pod has failed since it was last ready, for people.
    pub(super) fn in_words(&self, record: &PodObject) -> Option<String> {
        let (container, failures) = self.worst(record)?;
        let then = match failures {
            FAILURES_MAX.. => "",
            _ => "; from the third on requests are refused while no pod is ready",
        };
        Some(format!("{}, failure {failures} since the pod was last ready{then}", in_words(container)))
    }

    /// Why no request should wait for the pod's revision, if this pod is the reason.
    pub(super) fn wait_refusal(&self, record: &PodObject) -> Option<WaitRefusal> {
        let name = record.pod_name();
        if let Some((container, FAILURES_MAX..)) = self.worst(record) {
            let words = in_words(container);
            let why = format!(
                "pod {name} has failed {FAILURES_MAX} times or more since it was last ready: {words}"
            );
            return Some(WaitRefusal::new(CRASH_LOOP, why));
        }
        let StartTrouble::Standing(trouble) = &self.start else { return None };
        let seconds = NOT_STARTABLE_FOR.as_secs();
        let why = format!("pod {name} has not started for {seconds} s or more: {trouble}");
        Some(WaitRefusal::new(NOT_STARTABLE, why))
    }

    /// The container that has failed most often since the pod was ready, and how often that is.
    fn worst<'r>(&self, record: &'r PodObject) -> Option<(&'r FailedContainer, u32)> {
        let counted = record.failed.iter().map(|container| {
            let before = self.before.get(&container.name).copied().unwrap_or_default();
            (container, container.failures.saturating_sub(before))
        });
        counted.max_by_key(|(_, failures)| *failures).filter(|(_, failures)| *failures > 0)
    }
}

impl WaitRefusal {
    fn new(reason: &'static str, why: String) -> Self {
        let text = format!(
            "{why}; while no pod of it is ready, requests are refused and keep one pod wanted, until one is ready or the template changes"
        );
        Self { notice: Notice::new(reason, text), why }
    }
}

/// The last end of a container, with its last words.
fn in_words(container: &FailedContainer) -> String {
    let words = container.last_end.as_ref().map(ContainerEnd::last_words).unwrap_or_default();
    format!("{}{words}", container.end_in_words())
}
