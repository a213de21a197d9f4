use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use orchestration::{Entrance, PlatformFact};
use runtime::Observability;
use scaling::RevisionOrigin;
use serde_json::{Value, json};
use vocabulary::{PodCount, PodExits, Routing};

use super::*;
use crate::hop_keys::KeyTurn;
use crate::notice::Notice;
use crate::port_book::{LeaseNotes, WallSeconds};
use crate::resources::kind::WorkloadKind;
use crate::resources::workload::{ShownWorkload, objects};
use crate::resources::{ObjectKey, other_slice, service};
use crate::slices::SliceChange;

const NOW: Timestamp = Timestamp::ZERO;
const WALL: WallSeconds = WallSeconds(1_000_000);

fn keys() -> ClusterKeys {
    ClusterKeys::new(b"key", b"key")
}

/// Of the autoscaler that decides about everything.
fn new_index() -> Index {
    let mut index = Index::new(keys(), 1);
    index.take_over_ports(Bucket(0), &LeaseNotes::new(), &[], WALL);
    index
}

pub(super) fn index() -> Index {
    let mut index = new_index();
    index.kind_listed(&WorkloadKind::Deployment);
    index
}

pub(super) fn name() -> RevisionName {
    RevisionName::new("default", "deployment", "hello").expect("a name")
}

fn service_key() -> ObjectKey {
    ObjectKey { namespace: "default".to_owned(), name: "hello".to_owned() }
}

pub(super) fn put_service(index: &mut Index, spec: Value) {
    put_annotated(index, &json!({"ebb.dev/revision": "hello"}), spec);
}

fn put_annotated(index: &mut Index, annotations: &Value, spec: Value) {
    put_service_unsettled(index, annotations, spec);
    settle(index);
}

fn put_service_unsettled(index: &mut Index, annotations: &Value, spec: Value) {
    let mut whole = json!({"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ipFamilies": ["IPv4"], "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    let (Value::Object(map), Value::Object(changes)) = (&mut whole, spec) else { unreachable!() };
    map.extend(changes);
    let metadata = json!({"name": "hello", "namespace": "default", "uid": "s1", "annotations": annotations});
    let service = serde_json::from_value(json!({"metadata": metadata, "spec": whole})).expect("a Service");
    index.put_service(&service_key(), service::read(&service));
}

/// As the owner does, whose notes are on the Lease.
pub(super) fn settle(index: &mut Index) {
    index.settle_ports(NOW, WALL);
    for (bucket, notes) in index.port_notes() {
        index.ports_noted(bucket, &notes);
    }
}

pub(super) fn put_workload(index: &mut Index, replicas: u32, annotations: &Value) {
    index.put_workload(workload(replicas, annotations), RevisionOrigin::Found);
    settle(index);
}

pub(super) fn workload(replicas: u32, annotations: &Value) -> ShownWorkload {
    let ports = json!([{"name": "http", "containerPort": 8080}, {"name": "grpc", "containerPort": 9090}, {"name": "metrics", "containerPort": 9100}]);
    let template = json!({
        "metadata": {"labels": {"app": "hello"}, "annotations": {"ebb.dev/plain-ports": "metrics"}},
        "spec": {"containers": [{"name": "app", "ports": ports}]},
    });
    let deployment = json!({
        "metadata": {"name": "hello", "namespace": "default", "uid": "d1", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "hello"}}, "template": template},
    });
    let deployment = serde_json::from_value(deployment).expect("a Deployment");
    *objects::deployment(&deployment).expect("it is scaled")
}

fn put_pod(index: &mut Index, pod_name: &str, metadata: Value, address: &str, ready: &str) {
    use crate::resources::pod::tests::{pod, running};
    index.put_pod(pod(pod_name, metadata, &running(address, ready)), NOW);
}

fn put_activator(index: &mut Index) {
    use crate::resources::pod::tests::{pod, running};
    let activator = pod("activator-1", json!({"namespace": "ebb-system"}), &running("10.1.0.1", "True"));
    index.put_activator(&activator, NOW);
}

