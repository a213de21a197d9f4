//! When is waiting for a pod of no use? While no pod of a revision is ready, and one of them has failed time
//! and again, or has had a container for a while that kubelet cannot start. Then requests are refused, with
//! the reason. The refusals end once a pod is ready, or a pod of another template is there.
//!
//! Kubelet counts the failures of a container since its pod was made. How many of them came after the pod was
//! last ready is remembered here. An autoscaler that sees a pod for the first time, which was ready before,
//! counts the last failure alone. So a new owner may refuse too late, never too early.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::PodFailure;
use vocabulary::{PodName, PodState, RevisionName, Timestamp};

use super::{Index, Pod, Topic};
use crate::custody::Custody;
use crate::notice::{CRASH_LOOP, NOT_STARTABLE, Notice};
use crate::resources::app_container::{ContainerEnd, FailedContainer};
use crate::resources::pod::PodObject;
use crate::wall_clock::Moment;

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

    fn due(&self) -> Option<Timestamp> {
        match self.start {
            StartTrouble::Since(since) => Some(since + NOT_STARTABLE_FOR),
            StartTrouble::None | StartTrouble::Standing(_) => None,
        }
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

impl Pod {
    /// Whether the pod takes requests: as it said itself, or else as kubelet says.
    fn is_ready(&self) -> bool {
        match self.reported_state {
            Some(PodState::Ready) => true,
            Some(PodState::Starting | PodState::Unready | PodState::Draining) => false,
            Some(PodState::Unheard) | None => self.record.is_ready,
        }
    }

    /// How it has failed since it was last ready, for people.
    pub(super) fn failure_in_words(&self) -> Option<String> {
        let (container, failures) = self.failures.worst(&self.record).filter(|_| !self.is_ready())?;
        let then = match failures {
            FAILURES_MAX.. => "",
            _ => "; from the third on requests are refused while no pod is ready",
        };
        Some(format!("{}, failure {failures} since the pod was last ready{then}", in_words(container)))
    }

    /// Why no request should wait for its revision, if this pod is the reason.
    fn wait_refusal(&self) -> Option<WaitRefusal> {
        let name = self.record.pod_name();
        if let Some((container, FAILURES_MAX..)) = self.failures.worst(&self.record) {
            let words = in_words(container);
            let why = format!(
                "pod {name} has failed {FAILURES_MAX} times or more since it was last ready: {words}"
            );
            return Some(WaitRefusal::new(CRASH_LOOP, why));
        }
        let StartTrouble::Standing(trouble) = &self.failures.start else { return None };
        let seconds = NOT_STARTABLE_FOR.as_secs();
        let why = format!("pod {name} has not started for {seconds} s or more: {trouble}");
        Some(WaitRefusal::new(NOT_STARTABLE, why))
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

impl Index {
    /// When a container will have been impossible to start for long enough.
    pub(super) fn start_trouble_due(&self) -> Option<Timestamp> {
        self.start_troubles.values().min().copied()
    }

    /// Notes containers that have been impossible to start for long enough.
    pub(super) fn review_start_troubles(&mut self, now: Timestamp) {
        let due: Vec<PodName> =
            self.start_troubles.extract_if(.., |_, due| *due <= now).map(|(name, _)| name).collect();
        for name in due {
            let Some(pod) = self.pods.get_mut(&name) else { continue };
            let trouble = pod.record.failed.iter().find_map(|container| {
                let why = container.not_startable.as_ref()?;
                Some(format!("container {}: {why}", container.name))
            });
            pod.failures.start = trouble.map_or(StartTrouble::None, StartTrouble::Standing);
            let record = pod.record.clone();
            for revision in self.owners_of(&record) {
                self.pods_changed(&revision);
            }
        }
    }

    /// Notes or forgets when a pod's container will have been impossible to start for long enough.
    pub(super) fn watch_start_trouble(&mut self, name: &PodName) {
        match self.pods.get(name).and_then(|pod| pod.failures.due()) {
            Some(due) => self.start_troubles.insert(name.clone(), due),
            None => self.start_troubles.remove(name),
        };
    }

    /// Remembers how a pod failed, if it has done so once more than `former` says.
    pub(super) fn note_pod_failure(&mut self, name: &PodName, former: Option<&PodObject>, now: Timestamp) {
        let Some(pod) = self.pods.get_mut(name) else { return };
        let count = |record: &PodObject, name: &str| {
            let container = record.failed.iter().find(|container| container.name == name);
            container.map_or(0, |container| container.failures)
        };
        let has_failed = |container: &&FailedContainer| {
            container.failures > former.map_or(0, |former| count(former, &container.name))
        };
        // What ends with its pod has not failed.
        let Some(container) = pod.record.failed.iter().find(has_failed).filter(|_| pod.record.stays()) else {
            return;
        };
        pod.failures.last = Some(PodFailure {
            pod: name.clone(),
            at: now,
            reason: container.end_in_words(),
            last_lines: container.last_end.iter().flat_map(|end| end.last_lines.clone()).collect(),
        });
        let record = pod.record.clone();
        for revision in self.owners_of(&record) {
            self.find_pod_failure(&revision);
        }
    }

    /// The last failure among a revision's pods, as far as they are there, is the revision's.
    pub(super) fn find_pod_failure(&mut self, revision: &RevisionName) {
        let failures = self.pods_of(revision).filter_map(|pod| pod.failures.last.as_ref());
        let Some(last) = failures.max_by_key(|failure| failure.at).cloned() else { return };
        let Some(workload) = self.workloads.get_mut(revision) else { return };
        if workload.last_failure.as_ref() != Some(&last) {
            workload.last_failure = Some(last);
            self.notices.tell(Topic::Failure(revision.clone()));
        }
    }

    /// Looks whether a wait for a pod of a revision is of use.
    pub(super) fn review_failures(&mut self, revision: &RevisionName) {
        let mut present = self.wait_refusal(revision);
        let Some(workload) = self.workloads.get_mut(revision) else { return };
        if let (Some(present), Some(former)) = (&mut present, &workload.wait_refusal)
            && present.notice.reason == former.notice.reason
        {
            present.notice = former.notice.clone();
        }
        if std::mem::replace(&mut workload.wait_refusal, present) != workload.wait_refusal {
            self.notices.tell(Topic::Pods(revision.clone()));
            self.notice_workload(revision);
            self.notice_services_of(revision);
        }
    }

    fn wait_refusal(&self, revision: &RevisionName) -> Option<WaitRefusal> {
        let pods: Vec<&Pod> = self.pods_of(revision).filter(|pod| pod.record.stays()).collect();
        if pods.iter().any(|pod| pod.is_ready()) || self.plain_pods_of(revision).any(|pod| pod.is_ready) {
            return None;
        }
        // A pod of another template may get ready whatever those of an earlier one did.
        let is_superseded = |pod: &Pod| {
            let is_later = |other: &Pod| {
                !other.record.has_template_of(&pod.record) && other.record.created >= pod.record.created
            };
            pods.iter().any(|other| is_later(other))
        };
        let mut refusing = pods.iter().filter_map(|pod| Some((pod, pod.wait_refusal()?)));
        refusing.find(|(pod, _)| !is_superseded(pod)).map(|(_, wait_refusal)| wait_refusal)
    }

    /// The notice about a revision whose requests are refused.
    pub(super) fn wait_refusal_notice(&self, revision: &RevisionName) -> Option<Notice> {
        let mut services = self.served.get(revision).into_iter().flatten();
        let is_ours = services.any(|key| matches!(self.custody.get(key), Some(Custody::Adopted(_))));
        let wait_refusal = self.workloads.get(revision)?.wait_refusal.as_ref();
        wait_refusal.filter(|_| is_ours).map(|wait_refusal| wait_refusal.notice.clone())
    }

    /// Why no request should wait for a pod, while it is not ready.
    pub(super) fn hold_of(&self, revision: &RevisionName, pod: &Pod) -> Option<String> {
        let wait_refusal = self.workloads.get(revision)?.wait_refusal.as_ref();
        wait_refusal.filter(|_| pod.record.stays() && !pod.is_ready()).map(|cause| cause.why.clone())
    }
}

/// The last end of a container, with its last words.
fn in_words(container: &FailedContainer) -> String {
    let words = container.last_end.as_ref().map(ContainerEnd::last_words).unwrap_or_default();
    format!("{}{words}", container.end_in_words())
}
