//! Pods that fail time and again, or cannot be started.

use orchestration::PodFacts;

use super::*;
use crate::notice::{CRASH_LOOP, NOT_STARTABLE};
use crate::resources::app_container::tests::{container, ended, waiting};
use crate::resources::pod::tests::pod;

/// An index with a revision of the present time's pods, and the time.
struct Cluster {
    index: Index,
    now: Timestamp,
    /// As they were told last.
    told: Vec<PodFacts>,
}

/// A pod of a ReplicaSet, which stands for a template.
fn template(replica_set: &str, created: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set, "uid": replica_set, "controller": true});
    json!({"ownerReferences": [owner], "creationTimestamp": created})
}

impl Cluster {
    fn new() -> Self {
        let mut index = index();
        put_service(&mut index, json!({}));
        put_workload(&mut index, 1, &json!({}));
        index.take_announcements().count();
        Self { index, now: NOW, told: Vec::new() }
    }

    /// Takes in a pod of the first template.
    fn put(&mut self, name: &str, status: &Value) {
        self.put_of(name, template("hello-1", "2026-11-22T09:00:00Z"), status);
    }

    fn put_of(&mut self, name: &str, metadata: Value, status: &Value) {
        self.index.put_pod(pod(name, metadata, status), self.now);
    }

    /// How the pods stand at last, as the autoscaler hears it.
    fn pods(&mut self) -> Vec<PodFacts> {
        let told = facts(&mut self.index).into_iter().filter_map(|fact| {
            let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
            Some(pods)
        });
        if let Some(pods) = told.last() {
            self.told = pods;
        }
        self.told.clone()
    }

    fn hold(&mut self) -> Option<String> {
        let pods = self.pods();
        let first = pods.first().and_then(|pod| pod.hold.clone());
        assert!(pods.iter().all(|pod| pod.hold == first), "one pod's failures hold for all");
        first
    }

    fn events(&mut self) -> Vec<(String, &'static str)> {
        let announced: Vec<_> = self.index.take_announcements().collect();
        let object = |about| self.index.event_object(about).map(|object| object.kind).unwrap_or_default();
        announced.iter().map(|one| (object(&one.about), one.notice.reason)).collect()
    }
}

/// Of a pod that is not ready, with such a container.
fn unready(container: &Value) -> Value {
    let conditions =
        json!([{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T09:00:00Z"}]);
    json!({"phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-11-22T09:00:00Z", "conditions": conditions, "containerStatuses": [container]})
}

/// Of a pod whose app has ended so often, and waits to be started again.
fn failed(times: u32) -> Value {
    unready(&container("app", times - 1, &waiting("CrashLoopBackOff"), &ended(1, "no database")))
}

/// Of a pod that is ready after so many restarts.
fn ready(restarts: u32) -> Value {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    let app = container("app", restarts, &json!({"running": {}}), &ended(1, "no database"));
    json!({"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions, "containerStatuses": [app]})
}

const WHY: &str = "pod default/a has failed 3 times or more since it was last ready: container app ended with exit code 1 (Error): no database";

#[test]
fn the_third_failure_of_one_pod_holds_requests_until_a_pod_is_ready() {
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(1));
    cluster.put("b", &unready(&container("app", 0, &json!({"running": {}}), &json!({}))));
    assert_eq!(cluster.hold(), None);
    cluster.put("a", &failed(2));
    assert_eq!((cluster.hold(), cluster.events()), (None, vec![]));
    cluster.put("a", &failed(3));
    assert_eq!(cluster.hold().as_deref(), Some(WHY));
    let both = [("Deployment", CRASH_LOOP), ("Service", CRASH_LOOP)];
    assert_eq!(cluster.events(), both.map(|(kind, reason)| (kind.to_owned(), reason)));
    // The next attempt is on trial, and people know.
    cluster.put("a", &unready(&container("app", 3, &json!({"running": {}}), &ended(1, "no database"))));
    assert_eq!(cluster.hold().as_deref(), Some(WHY));
    cluster.put("a", &failed(4));
    assert_eq!((cluster.hold().as_deref(), cluster.events()), (Some(WHY), vec![]));
    cluster.put("b", &ready(0));
    assert_eq!(cluster.hold(), None);
}

#[test]
fn failures_count_from_the_last_readiness_on() {
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(3));
    cluster.put("a", &ready(3));
    cluster.put("a", &failed(4));
    cluster.put("a", &failed(5));
    assert_eq!(cluster.hold(), None);
    cluster.put("a", &failed(6));
    assert!(cluster.hold().is_some());
}

/// Kubelet asks an app each few seconds, its queue-proxy all the time.
#[test]
fn the_word_of_a_queue_proxy_ends_a_row_of_failures_too() {
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(3));
    assert!(cluster.hold().is_some());
    let name = PodName::new("default/a");
    cluster.index.note_state(&name, PodState::Ready);
    assert_eq!(cluster.hold(), None);
    cluster.index.note_state(&name, PodState::Unready);
    cluster.put("a", &failed(5));
    assert_eq!(cluster.hold(), None);
    cluster.put("a", &failed(6));
    assert!(cluster.hold().is_some());
}

#[test]
fn a_new_owner_counts_no_failure_from_before_the_last_readiness() {
    let lost_at = |at: &str| {
        let mut status = failed(7);
        status["conditions"][0]["lastTransitionTime"] = json!(at);
        status
    };
    // It has failed at 10:00:00 and was ready in between; kubelet said so a second later.
    for (at, failures_left) in [("2026-11-22T10:00:01Z", 2), ("2026-11-22T11:00:00Z", 3)] {
        let mut cluster = Cluster::new();
        cluster.put("a", &lost_at(at));
        for more in 1..failures_left {
            cluster.put("a", &failed(7 + more));
            assert_eq!(cluster.hold(), None, "{at}: {more}");
        }
        cluster.put("a", &failed(7 + failures_left));
        assert!(cluster.hold().is_some(), "{at}");
    }
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(7));
    assert!(cluster.hold().is_some(), "it was never ready");
}

#[test]
fn another_template_ends_the_hold_and_its_own_failures_begin_another() {
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(3));
    assert!(cluster.hold().is_some());
    let later = template("hello-2", "2026-11-22T09:10:00Z");
    cluster.put_of(
        "b",
        later.clone(),
        &unready(&container("app", 0, &waiting("ContainerCreating"), &json!({}))),
    );
    assert_eq!(cluster.hold(), None);
    cluster.put("a", &failed(4));
    cluster.put_of("b", later.clone(), &failed(2));
    assert_eq!(cluster.hold(), None);
    cluster.put_of("b", later, &failed(3));
    assert!(cluster.hold().is_some_and(|why| why.contains("default/b")));
}