/// The name of whose program failed, and why, stand among the problems that `ebb get` prints, until the pod's
/// status does not say so any more.
#[test]
fn a_program_of_ours_that_ended_because_of_a_bug_is_told_of_once_while_its_pod_is_there() {
    use crate::resources::pod::tests::{pod, running};
    let mut index = index();
    let about = Subject::Pod(PodName::new("ebb-system/autoscaler-1"));
    let problems = |index: &mut Index| {
        let told = facts(index).into_iter().filter_map(|fact| {
            let PlatformFact::ProblemsChanged { about: whose, problems } = fact else { return None };
            (whose == about).then_some(problems)
        });
        told.collect::<Vec<_>>()
    };
    let metadata = json!({"namespace": "ebb-system", "labels": {"app.kubernetes.io/name": "ebb"}});
    let put = |index: &mut Index, ready: &str| {
        let mut status = running("10.1.0.2", ready);
        let end = json!({"terminated": {"exitCode": 70, "message": "error: a link of the autoscaler failed (a sum)"}});
        status["containerStatuses"] = json!([{"name": "autoscaler", "lastState": end, "ready": true, "restartCount": 1, "image": "", "imageID": ""}]);
        index.put_pod(pod("autoscaler-1", metadata.clone(), &status), NOW);
    };
    put(&mut index, "False");
    let said = "pod ebb-system/autoscaler-1: autoscaler ended with exit code 70: a link of the autoscaler failed (a sum); this is a bug of ebb, which goes on since";
    assert_eq!(problems(&mut index), [[said]]);
    let announced: Vec<_> = index.take_announcements().map(|one| one.notice.reason).collect();
    assert_eq!(announced, ["PartFailed"]);
    assert!(index.event_object(&about).is_some_and(|object| object.kind == "Pod"));
    put(&mut index, "True");
    assert!(problems(&mut index).is_empty() && index.take_announcements().next().is_none(), "it is known");
    index.remove_pod(&PodName::new("ebb-system/autoscaler-1"));
    assert_eq!(problems(&mut index), [Vec::<String>::new()]);
}

#[test]
fn a_container_that_ends_by_a_hook_of_its_own_is_told_of_until_no_pod_has_one() {
    let problems = |index: &mut Index| {
        let told = facts(index).into_iter().filter_map(|fact| {
            let PlatformFact::ProblemsChanged { about, problems } = fact else { return None };
            (about == Subject::Revision(name())).then(|| problems.join("; "))
        });
        told.last()
    };
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    problems(&mut index);
    let mut pod = index.pod_record(&PodName::new("default/a")).expect("it is there").clone();
    pod.own_hooks = vec!["app".to_owned(), "cache".to_owned()];
    index.put_pod(pod.clone(), NOW);
    let told = problems(&mut index).expect("it is told");
    assert!(told.contains("preStop hook of their own: app, cache;"), "{told}");
    pod.is_ready = false;
    index.put_pod(pod, NOW);
    assert_eq!(problems(&mut index), None, "once");
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    assert_eq!(problems(&mut index).as_deref(), Some(""));
}

fn facts(index: &mut Index) -> Vec<PlatformFact> {
    std::iter::from_fn(|| index.next_fact(NOW)).collect()
}

/// The subjects of facts, in short.
pub(super) fn told(index: &mut Index) -> Vec<String> {
    let short = |fact: PlatformFact| match fact {
        PlatformFact::ConfigChanged(_) => "configuration".to_owned(),
        PlatformFact::ProblemsChanged { problems, .. } => format!("{} problems", problems.len()),
        PlatformFact::RevisionChanged(facts) => format!("revision at {}", facts.wanted),
        PlatformFact::RevisionRemoved(_) => "removed".to_owned(),
        PlatformFact::RevisionGivenBack(_) => "given back".to_owned(),
        PlatformFact::PodsChanged { pods, .. } => format!("{} pods", pods.len()),
        PlatformFact::ActivatorsChanged(activators) => format!("{} activators", activators.len()),
        PlatformFact::RouteFound { route, .. } => format!("route {:?}", route.routing),
        PlatformFact::PodFailed { failure, .. } => format!("{} failed", failure.pod),
        PlatformFact::OwnershipChanged(_)
        | PlatformFact::PodKilled { .. }
        | PlatformFact::OrderEnded { .. }
        | PlatformFact::Synced => unreachable!("they are not the index's to tell"),
    };
    facts(index).into_iter().map(short).collect()
}

fn route(routing: Routing) -> RouteInForce {
    RouteInForce { routing, activators: vec![ReplicaName::new("activator-1")] }
}

fn addresses(index: &Index) -> Vec<String> {
    let slices = index.slice_changes(&name()).into_iter().flat_map(|change| match change {
        SliceChange::Create(slice) | SliceChange::Replace(slice) => slice.endpoints,
        SliceChange::Delete(_) => Vec::new(),
    });
    slices.flat_map(|endpoint| endpoint.addresses).collect()
}

#[test]
fn a_pod_that_is_ready_serves_an_adopted_service_before_anybody_has_decided() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "False");
    assert_eq!(addresses(&index), Vec::<String>::new());
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    assert_eq!(addresses(&index), ["10.0.0.1"]);
    index.set_route(&name(), route(Routing::ThroughActivator));
    assert_eq!(addresses(&index), ["10.0.0.1"], "activators that do not live serve no client");
}

