//! Workloads of other kinds than Deployments, and what keeps one from being scaled.

use super::*;
use crate::notice::{NO_WORKLOAD, NOT_SCALABLE};
use crate::resources::autoscaler::tests::autoscaler;
use crate::resources::workload::objects::{self, WorkloadReading};

fn announced(index: &mut Index) -> Vec<(&'static str, String)> {
    index.take_announcements().map(|one| (one.notice.reason, one.notice.text)).collect()
}

fn reasons(index: &mut Index) -> Vec<&'static str> {
    announced(index).into_iter().map(|(reason, _)| reason).collect()
}

fn stateful_set() -> WorkloadReading {
    let template = json!({
        "metadata": {"labels": {"app": "hello"}},
        "spec": {"containers": [{"name": "app", "ports": [{"name": "http", "containerPort": 8080}]}]},
    });
    let object = json!({
        "metadata": {"name": "hello", "namespace": "default", "uid": "set"},
        "spec": {"replicas": 1, "serviceName": "peers", "selector": {"matchLabels": {"app": "hello"}}, "template": template},
    });
    objects::stateful_set(&serde_json::from_value(object).expect("a StatefulSet"))
}

fn of(kind: &str) -> RevisionName {
    RevisionName::new("default", kind, "hello").expect("a name")
}

fn name_kind(index: &mut Index, kind: &str) {
    put_annotated(index, &json!({"ebb.dev/revision": format!("{kind}/hello")}), json!({}));
}

fn owned_by(kind: &str, uid: &str) -> Value {
    json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "hello", "uid": uid, "controller": true}]})
}

fn pods_told(index: &mut Index, revision: &RevisionName) -> usize {
    let told = facts(index).into_iter().rev().find_map(|fact| {
        let PlatformFact::PodsChanged { revision: of, pods } = fact else { return None };
        (of == *revision).then_some(pods.len())
    });
    told.expect("pods were told")
}

fn facts_of(index: &mut Index) -> std::sync::Arc<orchestration::RevisionFacts> {
    let told = facts(index).into_iter().rev().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some(facts)
    });
    told.expect("a revision was told")
}

#[test]
fn a_kind_is_watched_once_a_service_names_it_and_nothing_is_missing_before_it_is_listed() {
    let mut index = index();
    index.listed();
    name_kind(&mut index, "statefulset");
    assert_eq!(index.take_kinds_to_watch(), [WorkloadKind::StatefulSet]);
    assert_eq!(reasons(&mut index), Vec::<&str>::new(), "no list was read yet");
    index.kind_listed(&WorkloadKind::StatefulSet);
    assert_eq!(reasons(&mut index), [NO_WORKLOAD]);
    index.read_workload(&of("statefulset"), stateful_set(), RevisionOrigin::Found);
    settle(&mut index);
    assert_eq!(facts_of(&mut index).name, of("statefulset"));
    name_kind(&mut index, "statefulset");
    assert_eq!(index.take_kinds_to_watch(), []);
}

#[test]
fn an_unscalable_workload_is_named_at_its_service_and_left_alone() {
    let mut index = index();
    index.listed();
    name_kind(&mut index, "replicaset");
    index.kind_listed(&WorkloadKind::ReplicaSet);
    announced(&mut index);
    let owner = owned_by("Deployment", "d1")["ownerReferences"].clone();
    let object =
        json!({"metadata": {"name": "hello", "namespace": "default", "uid": "r", "ownerReferences": owner}});
    let reading = objects::replica_set(&serde_json::from_value(object).expect("a ReplicaSet"));
    index.read_workload(&of("replicaset"), reading, RevisionOrigin::Found);
    let told = announced(&mut index);
    assert!(
        matches!(told.as_slice(), [(NOT_SCALABLE, text)] if text.contains("Deployment hello")),
        "{told:?}"
    );
    index.set_route(&of("replicaset"), route(Routing::Direct));
    assert!(index.slice_changes(&of("replicaset")).is_empty());
}

