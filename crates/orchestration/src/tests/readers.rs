//! What readers find, and what finding it costs the loop.

use std::sync::Arc;
use std::time::Duration;

use scaling::{HistoryRecord, RevisionHistory, SeriesRange};
use vocabulary::{Concurrency, Load, PodState, PodWord, RevisionName, Sample};

use super::world::{World, name, pod};
use crate::*;

const REVISIONS: usize = 500;
/// The wall clock at the beginning of a test: midnight of a day in 2024.
const MIDNIGHT: Duration = Duration::from_secs(19_800 * 24 * 3600);

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

fn pod_fails(world: &mut World, number: usize) {
    let failure = PodFailure {
        pod: vocabulary::PodName::new("p"),
        at: world.now,
        reason: "the app exited with code 3".to_owned(),
        last_lines: Vec::new(),
    };
    world.fact(PlatformFact::PodFailed { revision: numbered(number), failure });
}

#[test]
fn one_change_writes_one_revision_and_shares_all_others() {
    let (mut world, before) = crowded();
    assert_eq!(before.revisions().len(), REVISIONS + 1);
    let unchanged = world.snapshot();
    assert!(unchanged.revisions().is_same(before.revisions()), "without news nothing is copied");
    pod_fails(&mut world, 7);
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

#[test]
fn a_reader_that_comes_back_finds_the_revisions_that_changed_since_then_and_no_other() {
    let (mut world, _) = crowded();
    world.pass(Duration::from_secs(120));
    world.snapshot();
    let mut left = world.now;
    for number in [7, 8] {
        world.pass(Duration::from_secs(1));
        let found = |world: &mut World| -> Vec<RevisionName> {
            let snapshot = world.snapshot();
            snapshot.views_since(left, world.now).map(|view| view.facts().name.clone()).collect()
        };
        assert!(found(&mut world).is_empty(), "nothing has changed");
        pod_fails(&mut world, number);
        let changed = found(&mut world);
        assert_eq!(changed, [numbered(number)]);
        left = world.now;
    }
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

/// A world with one pod, whose wall clock shows this.
fn with_a_pod(since_epoch: Duration) -> World {
    let mut world = World::with_activators(&["a"]);
    world.event(ControlEvent::WallClockRead { since_epoch });
    world.pods(&["p"]);
    world.pod_says("p", PodState::Ready);
    world
}

/// Lets seconds of the pod pass, in each of which it holds so many requests.
fn pass_with_load(world: &mut World, in_flight: f64, seconds: std::ops::Range<u64>) {
    for second in seconds {
        world.pass(Duration::from_secs(1));
        let load = Load { concurrency: Concurrency::clamped(in_flight), ..Load::default() };
        let sample = Sample { second, load };
        world.pod("p", PodWord::Load { sample, usage: None, late_bytes: None });
    }
}

/// How many of the last 900 seconds are known, and in how many of them three requests were held.
fn seconds_of(snapshot: &ControlSnapshot, now: vocabulary::Timestamp) -> [usize; 2] {
    let view = snapshot.view(&name(), now).expect("it is ours");
    let series = view.series(SeriesRange::QuarterHour).expect("it was used");
    let known = || series.spans.iter().flatten();
    [known().count(), known().filter(|second| second.concurrency == 3.0).count()]
}

#[test]
fn a_series_is_found_in_the_snapshot_and_stays_as_it_was() {
    let mut world = with_a_pod(MIDNIGHT);
    pass_with_load(&mut world, 3.0, 0..20);
    let (held, then) = (world.snapshot(), world.now);
    let [known, busy] = seconds_of(&held, then);
    assert!((16..=20).contains(&known) && (12..=20).contains(&busy), "{busy} of {known}");
    pass_with_load(&mut world, 3.0, 20..40);
    assert_eq!(seconds_of(&held, then), [known, busy]);
    assert_eq!(seconds_of(&world.snapshot(), world.now), [known + 20, busy + 20]);
}

#[test]
fn a_rest_is_in_the_series_though_no_revision_is_written_for_it() {
    let mut world = with_a_pod(MIDNIGHT);
    pass_with_load(&mut world, 3.0, 0..20);
    pass_with_load(&mut world, 0.0, 20..220);
    let (before, then) = (world.snapshot(), world.now);
    pass_with_load(&mut world, 0.0, 220..320);
    let after = world.snapshot();
    assert_eq!(written(&before, &after), 0);
    let [[earlier, _], [later, _]] = [seconds_of(&before, then), seconds_of(&after, world.now)];
    assert_eq!(later, earlier + 100);
}

#[test]
fn the_history_of_one_owner_is_the_past_that_the_next_one_shows() {
    let mut first = with_a_pod(MIDNIGHT);
    pass_with_load(&mut first, 3.0, 0..60);
    let snapshot = first.snapshot();
    let records: Vec<(&RevisionName, HistoryRecord)> = snapshot.history_records(first.now).collect();
    assert_eq!(records.len(), 1);
    // The next process begins 40 s later, with an axis of its own.
    let mut next = with_a_pod(MIDNIGHT + Duration::from_secs(100));
    for (revision, record) in records {
        let restored = || Box::new(RevisionHistory::restore(record.clone()).expect("it was just written"));
        next.event(ControlEvent::HistoryRestored { revision: revision.clone(), history: restored() });
        // One that does not exist has no past either.
        next.event(ControlEvent::HistoryRestored { revision: numbered(7), history: restored() });
    }
    pass_with_load(&mut next, 3.0, 0..20);
    let [known, busy] = seconds_of(&next.snapshot(), next.now);
    assert!((70..=80).contains(&known) && (65..=80).contains(&busy), "{busy} of {known}");
    assert_eq!(next.snapshot().history_records(next.now).count(), 1);
}