#[test]
fn a_nodes_zone_is_on_the_addresses_of_its_pods() {
    let mut index = index();
    put_service(&mut index, json!({"trafficDistribution": "PreferSameZone"}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    index.set_route(&name(), route(Routing::Direct));
    let zones = |index: &Index| -> Vec<Option<String>> {
        let slices = index.slice_changes(&name()).into_iter().filter_map(|change| {
            let SliceChange::Create(slice) = change else { return None };
            Some(slice)
        });
        slices.flat_map(|slice| slice.endpoints).map(|endpoint| endpoint.zone).collect()
    };
    assert_eq!(zones(&index), [None]);
    index.take_unrouted();
    index.put_node_zone("n1", Some("z1"));
    assert_eq!(index.take_unrouted(), [name()].into(), "its slices are looked at");
    assert_eq!(zones(&index), [Some("z1".to_owned())]);
    index.put_node_zone("n1", Some("z1"));
    assert_eq!(index.take_unrouted(), BTreeSet::new(), "nothing is new");
    index.put_node_zone("n1", None);
    assert_eq!(index.take_unrouted(), [name()].into());
    assert_eq!(zones(&index), [None]);
}

#[test]
fn pods_that_are_not_ready_are_named_where_the_service_wants_them() {
    let mut index = index();
    put_workload(&mut index, 2, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    put_pod(&mut index, "b", json!({}), "10.0.0.2", "False");
    put_activator(&mut index);
    index.set_route(&name(), route(Routing::Direct));
    put_service(&mut index, json!({}));
    assert_eq!(addresses(&index), ["10.0.0.1"]);
    put_service(&mut index, json!({"publishNotReadyAddresses": true}));
    assert_eq!(addresses(&index), ["10.0.0.1", "10.0.0.2"]);
    let changes = index.slice_changes(&name());
    let [SliceChange::Create(slice)] = changes.as_slice() else { panic!("{changes:?}") };
    let conditions = slice.endpoints.iter().filter_map(|endpoint| endpoint.conditions.as_ref());
    let conditions: Vec<_> = conditions.map(|conditions| (conditions.ready, conditions.serving)).collect();
    assert_eq!(conditions, [(Some(true), Some(true)), (Some(true), Some(false))], "as Kubernetes has it");
    index.set_route(&name(), route(Routing::ThroughActivator));
    assert_eq!(addresses(&index), ["10.1.0.1"], "activators know which pods are ready");
}

#[test]
fn a_workload_is_a_revision_once_a_service_of_ours_names_it() {
    let mut index = index();
    put_workload(&mut index, 2, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    assert_eq!(told(&mut index), Vec::<String>::new(), "the autoscaler need not hear of it");
    put_service(&mut index, json!({}));
    assert_eq!(told(&mut index), ["revision at 2", "1 pods"]);
    index.remove_service(&service_key());
    assert_eq!(told(&mut index), ["given back"]);
}

#[test]
fn unchanged_objects_make_no_facts() {
    let mut index = index();
    put_service(&mut index, json!({}));
    for _ in 0..3 {
        put_workload(&mut index, 2, &json!({}));
        put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    }
    assert_eq!(told(&mut index), ["revision at 2", "1 pods"]);
    put_workload(&mut index, 2, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    assert_eq!(told(&mut index), Vec::<String>::new());
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "False");
    assert_eq!(told(&mut index), ["1 pods"]);
}

#[test]
fn the_last_good_settings_stay() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({"autoscaling.knative.dev/window": "30s"}));
    told(&mut index);
    put_workload(&mut index, 4, &json!({"autoscaling.knative.dev/window": "5"}));
    let told = facts(&mut index);
    let window = told.iter().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some((facts.wanted, facts.settings.stable_window))
    });
    assert_eq!(window, Some((PodCount::new(4), Some(Duration::from_secs(30)))));
    assert!(
        told.iter().any(
            |fact| matches!(fact, PlatformFact::ProblemsChanged { problems, .. } if problems.len() == 1)
        )
    );
}

