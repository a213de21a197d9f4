//! Which pods are told of an adoption: those that may have clients from before it.

use jiff::Timestamp as WallTime;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use vocabulary::AdoptionId;

use super::*;

const CONTROLLER: &str = "endpointslice-controller.k8s.io";

fn wall(second: i64) -> WallTime {
    WallTime::from_second(1_800_000_000 + second).expect("a time of our days")
}

fn text(second: i64) -> String {
    wall(second).to_string()
}

fn id(second: i64) -> AdoptionId {
    AdoptionId(u64::try_from(wall(second).as_second()).expect("after 1970"))
}

/// A workload with a pod made at second 10; the Service that is to be made was made at second 0.
fn with_pod() -> Index {
    let mut index = index();
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({"creationTimestamp": text(10)}), "10.0.0.1", "True");
    put_activator(&mut index);
    index
}

fn made_at(index: &mut Index, second: i64) {
    index.services.record_mut(&service_key()).expect("it is there").created = Some(wall(second));
}

/// Slices are written, new ones at this second.
fn write_at(index: &mut Index, second: i64) {
    for change in index.slice_changes(&name()) {
        match change {
            SliceChange::Create(mut slice) => {
                slice.metadata.creation_timestamp = Some(Time(wall(second)));
                index.put_slice(slice);
            }
            SliceChange::Replace(slice) => index.put_slice(slice),
            SliceChange::Delete(slice) => index.remove_slice(&ObjectKey::of(&slice.metadata)),
        }
    }
}

fn put_leftover(index: &mut Index) -> ObjectKey {
    let labels =
        json!({"kubernetes.io/service-name": "hello", "endpointslice.kubernetes.io/managed-by": CONTROLLER});
    let metadata = json!({"name": "hello-k", "namespace": "default", "uid": "k1", "resourceVersion": "7", "labels": labels});
    let endpoints = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "a"}}]);
    let slice = json!({"addressType": "IPv4", "metadata": metadata, "endpoints": endpoints});
    let slice = other_slice::read(&serde_json::from_value(slice).expect("an EndpointSlice"));
    let slice = slice.expect("it is of a Service");
    let key = slice.key.clone();
    index.put_other_slice(slice);
    key
}

/// What each pod is told of adoptions; nothing if pods are told nothing now.
fn told_pods(index: &mut Index) -> Vec<(String, Option<AdoptionId>)> {
    let told = facts(index).into_iter().rev().find_map(|fact| {
        let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
        Some(pods.into_iter().map(|pod| (pod.name.to_string(), pod.adoption)).collect())
    });
    told.unwrap_or_default()
}

fn a(adoption: Option<AdoptionId>) -> Vec<(String, Option<AdoptionId>)> {
    vec![("default/a".to_owned(), adoption)]
}

/// Served by Kubernetes, and then by us, as `ebb adopt` does it.
fn adopted_at(second: i64) -> Index {
    let mut index = with_pod();
    put_annotated(&mut index, &json!({}), json!({"selector": {"app": "hello"}}));
    made_at(&mut index, 0);
    let leftover = put_leftover(&mut index);
    index.listed();
    put_service(&mut index, json!({"selector": {"app": "hello"}}));
    assert_eq!(told_pods(&mut index), a(None), "it is prepared");
    put_service(&mut index, json!({}));
    write_at(&mut index, second);
    assert_ne!(told_pods(&mut index), a(Some(id(second))), "Kubernetes' slice still stands");
    index.remove_other_slice(&leftover);
    index
}

#[test]
fn pods_are_told_of_an_adoption_once_kubernetes_serves_the_service_no_more() {
    let mut index = adopted_at(3);
    // Made after the first slice, it had no clients by the Service.
    assert_eq!(told_pods(&mut index), a(None));
    let mut index = adopted_at(20);
    assert_eq!(told_pods(&mut index), a(Some(id(20))));
    put_pod(&mut index, "b", json!({"creationTimestamp": text(21)}), "10.0.0.2", "True");
    let told = told_pods(&mut index);
    assert_eq!(told.last(), Some(&("default/b".to_owned(), None)), "no client of before can be there");
}

#[test]
fn later_slices_of_ours_are_no_later_adoption() {
    let mut index = adopted_at(20);
    index.set_route(&name(), RouteInForce { routing: Routing::ThroughActivator, activators: Vec::new() });
    write_at(&mut index, 500);
    let slices: Vec<ObjectKey> = index.services.slices().map(|(key, _)| key.clone()).collect();
    let mut later = index.services.slice(&slices[0]).expect("it is there").object.clone();
    later.metadata.name = Some("hello-ebb-ipv4-9".to_owned());
    later.metadata.creation_timestamp = Some(Time(wall(600)));
    index.put_slice(later);
    for slice in &slices {
        index.remove_slice(slice);
    }
    index.resend_everything();
    assert_eq!(told_pods(&mut index), a(Some(id(20))));
}

#[test]
fn a_service_that_is_given_back_and_adopted_again_is_adopted_anew() {
    let mut index = adopted_at(20);
    put_service(&mut index, json!({"selector": {"app": "hello"}}));
    told_pods(&mut index);
    let leftover = put_leftover(&mut index);
    write_at(&mut index, 30);
    let slices: Vec<ObjectKey> = index.services.slices().map(|(key, _)| key.clone()).collect();
    for slice in &slices {
        index.remove_slice(slice);
    }
    put_service(&mut index, json!({}));
    write_at(&mut index, 90);
    index.remove_other_slice(&leftover);
    index.resend_everything();
    assert_eq!(told_pods(&mut index), a(Some(id(90))));
}

#[test]
fn a_service_that_was_ours_from_the_start_was_never_adopted() {
    for (service, slice, expected) in [(15, 16, None), (0, 16, Some(id(16)))] {
        let mut index = with_pod();
        put_service(&mut index, json!({}));
        made_at(&mut index, service);
        index.listed();
        index.set_route(&name(), RouteInForce { routing: Routing::Direct, activators: Vec::new() });
        write_at(&mut index, slice);
        index.resend_everything();
        assert_eq!(told_pods(&mut index), a(expected), "made at {service}, served at {slice}");
    }
}
