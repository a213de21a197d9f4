use std::collections::BTreeMap;
use std::time::Duration;

use scaling::{RevisionOrigin, RevisionSettings};
use vocabulary::{Concurrency, Epoch, RequestTimeouts, RevisionName};

use super::*;

fn revision() -> RevisionFacts {
    RevisionFacts {
        name: RevisionName::parse("default/service/hello").unwrap(),
        settings: RevisionSettings::default(),
        container_concurrency: 10,
        timeouts: RequestTimeouts::default(),
        progress_deadline: Duration::from_secs(600),
        hosts: Vec::new(),
        url: None,
        hop_keys: Vec::new(),
        wanted: PodCount::ONE,
        origin: RevisionOrigin::Found,
        template: "hello-00001".to_owned(),
    }
}

fn pod(name: &str) -> PodFacts {
    PodFacts {
        name: PodName::new(name),
        phase: PodPhase::Running,
        leaving: false,
        platform_ready: None,
        requests: Some(([127, 0, 0, 1], 8012).into()),
        link: None,
        outdated: false,
        trouble: None,
        hold: None,
        details: BTreeMap::new(),
    }
}

fn heard(state: PodState) -> Heard {
    Heard { state: Some(state), is_linked: true, ..Heard::default() }
}

fn loaded(concurrency: f64) -> Heard {
    let load = Load { concurrency: Concurrency::new(concurrency).unwrap(), ..Load::default() };
    Heard { load, ..heard(PodState::Ready) }
}

fn assign(pods: &[(PodFacts, Heard)]) -> Assignment {
    assignment(
        &revision(),
        PodCount::ONE,
        Routing::ThroughActivator,
        pods.iter().map(|(pod, heard)| (pod, heard)),
    )
}

/// Who decides whether a pod may take requests.
#[test]
fn a_pods_state_is_its_way_out_then_its_word_then_the_platforms() {
    let unlinked = |state| Heard { is_linked: false, ..heard(state) };
    let with = |platform_ready| PodFacts { platform_ready, ..pod("p") };
    let rows = [
        ("says ready", pod("p"), heard(PodState::Ready), PodState::Ready),
        ("says unready, platform says ready", with(Some(true)), heard(PodState::Unready), PodState::Unready),
        ("link lost, platform silent", pod("p"), unlinked(PodState::Ready), PodState::Ready),
        ("link lost, platform says unready", with(Some(false)), unlinked(PodState::Ready), PodState::Unready),
        ("never heard, platform says ready", with(Some(true)), Heard::default(), PodState::Ready),
        ("never heard, platform silent", pod("p"), Heard::default(), PodState::Unheard),
        ("leaving", PodFacts { leaving: true, ..pod("p") }, heard(PodState::Ready), PodState::Draining),
        (
            "terminating",
            PodFacts { phase: PodPhase::Terminating, ..pod("p") },
            heard(PodState::Ready),
            PodState::Draining,
        ),
    ];
    for (row, facts, heard, expected) in rows {
        assert_eq!(pod_state(&facts, &heard), expected, "{row}");
    }
}

#[test]
fn only_pods_with_an_address_are_assigned_with_their_own_limit() {
    let nowhere = PodFacts { requests: None, ..pod("a") };
    let older = Heard { container_concurrency: Some(3), ..heard(PodState::Ready) };
    let assigned =
        assign(&[(nowhere, heard(PodState::Ready)), (pod("b"), older), (pod("c"), Heard::default())]);
    let slots: Vec<_> = assigned.pods.iter().map(|pod| (pod.pod.as_str(), pod.slots)).collect();
    assert_eq!(slots, [("b", 3), ("c", 10)]);
}

