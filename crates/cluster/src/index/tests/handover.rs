//! A Service changes hands, and no client of it notices.

use super::*;

/// As Kubernetes writes it for a selector.
fn put_kubernetes_slice(index: &mut Index, writer: &str, pods: &[(&str, bool)]) {
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|(name, ready)| {
            json!({"addresses": ["10.0.0.1"], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": name}})
        })
        .collect();
    let labels =
        json!({"kubernetes.io/service-name": "hello", "endpointslice.kubernetes.io/managed-by": writer});
    let metadata = json!({"name": format!("hello-{}", writer.len()), "namespace": "default", "uid": "k1", "resourceVersion": "7", "labels": labels});
    let slice = json!({"addressType": "IPv4", "metadata": metadata, "endpoints": endpoints});
    let slice = serde_json::from_value(slice).expect("an EndpointSlice");
    index.put_other_slice(other_slice::read(&slice).expect("it is of a Service"));
}

const CONTROLLER: &str = "endpointslice-controller.k8s.io";
const MIRROR: &str = "endpointslicemirroring-controller.k8s.io";

fn with_selector() -> Value {
    json!({"selector": {"app": "hello"}})
}

/// One pod, served by Kubernetes.
fn running() -> Index {
    let mut index = index();
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    put_activator(&mut index);
    put_annotated(&mut index, &json!({}), with_selector());
    put_kubernetes_slice(&mut index, CONTROLLER, &[("a", true)]);
    index.listed();
    told(&mut index);
    index
}

/// Served by us, with nothing of Kubernetes' own left.
fn taken_over() -> Index {
    let mut index = running();
    put_service(&mut index, json!({}));
    index.set_route(&name(), route(Routing::Direct));
    write(&mut index, "11");
    let takeover = index.takeover(&name()).expect("a slice is left");
    takeover.leftovers.iter().for_each(|leftover| index.remove_other_slice(&leftover.key));
    told(&mut index);
    announced(&mut index);
    index
}

fn announced(index: &mut Index) -> Vec<&'static str> {
    index.take_announcements().map(|announcement| announcement.notice.reason).collect()
}

fn facts_of_revision(index: &mut Index) -> std::sync::Arc<orchestration::RevisionFacts> {
    let told = facts(index).into_iter().rev().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        Some(facts)
    });
    told.expect("a revision was told")
}

/// What is written goes, as if the API server had done it.
fn carry_out(index: &mut Index) {
    for change in index.slice_changes(&name()) {
        match change {
            SliceChange::Create(slice) | SliceChange::Replace(slice) => index.put_slice(slice),
            SliceChange::Delete(slice) => index.remove_slice(&ObjectKey::of(&slice.metadata)),
        }
    }
}

/// The addresses of all endpoints in the slices that ebb wrote.
fn addresses_that_stand(index: &Index) -> Vec<&str> {
    let endpoints = index.services.slices().flat_map(|(_, slice)| &slice.object.endpoints);
    endpoints.flat_map(|endpoint| &endpoint.addresses).map(String::as_str).collect()
}

#[test]
fn a_service_that_names_a_workload_and_keeps_its_selector_is_prepared_and_not_touched() {
    let mut index = running();
    put_service(&mut index, with_selector());
    assert_eq!(announced(&mut index), ["SelectorPresent"]);
    let facts = facts_of_revision(&mut index);
    assert!(!facts.may_write, "its count is not ours yet");
    assert!(!facts.entrances.is_empty(), "activators know it already");
    index.set_route(&name(), route(Routing::ThroughActivator));
    assert_eq!((index.slice_changes(&name()), index.takeover(&name())), (Vec::new(), None));
}

#[test]
fn without_a_selector_our_slices_are_written_directly_before_those_of_kubernetes_go() {
    let mut index = running();
    put_service(&mut index, json!({}));
    // No route was ordered: what Kubernetes had there was one.
    assert!(told(&mut index).contains(&"route Direct".to_owned()));
    assert_eq!(addresses(&index), ["10.0.0.1"]);
    put_kubernetes_slice(&mut index, MIRROR, &[("a", true)]);
    write(&mut index, "11");
    let takeover = index.takeover(&name()).expect("two slices are left");
    assert_eq!((takeover.leftovers.len(), takeover.endpoints.len()), (2, 1));
    assert!(!index.announce_adopted(&service_key()), "not yet");
    takeover.leftovers.iter().for_each(|leftover| index.remove_other_slice(&leftover.key));
    assert!(index.takeover(&name()).is_none() && index.announce_adopted(&service_key()));
    assert_eq!(announced(&mut index), ["Adopted"]);
    // One that comes again goes again.
    put_kubernetes_slice(&mut index, MIRROR, &[("a", true)]);
    assert!(index.take_unrouted().contains(&name()) && index.takeover(&name()).is_some());
}

