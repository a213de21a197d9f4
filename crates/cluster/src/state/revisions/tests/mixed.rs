//! Revisions of other controllers, Deployments that change hands, and activators that come and go.

use super::*;

pub(super) fn facts_of(place: &Place, name: &str) -> Option<std::sync::Arc<orchestration::RevisionFacts>> {
    place.facts.iter().rev().find_map(|fact| {
        let PlatformFact::RevisionChanged(facts) = fact else { return None };
        (facts.name.name() == name).then(|| std::sync::Arc::clone(facts))
    })
}

/// Contract §2.1, §5.5: activators serve it, and every object of it is another controller's.
#[test]
fn must_only_serve_a_revision_of_another_class() {
    let mut place = Place::new();
    place.autoscaler["metadata"]["annotations"]["autoscaling.knative.dev/class"] =
        json!("hpa.autoscaling.knative.dev");
    place.apply(1);
    let mut place = place.listed();
    let facts = facts_of(&place, "hello-00001").expect("activators have to know it");
    assert!(!facts.may_write, "its count is not ours");
    place.pod("hello-00001-deployment-a", "10.0.0.1", "True");
    place.decide(Some(3), 2);
    let route = place.route(Routing::Direct);
    assert_eq!(place.outcome(route), Some(&OrderOutcome::Done), "the route is as its own controller says");
    place.pass(60);
    assert_eq!((place.written(), place.statuses), (Vec::<String>::new(), 0));
}

/// The class may be newer than the order.
#[test]
fn a_count_that_was_ordered_before_the_class_changed_is_not_written() {
    let mut place = serving();
    place.autoscaler["metadata"]["annotations"]["autoscaling.knative.dev/class"] =
        json!("hpa.autoscaling.knative.dev");
    place.show_autoscaler();
    let order = place.scale(1, 3);
    assert_eq!(place.outcome(order), Some(&OrderOutcome::Conflict { found: PodCount::ONE }));
    assert_eq!(place.replicas, 1);
}

#[test]
fn a_deployment_whose_labels_name_another_revision_leaves_the_former_one_without_a_workload() {
    let mut place = serving();
    place.facts.clear();
    let mut object = deployment(1, "900");
    object["metadata"]["labels"]["serving.knative.dev/revision"] = json!("hello-00002");
    let moved = revision_deployment(&read(&object)).map(Box::new);
    place.show(News::Knative(KnativeNews::Deployment(Change::Put(key("hello-00001-deployment"), moved))));
    place.settle();
    let is_gone =
        |fact: &PlatformFact| matches!(fact, PlatformFact::RevisionRemoved(name) if *name == revision());
    assert!(place.facts.iter().any(is_gone), "{:?}", place.facts);
}

fn activator(name: &str, address: &str, is_ending: bool) -> (ObjectKey, pod::PodObject) {
    let mut object = pod_object(name, "knative-serving", &json!({"app": "activator"}), address, "True");
    if is_ending {
        object["metadata"]["deletionTimestamp"] = json!("2026-11-22T10:02:00Z");
    }
    let key = ObjectKey { namespace: "knative-serving".to_owned(), name: name.to_owned() };
    (key, pod::read(&read(&object)))
}

/// Contract §5.7: the word that lets an activator go needs slices that do not name it.
#[test]
fn a_route_without_an_activator_is_in_force_once_clients_do_not_get_its_address() {
    let mut place = serving();
    let (second, shown) = activator("activator-2", "10.1.0.2", false);
    place.show(News::Activator(Change::Put(second, shown)));
    place.controller(&["10.1.0.1", "10.1.0.2"], "True");
    let with = |names: &[&str]| Order::Route {
        revision: revision(),
        routing: Routing::ThroughActivator,
        activators: names.iter().map(|name| ReplicaName::new(name)).collect(),
    };
    let both = place.order(with(&["activator-1", "activator-2"]));
    assert_eq!(place.outcome(both), Some(&OrderOutcome::Done));
    let one = place.order(with(&["activator-1"]));
    assert_eq!(place.outcome(one), None, "the slices name the other one still");
    place.controller(&["10.1.0.1"], "True");
    assert_eq!(place.outcome(one), Some(&OrderOutcome::Done));
}

