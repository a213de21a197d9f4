use std::collections::BTreeMap;

use vocabulary::{PodExits, PodName};

use super::*;

pub(crate) fn pod(name: &str) -> PodFacts {
    PodFacts {
        name: PodName::new(name),
        phase: PodPhase::Running,
        leaving: false,
        ends_in: None,
        platform_ready: None,
        requests: Some(([127, 0, 0, 1], 8012).into()),
        exits: PodExits::default(),
        link: None,
        adoption: None,
        outdated: false,
        awaits_core: false,
        trouble: None,
        trouble_without_output: None,
        hold: None,
        details: BTreeMap::new(),
    }
}

pub(crate) fn heard(state: PodState) -> HeardOfPod {
    HeardOfPod { state: Some(state), connection: LinkCondition::Up, ..HeardOfPod::default() }
}

/// Who decides whether a pod may take requests.
#[test]
fn a_pods_state_is_its_way_out_then_its_word_then_the_platforms() {
    let with = |platform_ready| PodFacts { platform_ready, ..pod("p") };
    let now = |connection, state| HeardOfPod { connection, ..heard(state) };
    let lost = |state| now(LinkCondition::Down, state);
    let refused = || now(LinkCondition::Refused, PodState::Ready);
    let long = || now(LinkCondition::RefusedLong, PodState::Ready);
    let pending = || PodFacts { phase: PodPhase::Pending, ..pod("p") };
    let rows = [
        ("says ready", pod("p"), heard(PodState::Ready), PodState::Ready),
        ("says ready, platform still calls it pending", pending(), heard(PodState::Ready), PodState::Ready),
        ("says unready, platform says ready", with(Some(true)), heard(PodState::Unready), PodState::Unready),
        ("leaves it to the platform", with(Some(true)), heard(PodState::Unheard), PodState::Ready),
        ("the same, which says unready", with(Some(false)), heard(PodState::Unheard), PodState::Unready),
        ("link lost, platform silent", pod("p"), lost(PodState::Ready), PodState::Ready),
        ("link lost, platform says unready", with(Some(false)), lost(PodState::Ready), PodState::Unready),
        ("never heard, platform says ready", with(Some(true)), HeardOfPod::default(), PodState::Ready),
        ("never heard, platform silent", pod("p"), HeardOfPod::default(), PodState::Unheard),
        ("nobody listens", with(Some(true)), refused(), PodState::Unready),
        ("nobody listens for long, platform says ready", with(Some(true)), long(), PodState::Ready),
        ("nobody listens for long, platform silent", pod("p"), long(), PodState::Unready),
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
fn the_worst_known_trouble_is_what_a_revision_waits_for() {
    let text = |wanted, pods: &[(PodFacts, HeardOfPod)]| {
        waiting_for(PodCount::new(wanted), AppOutput::Shown, pods.iter().map(|(pod, heard)| (pod, heard)))
    };
    let starting = || (pod("a"), heard(PodState::Starting));
    let probing = (
        pod("a"),
        HeardOfPod { detail: "readiness probe: connection refused".to_owned(), ..heard(PodState::Starting) },
    );
    let crashed = (
        PodFacts { trouble: Some("the app exited with code 3".to_owned()), ..pod("b") },
        HeardOfPod::default(),
    );
    let blocked =
        (pod("c"), HeardOfPod { blocked: Some("cannot connect".to_owned()), ..HeardOfPod::default() });
    assert_eq!(text(0, &[]), "the autoscaler to ask for a pod");
    assert_eq!(text(1, &[]), "the platform to start a pod");
    assert_eq!(text(1, &[starting()]), "its pod to get ready");
    assert_eq!(text(2, &[starting(), (pod("b"), HeardOfPod::default())]), "one of its 2 pods to get ready");
    assert_eq!(text(1, &[probing]), "pod a: readiness probe: connection refused");
    assert_eq!(text(2, &[starting(), crashed.clone()]), "pod b: the app exited with code 3");
    assert_eq!(text(1, &[blocked]), "pod c: the autoscaler has no link to it: cannot connect");
    assert_eq!(text(2, &[crashed, (pod("d"), heard(PodState::Ready))]), "", "one that serves is enough");
}

#[test]
fn probes_that_a_starting_app_refuses_are_no_trouble_beside_its_start() {
    let trouble = |pod: &PodFacts, heard: &HeardOfPod| trouble_beside_start(pod, heard, AppOutput::Shown);
    let refused = "readiness probe: connection refused";
    let probing = |state| HeardOfPod { detail: refused.to_owned(), ..heard(state) };
    assert_eq!(trouble(&pod("a"), &probing(PodState::Starting)), None);
    assert_eq!(trouble(&pod("a"), &probing(PodState::Unready)).as_deref(), Some(refused));
    let crashed = PodFacts { trouble: Some("the app exited with code 3".to_owned()), ..pod("a") };
    let exit = trouble(&crashed, &probing(PodState::Starting));
    assert_eq!(exit.as_deref(), Some("the app exited with code 3"));
    let blocked = HeardOfPod { blocked: Some("cannot connect".to_owned()), ..probing(PodState::Starting) };
    let no_link = trouble(&pod("a"), &blocked);
    assert_eq!(no_link.as_deref(), Some("the autoscaler has no link to it: cannot connect"));
}

#[test]
fn requests_are_held_off_only_if_no_pod_that_stays_deserves_the_wait() {
    let held = |pods: &[(PodFacts, HeardOfPod)]| hold(pods.iter().map(|(pod, heard)| (pod, heard)));
    let hopeless = || PodFacts { hold: Some("it failed 3 times in a row".to_owned()), ..pod("a") };
    assert_eq!(held(&[]), None, "nothing failed yet");
    assert_eq!(held(&[(pod("a"), heard(PodState::Starting))]), None);
    let text = Some("it failed 3 times in a row".to_owned());
    assert_eq!(held(&[(hopeless(), HeardOfPod::default())]), text);
    let leaving = PodFacts { leaving: true, ..pod("b") };
    assert_eq!(held(&[(hopeless(), HeardOfPod::default()), (leaving, heard(PodState::Ready))]), text);
    for other in [PodState::Starting, PodState::Ready] {
        assert_eq!(held(&[(hopeless(), HeardOfPod::default()), (pod("b"), heard(other))]), None, "{other:?}");
    }
    assert_eq!(held(&[(hopeless(), heard(PodState::Ready))]), None, "it works after all");
}