#[test]
fn slices_of_kubernetes_stay_while_ours_name_no_address() {
    let mut index = running();
    index.remove_pod(&PodName::new("default/a"));
    index.remove_activator(&ReplicaName::new("activator-1"), NOW);
    put_service(&mut index, json!({}));
    write(&mut index, "11");
    assert_eq!(index.takeover(&name()), None);
}

#[test]
fn a_strangers_slice_is_left_alone_and_named() {
    let mut index = taken_over();
    put_kubernetes_slice(&mut index, "submariner.io", &[]);
    assert_eq!((announced(&mut index), index.takeover(&name())), (vec!["ForeignEndpoints"], None));
}

#[test]
fn one_service_over_two_workloads_is_refused_and_not_touched() {
    let mut index = running();
    let stranger = json!({"labels": {"app": "hello-2", "tier": "web"}});
    put_pod(&mut index, "b", stranger, "10.0.0.2", "True");
    put_service(&mut index, json!({"selector": {"tier": "web"}}));
    assert_eq!(announced(&mut index), ["SeveralWorkloads"]);
    // Taking the selector away does not change whom its clients reach today.
    put_kubernetes_slice(&mut index, CONTROLLER, &[("a", true), ("b", true)]);
    put_service(&mut index, json!({}));
    index.set_route(&name(), route(Routing::Direct));
    assert_eq!((index.slice_changes(&name()), index.takeover(&name())), (Vec::new(), None));
}

#[test]
fn our_slices_stay_until_kubernetes_has_a_ready_endpoint_and_activators_serve_on_for_a_minute() {
    let mut index = taken_over();
    // An old file: no annotation, a selector, and nothing runs.
    put_workload(&mut index, 0, &json!({}));
    index.remove_pod(&PodName::new("default/a"));
    put_annotated(&mut index, &json!({}), with_selector());
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ONE, "a request may wait");
    assert_eq!(addresses(&index), ["10.1.0.1"], "and is held meanwhile");
    carry_out(&mut index);
    put_kubernetes_slice(&mut index, CONTROLLER, &[("c", false)]);
    assert!(index.slice_changes(&name()).is_empty());
    put_kubernetes_slice(&mut index, CONTROLLER, &[("c", true)]);
    carry_out(&mut index);
    assert_eq!((index.services.slices().count(), announced(&mut index)), (0, vec!["GivenBack"]));
    let at = |seconds| Timestamp::from_secs(seconds);
    index.pass(at(100));
    assert_eq!(index.next_deadline(), Some(at(160)));
    assert!(!told(&mut index).contains(&"given back".to_owned()));
    index.pass(at(160));
    assert_eq!((told(&mut index), index.next_deadline()), (vec!["given back".to_owned()], None));
}

#[test]
fn a_selector_that_goes_again_before_anything_was_given_back_is_no_handover() {
    let mut index = taken_over();
    put_service(&mut index, with_selector());
    put_service(&mut index, json!({}));
    assert_eq!((announced(&mut index), index.next_deadline()), (Vec::new(), None));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ZERO);
}

#[test]
fn without_annotation_and_selector_our_slices_stay_direct_and_a_notice_says_why() {
    let mut index = taken_over();
    index.set_route(&name(), route(Routing::ThroughActivator));
    carry_out(&mut index);
    put_annotated(&mut index, &json!({}), json!({}));
    assert_eq!(announced(&mut index), ["NoSelector"]);
    // Although another route was ordered last: no activator may hold requests for a Service that is not ours.
    carry_out(&mut index);
    assert_eq!((addresses_that_stand(&index), index.slice_changes(&name())), (vec!["10.0.0.1"], Vec::new()));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ONE);
}

#[test]
fn the_next_owner_gives_back_what_the_former_one_began_to() {
    let former = taken_over();
    let mut next = index();
    former.services.slices().for_each(|(_, slice)| next.put_slice(slice.object.clone()));
    put_annotated(&mut next, &json!({}), with_selector());
    put_workload(&mut next, 1, &json!({}));
    put_pod(&mut next, "a", json!({}), "10.0.0.1", "True");
    next.listed();
    assert_eq!(next.slice_changes(&name()).len(), 0);
    put_kubernetes_slice(&mut next, CONTROLLER, &[("a", true)]);
    assert!(matches!(next.slice_changes(&name()).as_slice(), [SliceChange::Delete(_)]));
}