#[test]
fn the_next_owner_keeps_a_workload_whose_annotations_are_wrong() {
    let mut index = index();
    put_service(&mut index, json!({}));
    let wrong = json!({"autoscaling.knative.dev/window": "5", "autoscaling.knative.dev/target": "7"});
    put_workload(&mut index, 2, &wrong);
    let revision = |index: &mut Index| {
        let told = facts(index).into_iter().filter_map(|fact| {
            let PlatformFact::RevisionChanged(facts) = fact else { return None };
            Some((facts.settings.target, facts.floor))
        });
        told.last()
    };
    assert_eq!(revision(&mut index), Some((Some(7.0), PodCount::new(2))), "what is right of them holds");
    let notices = index.notices.of(&Subject::Revision(name()));
    let says = |word: &str| notices.iter().any(|notice| notice.text.contains(word));
    assert!(says("window") && says("its count is not lowered"), "{notices:?}");
    put_workload(&mut index, 2, &json!({"autoscaling.knative.dev/target": "7"}));
    assert_eq!(revision(&mut index), Some((Some(7.0), PodCount::ZERO)));
    assert!(index.notices.is_empty());
}

fn entrances(facts: &[PlatformFact]) -> Vec<Entrance> {
    let revision = facts.iter().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some(facts.entrances.clone())
    });
    revision.expect("it is told")
}

fn several_ports(name: &str) -> Value {
    json!({"ports": [
        {"name": name, "port": 80, "targetPort": "http"},
        {"name": "grpc", "port": 81, "targetPort": 9090},
        {"name": "metrics", "port": 82, "targetPort": "metrics"},
    ]})
}

#[test]
fn each_port_of_a_service_is_an_entrance_and_leads_to_its_own_port_in_a_pod() {
    let mut index = index();
    put_service(&mut index, several_ports("http"));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({"annotations": {"ebb.dev/plain-ports": "metrics"}}), "10.0.0.1", "True");
    let facts = facts(&mut index);
    assert_eq!(entrances(&facts), [Entrance::Port(10_000), Entrance::Port(10_001)]);
    let PlatformFact::RevisionChanged(revision) = &facts[0] else { panic!("{facts:?}") };
    assert_eq!(revision.hop_keys.len(), 3, "of three days");
    let pods = facts.iter().find_map(|fact| {
        let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
        Some(pods)
    });
    let exits = &pods.expect("they are told")[0].exits;
    assert_eq!(*exits, PodExits([(10_001, 8100)].into()));
}

/// A Service with several ports that was made so many seconds before now, and no workload.
fn put_lone_service(index: &mut Index, seconds_ago: i64) {
    put_service_unsettled(index, &json!({"ebb.dev/revision": "hello"}), several_ports("http"));
    let mut record = index.services.record(&service_key()).expect("it is there").clone();
    let wall = i64::try_from(WALL.0).expect("small");
    record.created = Some(jiff::Timestamp::from_second(wall - seconds_ago).expect("a time"));
    index.put_service(&service_key(), record);
    settle(index);
}

#[test]
fn the_ports_of_a_new_service_are_on_the_lease_before_its_workload_comes() {
    let mut index = index();
    index.listed();
    put_lone_service(&mut index, 1);
    index.put_workload(workload(1, &json!({})), RevisionOrigin::Found);
    index.settle_ports(NOW, WALL);
    // The third port proves to be a plain one, so it is let go as if it had led to activators.
    let all = [10_000, 10_001, 10_002].map(Entrance::Port);
    assert_eq!(entrances(&facts(&mut index)), all, "no write of the Lease comes between");
    let at = index.next_port_deadline().expect("it ends");
    index.settle_ports(at, WALL);
    assert_eq!(entrances(&facts(&mut index)), all[..2]);
}

#[test]
fn a_service_that_waits_long_for_its_workload_gets_its_ports_with_that() {
    let given = |is_listed: bool, seconds_ago: i64| {
        let mut index = index();
        if is_listed {
            index.listed();
        }
        put_lone_service(&mut index, seconds_ago);
        let service = index.services.adopted(&service_key()).expect("it is ours");
        index.entrances_of_service(service).into_iter().flatten().count()
    };
    assert_eq!(given(true, 59), 3);
    assert_eq!(given(true, 60), 0);
    assert_eq!(given(false, 1), 0, "its workload may be there, and not be known yet");
}

#[test]
fn a_renamed_port_keeps_its_entrance_and_one_that_is_gone_is_served_a_while() {
    let mut index = index();
    put_service(&mut index, several_ports("http"));
    put_workload(&mut index, 1, &json!({}));
    facts(&mut index);
    put_service(&mut index, several_ports("web"));
    assert_eq!(entrances(&facts(&mut index)), [Entrance::Port(10_000), Entrance::Port(10_001)]);
    put_service(&mut index, json!({}));
    assert_eq!(entrances(&facts(&mut index)), [Entrance::Port(10_000), Entrance::Port(10_001)]);
    let at = index.next_port_deadline().expect("it ends");
    index.settle_ports(at, WALL);
    assert_eq!(entrances(&facts(&mut index)), [Entrance::Port(10_000)]);
}

