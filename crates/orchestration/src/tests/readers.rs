//! What readers find, and what finding it costs the loop.

use std::sync::Arc;
use std::time::Duration;

use vocabulary::{Concurrency, Load, PodState, PodWord, RevisionName, Sample};

use super::world::{World, name, pod};
use crate::*;

const REVISIONS: usize = 500;

fn numbered(number: usize) -> RevisionName {
    RevisionName::new("default", "service", &format!("revision-{number:03}")).expect("a name")
}

/// A world of many revisions, of which a snapshot was taken.
fn crowded() -> (World, ControlSnapshot) {
    let mut world = World::with_activators(&["a"]);
    let pattern = world.snapshot().view(&name(), world.now).expect("it is ours").facts().clone();
    for number in 0..REVISIONS {
        let facts = RevisionFacts { name: numbered(number), entrances: Vec::new(), ..pattern.clone() };
        world.fact(PlatformFact::RevisionChanged(Arc::new(facts)));
    }
    let snapshot = world.snapshot();
    (world, snapshot)
}

/// How many revisions of the later snapshot are another piece of memory than in the one before.
fn written(before: &ControlSnapshot, now: &ControlSnapshot) -> usize {
    let is_new = |name: &RevisionName, revision: &Arc<RevisionSnapshot>| {
        before.revisions().get(name).is_none_or(|known| !Arc::ptr_eq(known, revision))
    };
    now.revisions().iter().filter(|(name, revision)| is_new(name, revision)).count()
}

#[test]
fn one_change_writes_one_revision_and_shares_all_others() {
    let (mut world, before) = crowded();
    assert_eq!(before.revisions().len(), REVISIONS + 1);
    let unchanged = world.snapshot();
    assert!(unchanged.revisions().is_same(before.revisions()), "without news nothing is copied");
    let failure = PodFailure {
        pod: vocabulary::PodName::new("p"),
        at: world.now,
        reason: "the app exited with code 3".to_owned(),
        last_lines: Vec::new(),
    };
    world.fact(PlatformFact::PodFailed { revision: numbered(7), failure });
    let after = world.snapshot();
    assert_eq!(written(&before, &after), 1);
    world.fact(PlatformFact::RevisionRemoved(numbered(7)));
    let last = world.snapshot();
    assert_eq!((written(&after, &last), last.revisions().len()), (0, REVISIONS));
}

#[test]
fn revisions_at_rest_are_not_written_again_as_time_passes() {
    let (mut world, _) = crowded();
    world.pass(Duration::from_secs(120));
    let before = world.snapshot();
    world.pass(Duration::from_secs(10));
    assert_eq!(written(&before, &world.snapshot()), 0);
}

/// A pod at rest says every other second that it is there.
#[test]
fn a_sign_of_life_moves_one_time_and_no_revision() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world.pass(Duration::from_secs(300));
    let silence = |second| {
        let sample = Sample { second, load: Load::default() };
        PodWord::Load { sample, usage: None, late_bytes: None }
    };
    world.pod("p", silence(300));
    world.pass(Duration::from_secs(4));
    let before = world.snapshot();
    world.pod("p", silence(304));
    let after = world.snapshot();
    assert_eq!(written(&before, &after), 0);
    let heard = |snapshot: &ControlSnapshot| {
        snapshot.view(&name(), world.now).expect("it is ours").pods(AppOutput::Shown)[0].heard_at
    };
    assert_eq!(heard(&after), Some(world.now));
    assert_eq!(heard(&before), Some(world.now - Duration::from_secs(4)), "a reader keeps what it has");
}

#[test]
fn a_pod_that_comes_to_rest_is_shown_at_rest() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    for (second, in_flight) in [(0, 3.0), (1, 0.0)] {
        let load = Load { concurrency: Concurrency::clamped(in_flight), ..Load::default() };
        let sample = Sample { second, load };
        world.pod("p", PodWord::Load { sample, usage: None, late_bytes: None });
        let snapshot = world.snapshot();
        let view = snapshot.view(&name(), world.now).expect("it is ours");
        let shown = view.pods(AppOutput::Shown)[0].in_flight;
        assert!((shown - in_flight).abs() < f64::EPSILON, "{shown} instead of {in_flight}");
    }
}

#[test]
fn a_snapshot_that_a_reader_holds_stays_as_it_was() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    let held = world.snapshot();
    world.leave("p");
    world.fact(PlatformFact::ProblemsChanged {
        about: Subject::Configuration,
        problems: vec!["config.yaml: no".to_owned()],
    });
    let later = world.snapshot();
    let seen = |snapshot: &ControlSnapshot| {
        let view = snapshot.view(&name(), world.now).expect("it is ours");
        (view.status.ready_pods.value(), view.pods(AppOutput::Shown)[0].state, snapshot.problems().len())
    };
    // All of one turn: the state of the pod, the count that is made of it, and what is of no revision.
    assert_eq!(seen(&held), (1, PodState::Ready, 0));
    assert_eq!(seen(&later), (0, PodState::Draining, 1));
}

#[test]
fn a_revision_of_another_owner_is_not_shown_but_its_pods_are_counted() {
    let mut world = World::with_activators(&["a"]);
    world.pods(&["p"]);
    world.fact(PlatformFact::OwnershipChanged(vocabulary::Ownership::default()));
    let snapshot = world.snapshot();
    assert!(snapshot.view(&name(), world.now).is_none());
    assert_eq!(
        snapshot.links_to_pods(),
        LinkTally { expected: 1, down: vec![pod("p").name.as_str().to_owned()] }
    );
}