#[test]
fn an_activator_that_ends_is_no_part_of_a_route_that_names_none() {
    let mut place = serving();
    let (second, shown) = activator("activator-2", "10.1.0.2", true);
    place.show(News::Activator(Change::Put(second, shown)));
    place.controller(&["10.1.0.1", "10.1.0.2"], "True");
    let route = place.route(Routing::ThroughActivator);
    assert_eq!(place.outcome(route), None);
    place.controller(&["10.1.0.1"], "True");
    assert_eq!(place.outcome(route), Some(&OrderOutcome::Done));
}

/// Its pod keeps the labels of Knative's activators, so the program is known by its environment.
#[test]
fn an_activator_of_ebbs_that_ended_because_of_a_bug_says_what_failed() {
    let mut place = serving();
    let (activator, labels) = ("activator-2", json!({"app": "activator"}));
    let mut object = pod_object(activator, "knative-serving", &labels, "10.1.0.2", "True");
    let environment = json!([{"name": "EBB_PROFILE", "value": "knative"}]);
    object["spec"]["containers"] = json!([{"name": "activator", "env": environment}]);
    object["status"]["containerStatuses"] = json!([{
        "name": "activator", "state": {"running": {}}, "ready": true, "restartCount": 1, "image": "", "imageID": "",
        "lastState": {"terminated": {"exitCode": 70, "message": "error: the link failed (a sum)\n"}},
    }]);
    let key = ObjectKey { namespace: "knative-serving".to_owned(), name: activator.to_owned() };
    let problems = |place: &Place| {
        let told = place.facts.iter().rev().find_map(|fact| {
            let PlatformFact::ProblemsChanged { about, problems } = fact else { return None };
            let orchestration::Subject::Pod(pod) = about else { return None };
            (pod.as_str() == "knative-serving/activator-2").then(|| problems.join("; "))
        });
        told.unwrap_or_default()
    };
    place.show(News::Activator(Change::Put(key.clone(), pod::read(&read(&object)))));
    place.settle();
    assert!(problems(&place).contains("exit code 70: the link failed"), "{}", problems(&place));
    place.show(News::Activator(Change::Gone(key)));
    place.settle();
    assert_eq!(problems(&place), "");
}

/// Contract §7.2: with `target-burst-capacity` −1 activators hold every request.
#[test]
fn pods_behind_activators_for_good_are_not_asked_for_their_load() {
    let mut place = serving();
    let channel = |place: &Place| {
        place.facts.iter().rev().find_map(|fact| {
            let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
            pods.first()?.link.map(|link| link.channel)
        })
    };
    assert_eq!(channel(&place), Some(vocabulary::LinkChannel::Scraped));
    place.autoscaler["metadata"]["annotations"]["autoscaling.knative.dev/target-burst-capacity"] =
        json!("-1");
    place.show_autoscaler();
    place.settle();
    assert_eq!(channel(&place), Some(vocabulary::LinkChannel::Unasked));
}

/// Contract §6.5, §7.2: a queue-proxy of ebb's that knows the authority takes a link, unless the app has its
/// port; every other pod is asked for its load.
#[test]
fn only_a_pod_whose_queue_proxy_knows_the_authority_takes_a_link() {
    let mut place = serving();
    let ca = json!({"name": "ROOT_CA", "value": "-----BEGIN CERTIFICATE-----"});
    let empty = json!({"name": "ROOT_CA", "value": ""});
    let own_port = json!({"name": "USER_PORT", "value": "8024"});
    for (name, environment, channel, port) in [
        ("b", json!([ca]), vocabulary::LinkChannel::TlsOfPod, 8024),
        ("c", json!([empty]), vocabulary::LinkChannel::Scraped, 9090),
        ("d", json!([ca, own_port]), vocabulary::LinkChannel::Scraped, 9090),
    ] {
        let mut pod = pod_object(name, "default", &labels(), "10.0.0.2", "True");
        pod["spec"]["containers"][0]["env"] = environment;
        place.show(News::Pod(Change::Put(key(name), ShownPod::read(&read(&pod)))));
        place.settle();
        let link = place.facts.iter().rev().find_map(|fact| {
            let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
            pods.iter().find(|pod| pod.name.as_str() == format!("default/{name}"))?.link
        });
        let link = link.expect("its load is asked for");
        assert_eq!((link.channel, link.socket.port()), (channel, port), "{name}");
    }
}