#[test]
fn nothing_is_told_or_written_before_its_ports_are_on_the_lease() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_activator(&mut index);
    index.set_route(&name(), route(Routing::Direct));
    let (mut unsettled, notes) = (new_index(), index.port_notes());
    assert_eq!(notes, [], "they were asked for");
    unsettled
        .put_service(&service_key(), index.services.record(&service_key()).expect("it is there").clone());
    unsettled.put_workload(workload(1, &json!({})), RevisionOrigin::Found);
    unsettled.set_route(&name(), route(Routing::Direct));
    unsettled.settle_ports(NOW, WALL);
    assert_eq!(told(&mut unsettled), Vec::<String>::new());
    assert_eq!(unsettled.slice_changes(&name()), []);
    let [(bucket, notes)] = &unsettled.port_notes()[..] else { panic!("there are some") };
    unsettled.ports_noted(*bucket, notes);
    assert_eq!(told(&mut unsettled), ["revision at 1", "0 pods", "route Direct"]);
    assert_ne!(unsettled.slice_changes(&name()), []);
}

#[test]
fn a_served_revision_stays_as_it_was_told_while_a_port_of_a_service_waits_for_the_lease() {
    let mut index = index();
    put_service(&mut index, several_ports("http"));
    put_workload(&mut index, 1, &json!({}));
    facts(&mut index);
    let mut ports = several_ports("http");
    let added = json!({"name": "added", "port": 83, "targetPort": 8080});
    ports["ports"].as_array_mut().expect("a list").push(added);
    put_service_unsettled(&mut index, &json!({"ebb.dev/revision": "hello"}), ports);
    index.settle_ports(NOW, WALL);
    assert_eq!(told(&mut index), ["0 pods"], "and no revision was removed");
    let [(bucket, notes)] = &index.port_notes()[..] else { panic!("the new port is to be noted") };
    index.ports_noted(*bucket, notes);
    let all = [10_000, 10_001, 10_002].map(Entrance::Port);
    assert_eq!(entrances(&facts(&mut index)), all);
    // An activator that is gone does not wait for anything.
    put_service_unsettled(&mut index, &json!({"ebb.dev/revision": "hello"}), several_ports("http"));
    index.remove_workload(&name());
    assert_eq!(told(&mut index), ["removed"]);
}

/// The hop keys of what is told, if it is told anew.
fn told_keys(index: &mut Index) -> Option<Vec<String>> {
    let keys = facts(index).into_iter().filter_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some(facts.hop_keys.iter().map(|key| key.expose().to_owned()).collect())
    });
    keys.last()
}

#[test]
fn hop_keys_are_told_anew_once_a_day() {
    let mut index = index();
    index.turn_hop_keys(NOW, WALL);
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_activator(&mut index);
    let first = told_keys(&mut index).expect("the revision is told");
    let quarter = Duration::from_mins(15);
    let changes: Vec<Vec<String>> = (1..=96)
        .filter_map(|turn| {
            index.turn_hop_keys(NOW, WALL.later(quarter * turn));
            told_keys(&mut index)
        })
        .collect();
    let [next] = &changes[..] else { panic!("once: {changes:?}") };
    assert_eq!([&next[0], &next[2]], [&first[1], &first[0]], "all three days of each are known to the other");
    assert_eq!(index.next_deadline(), Some(NOW + KeyTurn::rest_of(WALL.later(quarter * 96))));
}

/// The addresses of a slice, and its ports.
type NamedPorts = (Vec<String>, Vec<(String, i32)>);

#[test]
fn a_plain_port_always_leads_to_the_pods() {
    let mut index = index();
    put_service(&mut index, several_ports("http"));
    put_workload(&mut index, 1, &json!({}));
    put_activator(&mut index);
    put_pod(&mut index, "a", json!({"annotations": {"ebb.dev/plain-ports": "metrics"}}), "10.0.0.1", "True");
    let ports = |index: &Index| -> Vec<NamedPorts> {
        let slices = index.slice_changes(&name()).into_iter().filter_map(|change| {
            let SliceChange::Create(slice) = change else { return None };
            Some(slice)
        });
        let slice = slices.map(|slice| {
            let ports = slice.ports.into_iter().flatten();
            let ports = ports.filter_map(|port| Some((port.name?, port.port?))).collect();
            (slice.endpoints.into_iter().flat_map(|endpoint| endpoint.addresses).collect(), ports)
        });
        slice.collect()
    };
    let named = |ports: &[(&str, i32)]| -> Vec<(String, i32)> {
        ports.iter().map(|&(name, port)| (name.to_owned(), port)).collect()
    };
    index.set_route(&name(), route(Routing::Direct));
    let all = named(&[("http", 8012), ("grpc", 8100), ("metrics", 9100)]);
    assert_eq!(ports(&index), [(vec!["10.0.0.1".to_owned()], all)]);
    index.set_route(&name(), route(Routing::ThroughActivator));
    let through = named(&[("http", 10_000), ("grpc", 10_001)]);
    let metrics = named(&[("metrics", 9100)]);
    assert_eq!(
        ports(&index),
        [(vec!["10.1.0.1".to_owned()], through), (vec!["10.0.0.1".to_owned()], metrics)]
    );
}