#[test]
fn a_kind_that_ebb_may_not_list_is_a_problem_until_the_right_is_granted() {
    let mut index = index();
    index.listed();
    name_kind(&mut index, "rollouts.argoproj.io");
    let [kind] = index.take_kinds_to_watch().try_into().expect("one kind");
    index.refuse_kind(&kind, Notice::new(NOT_SCALABLE, "the cluster has no API group argoproj.io"));
    assert_eq!(reasons(&mut index), [NOT_SCALABLE]);
    index.kind_listed(&kind);
    assert_eq!(reasons(&mut index), [NO_WORKLOAD], "now it is known");
}

#[test]
fn overlapping_labels_leave_a_pod_to_its_owner() {
    let mut index = index();
    index.listed();
    put_workload(&mut index, 1, &json!({}));
    name_kind(&mut index, "statefulset");
    index.kind_listed(&WorkloadKind::StatefulSet);
    index.read_workload(&of("statefulset"), stateful_set(), RevisionOrigin::Found);
    settle(&mut index);
    put_pod(&mut index, "hello-0", owned_by("StatefulSet", "set"), "10.0.0.1", "True");
    put_pod(&mut index, "of-another", owned_by("StatefulSet", "other"), "10.0.0.2", "True");
    put_pod(&mut index, "of-a-deployment", owned_by("ReplicaSet", "x"), "10.0.0.3", "True");
    put_pod(&mut index, "of-nobody", json!({}), "10.0.0.4", "True");
    assert_eq!(pods_told(&mut index, &of("statefulset")), 2);
    // The same pods, seen from a Deployment with the same labels.
    put_service(&mut index, json!({}));
    assert_eq!(pods_told(&mut index, &name()), 2);
}

#[test]
fn a_replica_set_of_another_deployment_is_known_by_its_name() {
    let mut index = index();
    put_workload(&mut index, 1, &json!({}));
    put_service(&mut index, json!({}));
    let made_for = |name: &str| {
        json!({
            "labels": {"app": "hello", "pod-template-hash": "5c4f"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "r", "controller": true}],
        })
    };
    put_pod(&mut index, "a", made_for("hello-5c4f"), "10.0.0.1", "True");
    put_pod(&mut index, "b", made_for("canary-5c4f"), "10.0.0.2", "True");
    assert_eq!(pods_told(&mut index, &name()), 2, "no canary is known, so it was taken over");
    let mut canary = workload(1, &json!({}));
    canary.record.revision = RevisionName::new("default", "deployment", "canary").expect("a name");
    canary.record.uid = "d2".to_owned();
    index.listed();
    index.put_workload(canary, RevisionOrigin::Found);
    assert_eq!(pods_told(&mut index, &name()), 1);
}

#[test]
fn a_paused_workload_keeps_its_count_and_no_request_waits_for_it() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 2, &json!({"ebb.dev/paused": "true"}));
    let facts = facts_of(&mut index);
    assert_eq!((facts.may_write, facts.hold.as_deref()), (false, Some("paused")));
    assert_eq!(reasons(&mut index), ["Paused"]);
    assert!(!index.may_change(&name(), PodCount::new(2), PodCount::new(3)), "an order may be older");
    put_workload(&mut index, 2, &json!({}));
    let facts = facts_of(&mut index);
    assert_eq!((facts.may_write, facts.hold.as_deref()), (true, None));
    assert!(index.notices.is_empty() && index.may_change(&name(), PodCount::new(2), PodCount::new(1)));
}

#[test]
fn beside_another_autoscaler_nothing_is_written_unless_it_is_only_watched() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 2, &json!({}));
    told(&mut index);
    let key = ObjectKey { namespace: "default".to_owned(), name: "hello-hpa".to_owned() };
    index.put_autoscaler(key.clone(), Some(autoscaler(3, 120)));
    let facts = facts_of(&mut index);
    assert_eq!((facts.may_write, facts.settings.shadow), (false, None), "it is no setting");
    assert!(facts.hold.as_deref().is_some_and(|hold| hold.contains("hello-hpa")));
    assert_eq!(reasons(&mut index), ["OtherAutoscaler"]);
    put_workload(&mut index, 2, &json!({"ebb.dev/shadow": "true"}));
    assert!(index.notices.is_empty(), "that is what shadow is for");
    put_workload(&mut index, 2, &json!({}));
    index.put_autoscaler(key, None);
    let facts = facts_of(&mut index);
    assert_eq!((facts.may_write, facts.hold.as_deref()), (true, None));
}

