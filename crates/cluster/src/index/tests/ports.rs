//! Activators' ports: none left, and where they lead after a change of the Service.

use super::*;

fn problems(index: &mut Index) -> Vec<Notice> {
    index.next_fact(NOW);
    index.notices.of(&service_subject()).to_vec()
}

fn service_subject() -> Subject {
    Subject::Revision(RevisionName::new("default", "service", "hello").expect("a name"))
}

#[test]
fn a_service_without_a_free_port_is_direct_until_one_is_free() {
    let mut index = Index::new(keys(), 1);
    // What is given and stands on no slice rests for an hour.
    let notes = LeaseNotes::from([("ebb.dev/ports-given".to_owned(), "10000-29999".to_owned())]);
    index.take_over_ports(Bucket(0), &notes, &[], WALL);
    index.kind_listed(&WorkloadKind::Deployment);
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    let told: Vec<_> = problems(&mut index).into_iter().map(|notice| notice.reason).collect();
    assert_eq!(told, ["NoPortLeft"]);
    assert!(index.stays_direct(&name()));

    let due = index.next_port_deadline().expect("one comes free");
    assert_eq!(due, NOW + Duration::from_hours(1));
    index.settle_ports(NOW + Duration::from_secs(3599), WallSeconds(WALL.0 + 3599));
    assert!(index.stays_direct(&name()));
    index.settle_ports(due, WallSeconds(WALL.0 + 3600));
    for (bucket, notes) in index.port_notes() {
        index.ports_noted(bucket, &notes);
    }
    assert!(!index.stays_direct(&name()));
    assert_eq!(problems(&mut index), []);
    assert_eq!(entrances(&facts(&mut index)), [Entrance::Port(10_000)]);
    assert_eq!(index.next_port_deadline(), None, "no Service waits any more");
}

#[test]
fn a_port_that_leads_elsewhere_keeps_its_entrance_and_its_pods_are_told_anew() {
    let exits = |index: &mut Index| {
        let pods = facts(index).into_iter().find_map(|fact| {
            let PlatformFact::PodsChanged { pods, .. } = fact else { return None };
            Some(pods[0].exits.clone())
        });
        pods.expect("they are told")
    };
    let leading_to = |number: u16, target: &Value| json!({"ports": [{"name": "http", "port": number, "targetPort": target}]});
    let mut index = index();
    put_service(&mut index, leading_to(80, &json!(8080)));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    assert_eq!(exits(&mut index), PodExits::default());
    put_service(&mut index, leading_to(80, &json!(9090)));
    assert_eq!(exits(&mut index), PodExits([(10_000, 8100)].into()));
    put_service(&mut index, leading_to(81, &json!("http")));
    assert_eq!(exits(&mut index), PodExits::default());
    put_service(&mut index, leading_to(81, &json!("grpc")));
    assert_eq!(exits(&mut index), PodExits([(10_000, 8100)].into()));
}

#[test]
fn an_activator_that_is_gone_at_once_leaves_its_slices_at_once() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 0, &json!({}));
    put_activator(&mut index);
    index.set_route(&name(), route(Routing::ThroughActivator));
    write(&mut index, "1");
    index.take_unrouted();
    assert_eq!(index.slice_changes(&name()), []);
    index.remove_activator(&ReplicaName::new("activator-1"), NOW);
    assert_eq!(index.take_unrouted(), [name()].into());
    assert_eq!(index.slice_changes(&name()).len(), 1);
}

#[test]
fn a_pod_without_a_queue_proxy_stays_a_problem_when_a_watch_shows_it_once_more() {
    let mut index = index();
    put_service(&mut index, json!({}));
    put_workload(&mut index, 1, &json!({}));
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    let mut bare = index.pod_record(&PodName::new("default/a")).expect("it is there").clone();
    bare.queue_proxy = None;
    for time in ["at first", "once more"] {
        index.put_pod(bare.clone(), NOW);
        let reasons: Vec<_> = problems(&mut index).into_iter().map(|notice| notice.reason).collect();
        assert_eq!(reasons, ["NotInjected"], "{time}");
    }
}