#[test]
fn a_service_that_activators_cannot_hold_stays_direct_and_says_why() {
    let mut index = index();
    put_workload(&mut index, 1, &json!({}));
    put_activator(&mut index);
    put_service(&mut index, json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    index.set_route(&name(), route(Routing::ThroughActivator));
    assert!(!index.stays_direct(&name()));
    assert_eq!(addresses(&index), ["10.1.0.1"]);
    // No container declares 7070.
    facts(&mut index);
    put_service(&mut index, json!({"ports": [{"port": 80, "targetPort": 7070}]}));
    assert!(index.stays_direct(&name()));
    assert_eq!(addresses(&index), ["10.0.0.1"]);
    let problems: Vec<String> = facts(&mut index)
        .into_iter()
        .filter_map(|fact| {
            let PlatformFact::ProblemsChanged { problems, .. } = fact else { return None };
            Some(problems.join("\n"))
        })
        .collect();
    assert!(problems[0].contains("containerPort: 7070"), "{problems:?}");
    // A pod without a queue-proxy.
    put_service(&mut index, json!({}));
    let mut bare = index.pod_record(&PodName::new("default/a")).expect("it is there").clone();
    assert!(!index.stays_direct(&name()));
    bare.queue_proxy = None;
    index.put_pod(bare, NOW);
    assert!(index.stays_direct(&name()));
    assert_eq!(addresses(&index), ["10.0.0.1"]);
}

#[test]
fn slices_follow_the_pods_without_another_order() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_activator(&mut index);
    assert_eq!(index.slice_changes(&name()), [], "no route was ordered yet");
    index.set_route(&name(), route(Routing::Direct));
    assert_eq!(addresses(&index), ["10.1.0.1"]);
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "False");
    assert_eq!(addresses(&index), ["10.1.0.1"]);
    // Its own word comes before kubelet's.
    index.note_state(&PodName::new("default/a"), PodState::Ready);
    assert_eq!(addresses(&index), ["10.0.0.1"]);
    assert!(index.take_unrouted().contains(&name()));
    index.note_state(&PodName::new("default/a"), PodState::Unready);
    assert_eq!(addresses(&index), ["10.1.0.1"]);
    index.note_state(&PodName::new("default/a"), PodState::Ready);
    let deleted = json!({"deletionTimestamp": "2026-11-22T10:00:00Z"});
    put_pod(&mut index, "a", deleted, "10.0.0.1", "True");
    assert_eq!(addresses(&index), ["10.1.0.1"]);
    index.set_route(&name(), route(Routing::ThroughActivator));
    put_pod(&mut index, "b", json!({}), "10.0.0.2", "True");
    assert_eq!(addresses(&index), ["10.1.0.1"]);
}

#[test]
fn a_pod_that_clients_do_not_reach_leaves_until_it_is_back_or_another_owner_decides() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 2, &json!({}));
    for (name, address) in [("a", "10.0.0.1"), ("b", "10.0.0.2")] {
        put_pod(&mut index, name, json!({}), address, "True");
    }
    index.set_route(&name(), route(Routing::Direct));
    assert_eq!(addresses(&index), ["10.0.0.1", "10.0.0.2"]);
    let pod = PodName::new("default/a");
    index.note_reach(&pod, PodReach::Unreachable);
    assert!(index.take_unrouted().contains(&name()));
    assert_eq!(addresses(&index), ["10.0.0.2"]);
    // What else becomes of it brings it no nearer.
    index.note_state(&pod, PodState::Ready);
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "False");
    assert_eq!(addresses(&index), ["10.0.0.2"]);
    index.note_reach(&pod, PodReach::Reachable);
    assert_eq!(addresses(&index), ["10.0.0.1", "10.0.0.2"]);
    index.note_reach(&pod, PodReach::Unreachable);
    index.decider_changed(&[Bucket(0)].into());
    index.set_route(&name(), route(Routing::Direct));
    assert_eq!(addresses(&index), ["10.0.0.1", "10.0.0.2"]);
}

