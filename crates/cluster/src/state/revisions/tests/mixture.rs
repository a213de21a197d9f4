//! Programs of Knative's and of ebb's side by side (contract §7.1).

use super::*;

fn key_of(name: &str) -> ObjectKey {
    ObjectKey { namespace: "knative-serving".to_owned(), name: name.to_owned() }
}

/// A pod of a program with ports of these names.
fn program(name: &str, app: &str, address: &str, ports: &[&str]) -> Box<pod::PodObject> {
    let mut object = pod_object(name, "knative-serving", &json!({"app": app}), address, "True");
    let ports: Vec<Value> = ports.iter().map(|port| json!({"name": port, "containerPort": 8024})).collect();
    object["spec"]["containers"] = json!([{"name": app, "ports": ports}]);
    Box::new(pod::read(&read(&object)))
}

fn show_autoscaler(place: &mut Place, ports: &[&str]) {
    let pod = program("autoscaler-1", "autoscaler", "10.3.0.1", ports);
    place.show(News::Knative(KnativeNews::AutoscalerPod(Change::Put(key_of("autoscaler-1"), pod))));
    place.settle();
}

fn show_activator(place: &mut Place, ports: &[&str]) {
    let pod = program("activator-1", "activator", "10.1.0.1", ports);
    place.show(News::Activator(Change::Put(key_of("activator-1"), *pod)));
    place.settle();
}

/// What people are told of the activator, as it was said last.
fn said(place: &Place) -> Option<String> {
    place.facts.iter().rev().find_map(|fact| {
        let PlatformFact::ProblemsChanged { about, problems } = fact else { return None };
        matches!(about, orchestration::Subject::Activator(_)).then(|| problems.join(" "))
    })
}

#[test]
fn must_tell_of_an_autoscaler_of_knatives_beside_activators_of_ebbs() {
    let mut place = serving();
    show_autoscaler(&mut place, &["websocket", "metrics"]);
    assert_eq!(said(&place), None, "its activators are Knative's, too");
    show_activator(&mut place, &["link"]);
    let text = said(&place).expect("the activator is ebb's now");
    assert!(text.contains("knative-serving/autoscaler-1"), "{text}");
    let about = orchestration::Subject::Activator(ReplicaName::new("activator-1"));
    let objects = place.state.index.event_objects(&about);
    let objects: Vec<(&str, &str)> =
        objects.iter().map(|object| (object.kind.as_str(), object.name.as_str())).collect();
    assert_eq!(objects, [("Pod", "activator-1")], "the Event stands there");
    show_autoscaler(&mut place, &["websocket", "api"]);
    assert_eq!(said(&place).as_deref(), Some(""), "the autoscaler is ebb's again");
}

#[test]
fn an_activator_that_is_gone_takes_its_notice_along() {
    let mut place = serving();
    show_activator(&mut place, &["link"]);
    show_autoscaler(&mut place, &[]);
    assert!(said(&place).is_some_and(|text| !text.is_empty()));
    place.show(News::Activator(Change::Gone(key_of("activator-1"))));
    place.settle();
    assert_eq!(said(&place).as_deref(), Some(""));
}
