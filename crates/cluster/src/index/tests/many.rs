//! Large clusters: how much is looked at for one change. What is counted are the candidates, of which each
//! is looked at and no other.

use super::*;
use crate::resources::pod::tests::{pod, running};
use crate::resources::selector::Selector;

const WORKLOADS: usize = 2_000;
const PODS_EACH: usize = 5;

fn revision(number: usize) -> RevisionName {
    RevisionName::new("default", "deployment", &format!("app-{number}")).expect("a name")
}

/// All of one namespace, and of one team.
fn many() -> Index {
    let mut index = index();
    let labels = |number: usize| {
        let labels = [("team", "shop".to_owned()), ("app", format!("app-{number}"))];
        labels.map(|(key, value)| (key.to_owned(), value))
    };
    let like_all = workload(1, &json!({}));
    let like_each = pod("a", json!({}), &running("10.0.0.1", "True"));
    for number in 0..WORKLOADS {
        let mut shown = like_all.clone();
        shown.record.revision = revision(number);
        shown.record.uid = format!("uid-{number}");
        shown.record.selector = Selector::of_labels(labels(number).into());
        index.put_workload(shown, RevisionOrigin::Found);
        for each in 0..PODS_EACH {
            let mut pod = like_each.clone();
            pod.name = format!("app-{number}-{each}");
            pod.uid = format!("uid-{number}-{each}");
            pod.labels.extend(labels(number));
            pod.labels.insert("each".to_owned(), each.to_string());
            index.put_pod(pod, NOW);
        }
    }
    index
}

#[test]
fn a_change_of_one_pod_or_workload_is_no_look_at_all_others() {
    let mut index = many();
    for number in [0, 1, 1_234, WORKLOADS - 1] {
        let of = revision(number);
        let pods: Vec<_> = index.pods_of(&of).map(|pod| pod.record.clone()).collect();
        assert_eq!(pods.len(), PODS_EACH);
        assert_eq!(index.workloads.owners_of(&pods[0]), std::slice::from_ref(&of));
        // The first of a team is known by the team's label, as nobody could know that more would come.
        assert!(index.workloads.candidates(&pods[0]).len() <= 2);
        let selector = index.record_of(&of).expect("it is there").selector.clone();
        assert_eq!(index.pods.selected("default", &selector).len(), PODS_EACH);
    }
    // What is gone or has other labels is found no more.
    let (former, gone) = (revision(7), revision(8));
    let mut moved = index.pod_record(&PodName::new("default/app-7-0")).expect("it is there").clone();
    moved.labels.insert("app".to_owned(), "app-9".to_owned());
    index.put_pod(moved, NOW);
    index.remove_pod(&PodName::new("default/app-7-1"));
    let count = |index: &Index, of: &RevisionName| index.pods_of(of).count();
    assert_eq!((count(&index, &former), count(&index, &revision(9))), (PODS_EACH - 2, PODS_EACH + 1));
    index.remove_workload(&gone);
    let orphan = index.pod_record(&PodName::new("default/app-8-0")).expect("it is there").clone();
    assert_eq!((count(&index, &gone), index.workloads.owners_of(&orphan)), (0, Vec::new()));
}

#[test]
fn a_selector_with_several_values_finds_the_pods_of_its_namespace() {
    let mut index = index();
    put_service(&mut index, json!({}));
    let mut shown = workload(1, &json!({}));
    shown.record.selector = Selector::parse("app in (hello,world)").expect("a selector");
    index.put_workload(shown, RevisionOrigin::Found);
    put_pod(&mut index, "a", json!({}), "10.0.0.1", "True");
    put_pod(&mut index, "b", json!({"namespace": "default-2"}), "10.0.0.2", "True");
    assert_eq!(index.revision_of_pod(&PodName::new("default/a")), Some(name()));
    assert_eq!(index.pods_of(&name()).count(), 1);
}