#[test]
fn a_version_is_new_only_if_something_changed_and_urgent_only_if_usable_pods_did() {
    let mut versions = Versions::new(4);
    let (first, urgency) = revise(None, assign(&[]), &mut versions).unwrap();
    assert_eq!((first.version, urgency), (Version { epoch: Epoch(4), counter: 1 }, Urgency::AtOnce));
    assert!(revise(Some(&first), assign(&[]), &mut versions).is_none());
    let (starting, urgency) =
        revise(Some(&first), assign(&[(pod("a"), heard(PodState::Starting))]), &mut versions).unwrap();
    assert_eq!(urgency, Urgency::Soon);
    let ready = assign(&[(pod("a"), heard(PodState::Ready))]);
    let (ready, urgency) = revise(Some(&starting), ready, &mut versions).unwrap();
    assert_eq!(urgency, Urgency::AtOnce);
    let more = assign(&[(pod("a"), heard(PodState::Ready)), (pod("b"), Heard::default())]);
    let (more, urgency) = revise(Some(&ready), more, &mut versions).unwrap();
    assert_eq!(urgency, Urgency::Soon);
    let leaving = PodFacts { leaving: true, ..pod("a") };
    let (gone, urgency) = revise(
        Some(&more),
        assign(&[(leaving, heard(PodState::Ready)), (pod("b"), Heard::default())]),
        &mut versions,
    )
    .unwrap();
    assert_eq!((urgency, gone.version), (Urgency::AtOnce, Version { epoch: Epoch(4), counter: 5 }));
    let direct = Assignment { routing: Routing::Direct, ..(*gone).clone() };
    assert_eq!(revise(Some(&gone), direct, &mut versions).unwrap().1, Urgency::AtOnce);
}

#[test]
fn what_a_revision_waits_for_is_the_worst_that_is_known() {
    let text = |wanted, pods: &[(PodFacts, Heard)]| {
        waiting_for(PodCount::new(wanted), pods.iter().map(|(pod, heard)| (pod, heard)))
    };
    let starting = || (pod("a"), heard(PodState::Starting));
    let probing = (
        pod("a"),
        Heard { detail: "readiness probe: connection refused".to_owned(), ..heard(PodState::Starting) },
    );
    let crashed =
        (PodFacts { trouble: Some("the app exited with code 3".to_owned()), ..pod("b") }, Heard::default());
    let blocked = (pod("c"), Heard { blocked: Some("cannot connect".to_owned()), ..Heard::default() });
    assert_eq!(text(0, &[]), "the autoscaler to ask for a pod");
    assert_eq!(text(1, &[]), "the platform to start a pod");
    assert_eq!(text(1, &[starting()]), "its pod to get ready");
    assert_eq!(text(2, &[starting(), (pod("b"), Heard::default())]), "one of its 2 pods to get ready");
    assert_eq!(text(1, &[probing]), "pod a: readiness probe: connection refused");
    assert_eq!(text(2, &[starting(), crashed.clone()]), "pod b: the app exited with code 3");
    assert_eq!(text(1, &[blocked]), "pod c: the autoscaler has no link to it: cannot connect");
    assert_eq!(text(2, &[crashed, (pod("d"), heard(PodState::Ready))]), "", "one that serves is enough");
}

#[test]
fn requests_are_held_off_only_if_no_pod_that_stays_deserves_the_wait() {
    let held = |pods: &[(PodFacts, Heard)]| hold(pods.iter().map(|(pod, heard)| (pod, heard)));
    let hopeless = || PodFacts { hold: Some("it failed 3 times in a row".to_owned()), ..pod("a") };
    assert_eq!(held(&[]), None, "nothing failed yet");
    assert_eq!(held(&[(pod("a"), heard(PodState::Starting))]), None);
    let text = Some("it failed 3 times in a row".to_owned());
    assert_eq!(held(&[(hopeless(), Heard::default())]), text);
    let leaving = PodFacts { leaving: true, ..pod("b") };
    assert_eq!(held(&[(hopeless(), Heard::default()), (leaving, heard(PodState::Ready))]), text);
    for other in [PodState::Starting, PodState::Ready] {
        assert_eq!(held(&[(hopeless(), Heard::default()), (pod("b"), heard(other))]), None, "{other:?}");
    }
    assert_eq!(held(&[(hopeless(), heard(PodState::Ready))]), None, "it works after all");
}

#[test]
fn those_that_serve_nobody_end_first_then_the_least_loaded() {
    let pods = [
        (pod("busy"), loaded(9.0)),
        (pod("idle-b"), loaded(0.0)),
        (pod("idle-a"), loaded(0.0)),
        (pod("starting"), heard(PodState::Starting)),
        (PodFacts { leaving: true, ..pod("leaving") }, loaded(0.0)),
        (pod("half"), loaded(4.5)),
    ];
    let order = |count| {
        let names = end_first(pods.iter().map(|(pod, heard)| (pod, heard)), count);
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(order(4), ["starting", "idle-a", "idle-b", "half"]);
    assert_eq!(order(0), Vec::<String>::new());
}
