//! How do the containers of a pod's app fail? A queue-proxy is left out: it fails by a bug of ours, which is
//! told otherwise.

use std::fmt;

use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, PodStatus};
use vocabulary::QUEUE_PROXY;

/// Lines of a container's last words that people are shown.
const LAST_LINES_MAX: usize = 10;
/// Letters of one of them: more is no message, but data.
const LINE_LETTERS_MAX: usize = 300;

/// Why kubelet cannot start a container until a person changes something: none of these is counted among a
/// container's restarts. `ImagePullBackOff` is `ErrImagePull` between two attempts.
const NOT_STARTABLE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// A container of the app that has failed, or that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedContainer {
    pub(crate) name: String,
    /// The failures of the container since the pod was made.
    pub(crate) failures: u32,
    pub(crate) last_end: Option<ContainerEnd>,
    /// Why it cannot be started at present.
    pub(crate) not_startable: Option<String>,
}

/// The last end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerEnd {
    pub(crate) exit_code: i32,
    /// Kubelet's word for it ("Error", "`OOMKilled`", "Completed").
    pub(crate) reason: String,
    /// The lines that kubelet took for its last words, oldest first.
    pub(crate) last_lines: Vec<String>,
    pub(crate) finished: Option<WallTime>,
}

/// The containers that have failed, init containers before the others.
pub(crate) fn read(status: &PodStatus) -> Vec<FailedContainer> {
    let beginning = status.init_container_statuses.iter().flatten();
    let beginning = beginning.filter_map(|container| read_container(container, Success::IsNoFailure));
    let app = status.container_statuses.iter().flatten();
    let app = app.filter_map(|container| read_container(container, Success::IsFailure));
    beginning.chain(app).collect()
}

/// What an end with exit code 0 means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Success {
    /// The container was to serve on.
    IsFailure,
    /// The container has done what it was there for.
    IsNoFailure,
}

fn read_container(container: &ContainerStatus, success: Success) -> Option<FailedContainer> {
    if container.name == QUEUE_PROXY {
        return None;
    }
    let state = container.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref());
    let ended = state.and_then(terminated);
    let before = container.last_state.as_ref().and_then(terminated);
    // Each restart follows an end. The last one may not have been followed yet: then the container has ended,
    // or waits for its back-off.
    let last_end = ended.or(before);
    let is_unfollowed = ended.is_some() || (waiting.is_some() && before.is_some());
    let is_failure = |end: &ContainerStateTerminated| success == Success::IsFailure || end.exit_code != 0;
    let unfollowed = u32::from(is_unfollowed && last_end.is_some_and(is_failure));
    let failures = u32::try_from(container.restart_count).unwrap_or_default().saturating_add(unfollowed);
    let not_startable = waiting.and_then(|waiting| {
        let reason = waiting.reason.as_deref().filter(|reason| NOT_STARTABLE.contains(reason))?;
        let message = waiting.message.as_deref().unwrap_or_default();
        Some(shortened(format!("{reason} {message}").trim_end()))
    });
    (failures > 0 || not_startable.is_some()).then(|| FailedContainer {
        name: container.name.clone(),
        failures,
        last_end: last_end.map(read_end),
        not_startable,
    })
}

fn terminated(state: &ContainerState) -> Option<&ContainerStateTerminated> {
    state.terminated.as_ref()
}