#[test]
fn pods_that_are_gone_hold_no_request() {
    let mut cluster = Cluster::new();
    cluster.put("a", &failed(3));
    assert!(cluster.hold().is_some());
    cluster.index.remove_pod(&PodName::new("default/a"));
    assert_eq!(cluster.pods(), []);
    // A StatefulSet gives the next one the same name.
    let mut next = template("hello-1", "2026-11-22T09:20:00Z");
    next["uid"] = json!("another");
    cluster.put_of("a", next, &failed(1));
    assert_eq!(cluster.hold(), None);
}

#[test]
fn an_image_that_cannot_be_had_for_half_a_minute_holds_requests() {
    for reasons in [["ErrImagePull", "ImagePullBackOff"], ["InvalidImageName", "InvalidImageName"]] {
        let mut cluster = Cluster::new();
        let stuck = |reason| unready(&container("app", 0, &waiting(reason), &json!({})));
        cluster.put("a", &stuck(reasons[0]));
        cluster.now += Duration::from_secs(15);
        cluster.put("a", &stuck(reasons[1]));
        assert_eq!(cluster.index.pods.start_trouble_due(), Some(NOW + Duration::from_secs(30)));
        cluster.index.pass(NOW + Duration::from_millis(29_999));
        assert_eq!(cluster.hold(), None);
        cluster.index.pass(NOW + Duration::from_secs(30));
        let why =
            format!("pod default/a has not started for 30 s or more: container app: {} why", reasons[1]);
        assert_eq!(cluster.hold().as_deref(), Some(why.as_str()));
        assert_eq!(cluster.index.pods.start_trouble_due(), None);
        let both = ["Deployment", "Service"].map(|kind| (kind.to_owned(), NOT_STARTABLE));
        assert_eq!(cluster.events(), both);
        cluster.put("a", &stuck(reasons[0]));
        assert_eq!((cluster.hold(), cluster.events()), (Some(why), vec![]), "kubelet tries again");
        cluster.put("a", &unready(&container("app", 0, &json!({"running": {}}), &json!({}))));
        assert_eq!(cluster.hold(), None);
    }
}

#[test]
fn the_first_failure_is_told_with_exit_code_reason_and_last_words() {
    let mut cluster = Cluster::new();
    facts(&mut cluster.index);
    cluster.put("a", &failed(1));
    let told = facts(&mut cluster.index);
    let failure = told.iter().find_map(|fact| {
        let PlatformFact::PodFailed { failure, .. } = fact else { return None };
        Some(failure)
    });
    let failure = failure.expect("the failure is told");
    assert_eq!(failure.reason, "container app ended with exit code 1 (Error)");
    assert_eq!(failure.last_lines, ["no database"]);
    let trouble = told.iter().find_map(|fact| {
        let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
        pods.first()?.trouble.clone()
    });
    let expected = "container app ended with exit code 1 (Error): no database, failure 1 since the pod was last ready; from the third on requests are refused while no pod is ready";
    assert_eq!(trouble.as_deref(), Some(expected));
    cluster.index.resend_everything();
    assert!(super::told(&mut cluster.index).contains(&"default/a failed".to_owned()));
}

#[test]
fn a_container_that_ends_with_its_pod_has_not_failed() {
    let mut cluster = Cluster::new();
    cluster.put("a", &ready(0));
    facts(&mut cluster.index);
    let mut deleted = template("hello-1", "2026-11-22T09:00:00Z");
    deleted["deletionTimestamp"] = json!("2026-11-22T10:00:00Z");
    deleted["deletionGracePeriodSeconds"] = json!(30);
    cluster.put_of("a", deleted, &unready(&container("app", 0, &ended(143, ""), &json!({}))));
    let told = super::told(&mut cluster.index);
    assert!(!told.contains(&"default/a failed".to_owned()), "{told:?}");
}