#[test]
fn the_governing_service_of_a_stateful_set_keeps_no_pods() {
    let mut index = index();
    name_kind(&mut index, "statefulset");
    index.kind_listed(&WorkloadKind::StatefulSet);
    index.read_workload(&of("statefulset"), stateful_set(), RevisionOrigin::Found);
    settle(&mut index);
    let put_headless = |index: &mut Index, name: &str, ports: Value| {
        let metadata = json!({"name": name, "namespace": "default", "uid": name});
        let spec = json!({"clusterIP": "None", "ports": ports, "selector": {"app": "hello"}});
        let record = service::read(
            &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service"),
        );
        index.put_service(&ObjectKey { namespace: "default".to_owned(), name: name.to_owned() }, record);
        facts_of(index).floor
    };
    let any = json!([{"port": 80, "targetPort": 8080}]);
    assert_eq!(put_headless(&mut index, "peers", any.clone()), PodCount::ZERO);
    assert_eq!(put_headless(&mut index, "others", any), PodCount::ONE, "its clients would find no pod");
}

#[test]
fn a_service_keeps_pods_only_if_it_reaches_a_port_of_requests() {
    let rows = [
        ("plain", json!({"ports": [{"port": 80, "targetPort": "metrics"}]}), 0),
        ("headless and plain", json!({"clusterIP": "None", "ports": [{"port": 9100}]}), 0),
        ("of UDP", json!({"ports": [{"port": 53, "protocol": "UDP"}]}), 0),
        ("the queue-proxy's metrics", json!({"ports": [{"port": 80, "targetPort": 19091}]}), 0),
        ("undeclared", json!({"ports": [{"port": 80, "targetPort": 7070}]}), 0),
        ("another name", json!({"type": "ExternalName", "externalName": "elsewhere"}), 0),
        ("requests", json!({"ports": [{"port": 80, "targetPort": "http"}]}), 2),
        ("another port of requests", json!({"ports": [{"port": 80, "targetPort": 9090}]}), 2),
        (
            "both",
            json!({"ports": [{"name": "a", "port": 80, "targetPort": 9100}, {"name": "b", "port": 81, "targetPort": 8080}]}),
            2,
        ),
        (
            "beside UDP",
            json!({"ports": [{"name": "a", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 81, "targetPort": 8080}]}),
            2,
        ),
        ("headless", json!({"clusterIP": "None", "ports": [{"port": 8080}]}), 2),
        ("headless without ports", json!({"clusterIP": "None"}), 2),
    ];
    for (what, mut spec, expected) in rows {
        let mut index = index();
        put_service(&mut index, json!({}));
        put_workload(&mut index, 2, &json!({}));
        spec["selector"] = json!({"app": "hello"});
        let metadata = json!({"name": "other", "namespace": "default", "uid": "o"});
        let record = service::read(
            &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service"),
        );
        let key = ObjectKey { namespace: "default".to_owned(), name: "other".to_owned() };
        index.put_service(&key, record);
        assert_eq!(facts_of(&mut index).floor, PodCount::new(expected), "{what}");
    }
}

#[test]
fn affinity_is_served_and_warned_of() {
    let mut index = index();
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    announced(&mut index);
    put_service(&mut index, json!({"sessionAffinity": "ClientIP"}));
    assert_eq!(reasons(&mut index), ["SessionAffinity"]);
}

