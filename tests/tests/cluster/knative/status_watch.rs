//! Every status that a `PodAutoscaler` gets, in their order.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use kube::Api;
use kube::core::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tests::knative::PlayedKind;
use tokio::task::JoinHandle;

use crate::app::{KnativeApp, status_and_reason, written_condition};

/// The conditions of a status, in the order in which they are written.
const CONDITIONS: [&str; 4] = ["Active", "Ready", "SKSReady", "ScaleTargetInitialized"];

/// Sees the statuses of a `PodAutoscaler` until it is ended.
pub(crate) struct StatusWatch {
    seen: Arc<Mutex<Vec<Value>>>,
    watching: JoinHandle<()>,
}

impl StatusWatch {
    /// Sees the statuses of a revision's autoscaler from now on, also before there is one.
    pub(crate) fn begin(app: &KnativeApp, revision: &str) -> Self {
        let api: Api<DynamicObject> = app.namespace.api_of(&PlayedKind::PodAutoscaler.resource());
        let config = watcher::Config::default().fields(&format!("metadata.name={revision}"));
        let seen = Arc::new(Mutex::new(Vec::<Value>::new()));
        let noted = Arc::clone(&seen);
        // Ended by the test, which finds too few statuses after a panic of it.
        let watching = tokio::spawn(async move {
            let mut events = watcher(api, config).default_backoff().boxed();
            while let Some(event) = events.next().await {
                let Ok(Event::Apply(object) | Event::InitApply(object)) = event else { continue };
                let object = serde_json::to_value(object).expect("an object is JSON");
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                if noted.last().is_none_or(|last| last["status"] != object["status"]) {
                    noted.push(object);
                }
            }
        });
        Self { seen, watching }
    }

    /// Ends the watch; returns all statuses.
    pub(crate) fn end(self) -> SeenStatuses {
        self.watching.abort();
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        SeenStatuses(seen)
    }
}

/// The statuses of one `PodAutoscaler`, the oldest first.
pub(crate) struct SeenStatuses(Vec<Value>);

impl SeenStatuses {
    /// Status and reason of a condition, each time that they changed.
    pub(crate) fn course_of(&self, condition: &str) -> Vec<[String; 2]> {
        let states = self.written().map(|object| status_and_reason(object, condition));
        let mut course: Vec<[String; 2]> = states.collect();
        course.dedup();
        course
    }

    /// Panics unless a condition once had this status, reason and message.
    pub(crate) fn assert_said(&self, condition: &str, words: [&str; 3]) {
        let mut conditions = self.written().filter_map(|object| written_condition(object, condition));
        let is_said = conditions.any(|found| says_all(found, words));
        assert!(is_said, "{words:?} is missing in {:?}", self.course_of(condition));
    }

    /// The objects that have a status.
    fn written(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(|object| object["status"]["conditions"].is_array())
    }

    /// Panics unless each status keeps the rules that hold in every state.
    pub(crate) fn assert_well_formed(&self) {
        let mut was_initialized = false;
        for object in self.written() {
            let status = &object["status"];
            let conditions = status["conditions"].as_array().expect("a list");
            let kinds: Vec<&str> = conditions.iter().filter_map(|one| one["type"].as_str()).collect();
            assert_eq!(kinds, CONDITIONS, "sorted by type: {status}");
            assert_eq!(status["observedGeneration"], object["metadata"]["generation"], "{status}");
            for key in ["serviceName", "metricsServiceName"] {
                assert!(status[key].is_string(), "the API server requires {key}: {status}");
            }
            let is_initialized = status_and_reason(object, "ScaleTargetInitialized")[0] == "True";
            assert!(is_initialized || !was_initialized, "once initialized, for ever: {status}");
            if is_initialized {
                assert_ne!(status["serviceName"], "", "both come in one write: {status}");
            } else if status["serviceName"] != "" {
                // A first start that times out makes it False: the test of that row does not call this.
                let ready = status_and_reason(object, "Ready");
                assert_ne!(ready[0], "False", "it would fail the revision: {status}");
            }
            was_initialized = is_initialized;
        }
    }
}

/// Whether a condition has this status, reason and message.
pub(crate) fn says_all(condition: &Value, words: [&str; 3]) -> bool {
    ["status", "reason", "message"].into_iter().zip(words).all(|(key, word)| condition[key] == word)
}

/// Panics unless `course` holds these, in this order, with others between them.
pub(crate) fn assert_passes(course: &[[String; 2]], wanted: &[[&str; 2]]) {
    let mut rest = course.iter();
    for state in wanted {
        let is_passed = rest.any(|seen| seen.each_ref().map(String::as_str) == *state);
        assert!(is_passed, "{state:?} is missing in {course:?}, of {wanted:?}");
    }
}
