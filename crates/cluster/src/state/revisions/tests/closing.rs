//! Revisions whose `PodAutoscaler` or Deployment is gone before their pods (contract §1.2), and the word that
//! no client is told of a pod any more.

use super::mixed::{append_late, facts_of};
use super::*;

/// A pod with a queue-proxy of ebb's that takes a link; `grace` is the time of one that was deleted.
fn linked_pod(grace: Option<u64>) -> Value {
    let ca = json!({"name": "ROOT_CA", "value": "-----BEGIN CERTIFICATE-----"});
    let mut pod = pod_object("b", "default", &labels(), "10.0.0.2", "True");
    pod["spec"]["containers"][0]["env"] = json!([ca]);
    if let Some(grace) = grace {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-22T10:02:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    }
    pod
}

fn show_linked_pod(place: &mut Place, grace: Option<u64>) {
    let pod = ShownPod::read(&read(&linked_pod(grace)));
    place.show(News::Pod(Change::Put(key("b"), pod)));
    place.settle();
}

fn is_removed(place: &Place) -> bool {
    place.facts.iter().any(|fact| matches!(fact, PlatformFact::RevisionRemoved(_)))
}

/// The pod with a link, as the control loop was told of it last.
fn linked(place: &Place) -> orchestration::PodFacts {
    let pods = place.facts.iter().rev().find_map(|fact| {
        let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
        Some(pods.clone())
    });
    let mut pods = pods.expect("the pods are told").into_iter();
    pods.find(|pod| pod.name.as_str() == "default/b").expect("it has not ended")
}

fn show_without_autoscaler(place: &mut Place) {
    place.show(News::Knative(KnativeNews::PodAutoscaler(Change::Gone(key("hello-00001")))));
    place.settle();
}

fn show_without_deployment(place: &mut Place) {
    place.show(News::Knative(KnativeNews::Deployment(Change::Gone(key("hello-00001-deployment")))));
    place.settle();
}

/// Contract §1.2: the `PodAutoscaler` may be gone minutes before the last pod, which has to hear that it
/// leaves, and that no client is told of it any more.
#[test]
fn must_keep_the_link_to_a_pod_of_a_vanished_revision_until_the_pod_has_ended() {
    let mut place = serving();
    show_linked_pod(&mut place, None);
    place.facts.clear();
    show_without_autoscaler(&mut place);
    let facts = facts_of(&place, "hello-00001").expect("its pods are there");
    assert_eq!((facts.entrances.len(), facts.may_write), (0, false), "its requests are refused");
    let route = place.route(Routing::Direct);
    assert_eq!(place.outcome(route), Some(&OrderOutcome::Done), "no order waits for what nobody writes");
    place.show(News::Knative(KnativeNews::Deployment(Change::Gone(key("hello-00001-deployment")))));
    show_linked_pod(&mut place, Some(300));
    let leaving = linked(&place);
    assert!(leaving.leaving && leaving.ends_in.is_some(), "it hears of its end: {leaving:?}");
    assert_eq!(leaving.link.map(|link| link.channel), Some(vocabulary::LinkChannel::TlsOfPod));
    assert_eq!((place.written(), is_removed(&place)), (Vec::<String>::new(), false));
    place.show(News::Pod(Change::Gone(key("b"))));
    place.settle();
    assert!(is_removed(&place), "pods without a link hear nothing, and none is awaited");
}

/// Kubernetes deletes what a revision owns in any order.
#[test]
fn must_keep_the_link_as_well_where_the_deployment_is_gone_first() {
    let mut place = serving();
    show_linked_pod(&mut place, None);
    place.facts.clear();
    show_without_deployment(&mut place);
    assert!(!is_removed(&place), "the pods are there, and the Deployment may come again");
    show_without_autoscaler(&mut place);
    let facts = facts_of(&place, "hello-00001").expect("its pods are there");
    assert_eq!((facts.entrances.len(), facts.may_write), (0, false), "its requests are refused");
    show_linked_pod(&mut place, Some(300));
    let leaving = linked(&place);
    assert!(leaving.leaving && leaving.ends_in.is_some(), "it hears of its end: {leaving:?}");
    assert!(!is_removed(&place));
    place.show(News::Pod(Change::Gone(key("b"))));
    place.settle();
    assert!(is_removed(&place), "none is awaited");
}

/// Knative's controller makes a Deployment again that a person deleted.
#[test]
fn a_deployment_that_is_made_again_finds_its_revision_in_service() {
    let mut place = serving();
    show_linked_pod(&mut place, None);
    place.facts.clear();
    show_without_deployment(&mut place);
    show_linked_pod(&mut place, Some(300));
    assert!(linked(&place).leaving, "the pods of the former one are told of");
    place.show_deployment();
    place.settle();
    let facts = facts_of(&place, "hello-00001").expect("its objects are there");
    assert!(!facts.entrances.is_empty() && facts.may_write && !is_removed(&place), "{facts:?}");
}

/// A response may be late while its pod leaves.
#[test]
fn a_revision_that_is_gone_before_its_pods_keeps_the_end_of_late_responses() {
    let mut place = serving();
    show_linked_pod(&mut place, None);
    append_late(&mut place);
    place.facts.clear();
    show_without_autoscaler(&mut place);
    let facts = facts_of(&place, "hello-00001").expect("its pods are there");
    assert_eq!(facts.timeouts.late, vocabulary::LateTimeout::Append);
}

/// Contract §1.2, §4.5: in mode Serve clients go by slices that the controller and Kubernetes write. That no
/// client is told of a pod any more is not said while one of them names it.
#[test]
fn must_not_release_a_pod_whose_address_clients_still_get() {
    let mut place = serving();
    place.route(Routing::Direct);
    let pod = vocabulary::PodName::new("default/hello-00001-deployment-a");
    for (named, left, populated) in
        [(&["10.0.0.1", "10.0.0.2"][..], "10.0.0.2", "False"), (&["10.0.0.1"][..], "10.1.0.1", "True")]
    {
        place.controller(named, "False");
        let proof = orchestration::ReleaseProof::Acknowledged;
        let release = place.order(Order::ReleasePod { pod: pod.clone(), proof });
        assert_eq!(place.outcome(release), None, "the slices name it still: {named:?}");
        place.controller(&[left], populated);
        assert_eq!(place.outcome(release), Some(&OrderOutcome::Done), "they name {left} alone");
    }
}