#[test]
fn pods_are_hinted_at_only_where_kubernetes_heeds_it() {
    let hints = |kind: &str, to: u32| {
        let mut index = index();
        name_kind(&mut index, kind);
        let owner = if kind == "statefulset" {
            index.read_workload(&of(kind), stateful_set(), RevisionOrigin::Found);
            owned_by("StatefulSet", "set")
        } else {
            put_workload(&mut index, 3, &json!({}));
            json!({})
        };
        for pod in ["hello-0", "hello-1", "hello-2"] {
            put_pod(&mut index, pod, owner.clone(), "10.0.0.1", "True");
        }
        let end_first = [PodName::new("default/hello-1")];
        index.deletion_hints(&of(kind), PodCount::new(to), &end_first).len()
    };
    assert_eq!(hints("deployment", 2), 1);
    assert_eq!(hints("deployment", 0), 0, "all end");
    assert_eq!(hints("statefulset", 2), 0, "it ends the newest in any case");
}

/// A Service of its own that names this kind.
fn put_named(index: &mut Index, service: &str, kind: &str) {
    let annotations = json!({"ebb.dev/revision": format!("{kind}/{service}")});
    let metadata =
        json!({"name": service, "namespace": "default", "uid": service, "annotations": annotations});
    let spec = json!({"clusterIP": "10.96.0.9", "ports": [{"port": 80, "targetPort": 8080}]});
    let record = service::read(
        &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service"),
    );
    index.put_service(&ObjectKey { namespace: "default".to_owned(), name: service.to_owned() }, record);
}

#[test]
fn bogus_kinds_keep_no_other_kind_out() {
    let mut index = index();
    index.listed();
    for number in 0..100 {
        put_named(&mut index, &format!("bogus-{number}"), &format!("things{number}.example.com"));
    }
    for kind in index.take_kinds_to_watch() {
        index.refuse_kind(&kind, Notice::new(NOT_SCALABLE, "the cluster has no API group example.com"));
    }
    announced(&mut index);
    name_kind(&mut index, "statefulset");
    assert_eq!(index.take_kinds_to_watch(), [WorkloadKind::StatefulSet]);
    index.kind_listed(&WorkloadKind::StatefulSet);
    index.read_workload(&of("statefulset"), stateful_set(), RevisionOrigin::Found);
    settle(&mut index);
    assert_eq!(facts_of(&mut index).name, of("statefulset"));
    put_named(&mut index, "honest", "rollouts.argoproj.io");
    assert_eq!(index.take_kinds_to_watch().len(), 1);
}

#[test]
fn a_kind_that_no_service_names_for_a_minute_is_left_and_kubernetes_own_are_kept() {
    let at = Timestamp::from_secs;
    let mut index = index();
    index.listed();
    put_named(&mut index, "one", "rollouts.argoproj.io");
    put_named(&mut index, "two", "rollouts.argoproj.io");
    let [kind] = index.take_kinds_to_watch().try_into().expect("one kind");
    let remove = |index: &mut Index, name: &str| {
        index.remove_service(&ObjectKey { namespace: "default".to_owned(), name: name.to_owned() });
    };
    remove(&mut index, "one");
    assert_eq!(index.take_kinds_to_leave(at(100)), []);
    remove(&mut index, "two");
    assert_eq!(index.take_kinds_to_leave(at(200)), []);
    assert_eq!(index.next_deadline(), Some(at(260)));
    // One that comes again meanwhile finds it as it was.
    put_named(&mut index, "one", "rollouts.argoproj.io");
    assert_eq!((index.take_kinds_to_leave(at(260)), index.take_kinds_to_watch()), (vec![], vec![]));
    remove(&mut index, "one");
    assert_eq!(index.take_kinds_to_leave(at(300)), []);
    assert_eq!(index.take_kinds_to_leave(at(360)), std::slice::from_ref(&kind));
    assert!(!index.is_kind_wanted(&kind));
    put_named(&mut index, "one", "rollouts.argoproj.io");
    assert_eq!(index.take_kinds_to_watch(), [kind]);
    name_kind(&mut index, "statefulset");
    index.remove_service(&service_key());
    index.take_kinds_to_leave(at(400));
    assert_eq!(index.take_kinds_to_leave(at(4000)), []);
}