/// Contract §5.4, §6.3: an activator of Knative's shows no key, so its word counts only without any.
#[test]
fn hop_keys_are_named_once_no_activator_is_knatives() {
    let mut place = serving();
    let keys = |place: &Place| facts_of(place, "hello-00001").expect("it is there").hop_keys.len();
    assert_eq!(keys(&place), 0);
    let mut object = pod_object("activator-1", "knative-serving", &json!({}), "10.1.0.1", "True");
    let ports = json!([{"name": "link", "containerPort": 8024}]);
    object["spec"]["containers"] = json!([{"name": "activator", "ports": ports}]);
    let (name, _) = activator("activator-1", "10.1.0.1", false);
    place.show(News::Activator(Change::Put(name, pod::read(&read(&object)))));
    place.settle();
    assert!(keys(&place) > 0);
    let (second, knatives) = activator("activator-2", "10.1.0.2", false);
    place.show(News::Activator(Change::Put(second, knatives)));
    place.settle();
    assert_eq!(keys(&place), 0);
}

/// Contract §2.2, §2.3: the status is the memory of the autoscaler, and its times move with its words alone.
#[test]
fn must_move_no_time_of_a_condition_at_a_takeover() {
    let before = serving();
    let mut place = Place::new();
    (place.autoscaler, place.service) = (before.autoscaler.clone(), before.service.clone());
    place.second = before.second + 300;
    place.pod("hello-00001-deployment-a", "10.0.0.1", "True");
    place.show_service();
    place.apply(1);
    let mut place = place.listed();
    place.controller(&["10.1.0.1"], "True");
    place.pass(5);
    place.decide(Some(1), 3);
    place.route(Routing::ThroughActivator);
    place.pass(60);
    assert_eq!(place.autoscaler["status"], before.autoscaler["status"]);
    assert_eq!((place.statuses, place.written()), (0, Vec::<String>::new()));
}

/// Events of a revision, by contract §4.8.
#[test]
fn an_event_of_a_revision_stands_on_its_autoscaler_and_on_its_deployment() {
    let place = serving();
    let objects = place.state.index.event_objects(&orchestration::Subject::Revision(revision()));
    let objects: Vec<(&str, &str, &str)> =
        objects.iter().map(|of| (of.kind.as_str(), of.name.as_str(), of.uid.as_str())).collect();
    assert_eq!(
        objects,
        [("PodAutoscaler", "hello-00001", "pa1"), ("Deployment", "hello-00001-deployment", "d1")]
    );
}

/// People choose Knative's end of late responses.
pub(super) fn append_late(place: &mut Place) {
    let data = std::collections::BTreeMap::from([("late-timeout".to_owned(), "append".to_owned())]);
    let key = ObjectKey { namespace: "knative-serving".to_owned(), name: "config-autoscaler".to_owned() };
    place.show(News::Config(Change::Put(key, data)));
    place.settle();
}

/// Knative's end of late responses is a choice that people have in this place alone.
#[test]
fn late_timeout_of_config_autoscaler_reaches_every_revision() {
    let mut place = serving();
    place.facts.clear();
    append_late(&mut place);
    let facts = facts_of(&place, "hello-00001").expect("its late responses end otherwise");
    assert_eq!(facts.timeouts.late, vocabulary::LateTimeout::Append);
    assert!(facts.timeouts.request.is_some(), "the limits stay");
}