fn read_end(end: &ContainerStateTerminated) -> ContainerEnd {
    let message = end.message.as_deref().unwrap_or_default();
    let lines: Vec<&str> = message.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(LAST_LINES_MAX);
    ContainerEnd {
        exit_code: end.exit_code,
        reason: end.reason.clone().unwrap_or_default(),
        last_lines: lines[first..].iter().map(|line| shortened(line)).collect(),
        finished: end.finished_at.as_ref().map(|time| time.0),
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(LINE_LETTERS_MAX).collect()
}

impl FailedContainer {
    /// What happened last, without its last words.
    pub(crate) fn end_in_words(&self) -> String {
        match &self.last_end {
            Some(end) => format!("container {} ended with {end}", self.name),
            None => format!("container {} ended", self.name),
        }
    }
}

impl ContainerEnd {
    /// The last of its last words, as they follow on a sentence.
    pub(crate) fn last_words(&self) -> String {
        self.last_lines.last().map(|line| format!(": {line}")).unwrap_or_default()
    }
}

impl fmt::Display for ContainerEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "exit code {}", self.exit_code)?;
        if self.reason.is_empty() { Ok(()) } else { write!(formatter, " ({})", self.reason) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Of a container that kubelet has started again so often.
    pub(crate) fn container(name: &str, restarts: u32, state: &Value, last_state: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": restarts, "state": state, "lastState": last_state})
    }

    pub(crate) fn ended(code: i32, message: &str) -> Value {
        json!({"terminated": {"exitCode": code, "reason": "Error", "message": message, "finishedAt": "2026-11-22T10:00:00Z"}})
    }

    pub(crate) fn waiting(reason: &str) -> Value {
        json!({"waiting": {"reason": reason, "message": "why"}})
    }

    fn failed(status: Value) -> Vec<(String, u32)> {
        let status = serde_json::from_value(status).expect("a PodStatus");
        read(&status).into_iter().map(|container| (container.name, container.failures)).collect()
    }

    #[test]
    fn each_end_of_an_app_container_is_one_failure() {
        let running = json!({"running": {}});
        let back_off = waiting("CrashLoopBackOff");
        for (restarts, state, last_state, expected) in [
            (0, running.clone(), json!({}), None),
            (0, ended(1, ""), json!({}), Some(1)),
            (0, ended(0, ""), json!({}), Some(1)),
            (1, running.clone(), ended(1, ""), Some(1)),
            (1, ended(1, ""), ended(1, ""), Some(2)),
            (1, back_off.clone(), ended(1, ""), Some(2)),
            (2, running, ended(1, ""), Some(2)),
            (2, back_off, ended(1, ""), Some(3)),
        ] {
            let status = container("app", restarts, &state, &last_state);
            let seen = failed(json!({"containerStatuses": [status]}));
            let expected: Vec<_> = expected.map(|count| ("app".to_owned(), count)).into_iter().collect();
            assert_eq!(seen, expected, "{restarts} {state}");
        }
    }

    #[test]
    fn a_queue_proxy_is_no_container_of_the_app_and_an_init_container_may_succeed() {
        let statuses = [container(QUEUE_PROXY, 5, &ended(1, ""), &json!({}))];
        assert_eq!(failed(json!({"containerStatuses": statuses})), []);
        let done = container("migrate", 0, &ended(0, ""), &json!({}));
        let loops = container("fetch", 2, &waiting("CrashLoopBackOff"), &ended(3, ""));
        assert_eq!(failed(json!({"initContainerStatuses": [done, loops]})), [("fetch".to_owned(), 3)]);
    }

    #[test]
    fn last_words_are_the_last_lines_of_the_message() {
        let message = (0..30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n\n") + "\n\n";
        let status = container("app", 0, &ended(3, &message), &json!({}));
        let status = serde_json::from_value(json!({"containerStatuses": [status]})).expect("a PodStatus");
        let failed = read(&status).pop().expect("it failed");
        assert_eq!(failed.end_in_words(), "container app ended with exit code 3 (Error)");
        let end = failed.last_end.expect("it ended");
        assert_eq!((end.last_lines.len(), end.last_words().as_str()), (10, ": line 29"));
    }

    #[test]
    fn an_image_that_cannot_be_had_is_no_failure_of_the_app() {
        for (reason, expected) in [
            ("ErrImagePull", Some("ErrImagePull why")),
            ("ImagePullBackOff", Some("ImagePullBackOff why")),
            ("InvalidImageName", Some("InvalidImageName why")),
            ("ContainerCreating", None),
            ("PodInitializing", None),
        ] {
            let status = container("app", 0, &waiting(reason), &json!({}));
            let status = serde_json::from_value(json!({"containerStatuses": [status]})).expect("a PodStatus");
            let failed = read(&status).pop();
            let why = failed.as_ref().and_then(|container| container.not_startable.as_deref());
            assert_eq!(why, expected, "{reason}");
            assert!(failed.is_none_or(|container| container.failures == 0), "{reason}");
        }
    }
}