#[test]
fn an_adopted_service_that_becomes_unservable_is_served_on_with_a_notice() {
    let udp = json!([{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    for spec in [json!({"ports": udp}), json!({"externalTrafficPolicy": "Local"})] {
        let mut index = taken_over();
        put_activator(&mut index);
        let before = facts_of_revision_after(&mut index, json!({"sessionAffinity": "None"}));
        let after = facts_of_revision_after(&mut index, spec.clone());
        assert_eq!((after.entrances.len(), &after.entrances), (1, &before.entrances), "{spec}");
        assert_eq!(after.floor, PodCount::ZERO, "it goes to zero as before");
        assert_eq!(announced(&mut index), ["NotServable"], "{spec}");
        // Slices follow the pods, and the route.
        index.remove_pod(&PodName::new("default/a"));
        put_pod(&mut index, "b", json!({}), "10.0.0.2", "True");
        carry_out(&mut index);
        assert_eq!(addresses_that_stand(&index), ["10.0.0.2"], "{spec}");
        index.set_route(&name(), route(Routing::ThroughActivator));
        carry_out(&mut index);
        assert_eq!(addresses_that_stand(&index), ["10.1.0.1"], "{spec}");
        put_service(&mut index, json!({}));
        assert!(index.notices.is_empty(), "{spec}");
    }
}

fn facts_of_revision_after(index: &mut Index, spec: Value) -> std::sync::Arc<orchestration::RevisionFacts> {
    put_service(index, spec);
    index.resend_everything();
    facts_of_revision(index)
}

#[test]
fn an_annotation_that_breaks_is_what_people_are_told_of() {
    let mut index = taken_over();
    put_annotated(&mut index, &json!({"ebb.dev/revision": "cronjob/hello"}), json!({}));
    assert_eq!(announced(&mut index), ["BadAnnotation"]);
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ONE);
}

#[test]
fn a_service_given_back_keeps_the_pods_that_it_needed() {
    let mut index = taken_over();
    put_workload(&mut index, 4, &json!({}));
    put_annotated(&mut index, &json!({}), with_selector());
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::new(4));
    // An old file with a count in it: the load says how many are needed, and then they stay.
    put_workload(&mut index, 1, &json!({}));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ONE);
    put_workload(&mut index, 3, &json!({}));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::new(3));
}

#[test]
fn a_service_that_is_made_anew_under_its_name_has_slices_and_ports_of_its_own() {
    let mut index = taken_over();
    let former = facts_of_revision_after(&mut index, json!({})).entrances.clone();
    let mut record = index.services.record(&service_key()).expect("it is there").clone();
    record.uid = "s9".to_owned();
    index.remove_service(&service_key());
    index.put_service(&service_key(), record);
    settle(&mut index);
    let present = facts_of_revision(&mut index).entrances.clone();
    assert!(present.iter().all(|entrance| !former.contains(entrance)), "{present:?}, {former:?}");
    // Kubernetes collects those of the former: they are not this one's to change.
    index.set_route(&name(), route(Routing::Direct));
    let changes = index.slice_changes(&name());
    let [SliceChange::Create(slice)] = &changes[..] else { panic!("{changes:?}") };
    let owner = slice.metadata.owner_references.as_deref().and_then(<[_]>::first);
    assert_eq!(owner.map(|owner| owner.uid.as_str()), Some("s9"));
}

#[test]
fn a_count_is_not_lowered_under_clients_of_another_service() {
    let mut index = taken_over();
    put_workload(&mut index, 3, &json!({}));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ZERO);
    let other = |annotations: &Value| {
        let metadata =
            json!({"name": "other", "namespace": "default", "uid": "s2", "annotations": annotations});
        let spec = json!({"clusterIP": "10.96.0.8", "ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "hello"}});
        service::read(
            &serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Service"),
        )
    };
    let key = ObjectKey { namespace: "default".to_owned(), name: "other".to_owned() };
    index.put_service(&key, other(&json!({})));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::new(3));
    assert_eq!(announced(&mut index), ["NotRoutable"]);
    index.put_service(&key, other(&json!({"ebb.dev/bypass": "true"})));
    assert_eq!(facts_of_revision(&mut index).floor, PodCount::ZERO);
}

#[test]
fn a_service_that_names_a_workload_that_is_not_there_says_so_until_it_is() {
    let mut index = index();
    index.listed();
    put_service(&mut index, json!({}));
    assert_eq!(announced(&mut index), ["NoWorkload"]);
    put_workload(&mut index, 1, &json!({}));
    assert!(index.notices.is_empty());
}