#[test]
fn the_only_pod_stays_although_no_client_reaches_it_while_no_activator_can_serve() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    index.set_route(&name(), route(Routing::Direct));
    index.note_reach(&PodName::new("default/a"), PodReach::Unreachable);
    assert_eq!(addresses(&index), ["10.0.0.1"]);
}

/// As the API server has it.
fn write(index: &mut Index, version: &str) {
    for change in index.slice_changes(&name()) {
        let (SliceChange::Create(mut slice) | SliceChange::Replace(mut slice)) = change else { continue };
        slice.metadata.resource_version = Some(version.to_owned());
        index.put_slice(slice);
    }
}

#[test]
fn an_older_copy_of_a_slice_is_no_news() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    index.set_route(&name(), route(Routing::Direct));
    write(&mut index, "9");
    let older = index.services.slices().next().map(|(_, slice)| slice.object.clone()).map(|mut slice| {
        slice.metadata.resource_version = Some("8".to_owned());
        slice.endpoints.clear();
        slice
    });
    index.put_slice(older.expect("it was written"));
    assert_eq!(index.slice_changes(&name()), []);
    assert!(index.is_pod_named(&name(), &PodName::new("default/a")));
}

#[test]
fn the_next_owner_finds_the_route_in_any_order_of_objects() {
    let mut first = index();
    put_service(&mut first, json!({}));
    put_workload(&mut first, 1, &json!({}));
    put_activator(&mut first);
    first.set_route(&name(), route(Routing::ThroughActivator));
    write(&mut first, "3");
    let slices: Vec<_> = first.services.slices().map(|(_, slice)| slice.object.clone()).collect();
    for service_first in [true, false] {
        let mut next = index();
        if service_first {
            put_service(&mut next, json!({}));
        }
        slices.iter().cloned().for_each(|slice| next.put_slice(slice));
        put_workload(&mut next, 1, &json!({}));
        put_service(&mut next, json!({}));
        assert!(told(&mut next).contains(&"route ThroughActivator".to_owned()), "{service_first}");
    }
}

#[test]
fn a_standby_replica_follows_the_route_that_the_owner_writes() {
    let (mut owner, mut next) = (index(), index());
    for index in [&mut owner, &mut next] {
        put_service(index, json!({}));
        put_workload(index, 1, &json!({}));
        put_pod(index, "a", json!({}), "10.0.0.1", "True");
        put_activator(index);
    }
    for (routing, version, expected) in [
        (Routing::ThroughActivator, "3", "route ThroughActivator"),
        (Routing::Direct, "4", "route Direct"),
        (Routing::ThroughActivator, "5", "route ThroughActivator"),
    ] {
        owner.set_route(&name(), route(routing));
        write(&mut owner, version);
        told(&mut next);
        owner.services.slices().for_each(|(_, slice)| next.put_slice(slice.object.clone()));
        assert!(told(&mut next).contains(&expected.to_owned()), "{routing:?}");
    }
    // An owner knows better than slices that it has yet to write, until another owner decides.
    next.set_route(&name(), route(Routing::Direct));
    owner.set_route(&name(), route(Routing::ThroughActivator));
    write(&mut owner, "6");
    owner.services.slices().for_each(|(_, slice)| next.put_slice(slice.object.clone()));
    assert!(!told(&mut next).contains(&"route ThroughActivator".to_owned()));
    next.decider_changed(&[Bucket(0)].into());
    assert!(told(&mut next).contains(&"route ThroughActivator".to_owned()));
}

#[test]
fn a_new_listener_hears_everything_and_a_new_owner_counts_and_routes() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    put_activator(&mut index);
    index.put_config(&BTreeMap::from([("stable-window".to_owned(), "nonsense".to_owned())]));
    index.set_route(&name(), route(Routing::Direct));
    told(&mut index);
    index.resend_everything();
    assert_eq!(
        told(&mut index),
        ["configuration", "1 problems", "revision at 1", "1 pods", "1 activators", "route Direct"]
    );
    index.resend_counts_and_routes();
    assert_eq!(told(&mut index), ["revision at 1", "route Direct"]);
}

#[test]
fn problems_of_either_config_map_stay_until_they_are_mended() {
    let mut index = index();
    let data = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let said = |index: &Index| -> Vec<String> {
        let about = index.notices.of(&Subject::Configuration).iter();
        about.map(|notice| notice.text.clone()).collect()
    };
    index.put_config(&data("stable-window", "soon"));
    index.put_observability(Observability::messages(&data("tracing-protocol", "grpc")));
    let both = said(&index);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].contains("key stable-window of ConfigMap config-autoscaler is \"soon\""), "{both:?}");
    let grpc = "ConfigMap config-observability: tracing-protocol is \"grpc\"; write \"http/protobuf\"";
    assert!(both[1].starts_with(grpc), "{both:?}");
    index.put_config(&BTreeMap::new());
    assert_eq!(said(&index), both[1..]);
    // Accepted, and yet worth a word.
    index.put_observability(Observability::messages(&data("metrics-protocol", "grpc")));
    let nothing = "metrics-protocol has no effect: every program serves its metrics itself";
    assert_eq!(said(&index), [format!("ConfigMap config-observability: {nothing}")]);
    index.put_observability(Observability::messages(&BTreeMap::new()));
    assert_eq!(said(&index), [""; 0]);
}

/// As `target` has them: whether each pod counts is the algorithm's affair.
#[test]
fn the_pods_of_a_target_are_all_that_its_selector_selects() {
    use crate::resources::pod::tests::running;

    let mut index = index();
    put_workload(&mut index, 2, &json!({}));
    put_pod(&mut index, "hello-1", json!({}), "10.1.0.2", "True");
    let pod = |name: &str, labels: Value| {
        let metadata = json!({"name": name, "namespace": "default", "uid": name, "labels": labels});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}, "status": running("10.1.0.3", "True")});
        crate::resources::pod::read(&serde_json::from_value(pod).expect("a Pod"))
    };
    index.put_pod(pod("without-queue-proxy", json!({"app": "hello"})), NOW);
    index.put_pod(pod("of-another", json!({"app": "other"})), NOW);
    let names =
        |index: &Index| index.target(&name()).map(|target| target.pods.into_keys().collect::<Vec<_>>());
    assert_eq!(names(&index), Some(vec!["hello-1".to_owned(), "without-queue-proxy".to_owned()]));
    index.remove_pod(&PodName::new("default/without-queue-proxy"));
    assert_eq!(names(&index), Some(vec!["hello-1".to_owned()]));
    // The autoscaler hears nothing of pods to which no request can be sent.
    assert!(!told(&mut index).contains(&"2 pods".to_owned()));
}

#[test]
fn pods_that_two_workloads_of_class_hpa_select_are_ambiguous() {
    let mut index = index();
    let class = json!({"autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev", "autoscaling.knative.dev/metric": "cpu"});
    put_workload(&mut index, 1, &class);
    put_pod(&mut index, "hello-1", json!({}), "10.1.0.2", "True");
    let other = |annotations: &Value| {
        let deployment = json!({
            "metadata": {"name": "other", "namespace": "default", "uid": "d2", "annotations": annotations},
            "spec": {"replicas": 1, "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "template": {}},
        });
        *objects::deployment(&serde_json::from_value(deployment).expect("a Deployment"))
            .expect("it is scaled")
    };
    let is_shared = |index: &Index| index.target(&name()).map(|target| target.is_shared);
    index.put_workload(other(&json!({})), RevisionOrigin::Found);
    assert_eq!(is_shared(&index), Some(false), "of class kpa");
    index.put_workload(other(&class), RevisionOrigin::Found);
    assert_eq!(is_shared(&index), Some(true));
}

#[test]
fn a_workload_in_shadow_is_known_without_a_service_and_with_its_own_autoscaler() {
    use crate::resources::autoscaler::tests::autoscaler;

    let mut index = index();
    let class = "hpa.autoscaling.knative.dev";
    let shadow = json!({"ebb.dev/shadow": "true", "autoscaling.knative.dev/class": class, "autoscaling.knative.dev/metric": "cpu"});
    put_workload(&mut index, 2, &shadow);
    let key = ObjectKey { namespace: "default".to_owned(), name: "hello-hpa".to_owned() };
    let other = |index: &mut Index| {
        facts(index).into_iter().find_map(|fact| {
            let PlatformFact::RevisionChanged(facts) = fact else { return None };
            Some(facts.other_autoscaler.as_ref().map(|other| other.desired))
        })
    };
    assert_eq!(other(&mut index), Some(None), "it is told at once");
    index.put_autoscaler(key.clone(), Some(autoscaler(3, 120)));
    assert_eq!(other(&mut index), Some(Some(PodCount::new(3))));
    index.put_autoscaler(key.clone(), Some(autoscaler(3, 120)));
    assert_eq!(other(&mut index), None, "no news");
    index.put_autoscaler(key, None);
    assert_eq!(other(&mut index), Some(None));
    // Nothing is written of what is only watched.
    index.set_route(&name(), route(Routing::Direct));
    assert_eq!(index.slice_changes(&name()).len(), 0);
}
mod adoption;
mod failures;
mod forgeries;
mod handover;
mod kinds;
mod many;
mod ports;
