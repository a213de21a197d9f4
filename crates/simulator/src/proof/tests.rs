//! Worlds for the gate, and the test of the test.

use std::time::Duration;

use super::fault::{PlannedFault, PodChoice, WorldFault};
use super::revision_plan::LoadStretch;
use super::*;
use crate::world_event::ServiceNumber;

/// So many worlds run in the gate, in half a minute: a change of this number is a change of its length.
const SEEDS_OF_THE_GATE: u64 = 24;
/// So many worlds are tried until a planted defect has to be found.
const SEEDS_FOR_A_DEFECT: u64 = 40;
/// Seeds of worlds that run twice.
const SEEDS_TWICE: u64 = 4;

#[test]
fn worlds_in_which_things_go_wrong_keep_every_promise() {
    for seed in 0..SEEDS_OF_THE_GATE {
        let outcome = try_world(&WorldPlan::of_seed(seed), None);
        if let Some(failure) = outcome.failure {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_makes_the_same_world_twice() {
    for seed in 0..SEEDS_TWICE {
        let hash = || try_world(&WorldPlan::of_seed(seed), None).hash;
        assert_eq!(hash(), hash(), "seed {seed}");
    }
}

#[test]
fn two_seeds_make_two_worlds() {
    let hash = |seed| try_world(&WorldPlan::of_seed(seed), None).hash;
    assert_ne!(hash(1), hash(2));
}

/// The check that finds a planted defect, and the seed of the world in which it does.
fn found(defect: PlantedDefect) -> Option<WorldFailure> {
    let mut seeds = 0..SEEDS_FOR_A_DEFECT;
    seeds.find_map(|seed| try_world(&WorldPlan::of_seed(seed), Some(defect)).failure)
}

/// The planted defects that no check finds, of those that are meant.
fn missed(is_meant: impl Fn(&PlantedDefect) -> bool) -> Vec<PlantedDefect> {
    let meant = PlantedDefect::ALL.into_iter().filter(is_meant);
    meant.filter(|defect| found(*defect).is_none()).collect()
}

// One test for each kind: together they are the longest of this crate, and so they run side by side.
#[test]
fn each_planted_defect_of_hearing_is_found() {
    let missed = missed(|defect| matches!(defect, PlantedDefect::Hearing(_)));
    assert!(missed.is_empty(), "no check finds {missed:?}");
}

#[test]
fn each_planted_defect_of_commands_is_found() {
    let missed = missed(|defect| matches!(defect, PlantedDefect::Command(_)));
    assert!(missed.is_empty(), "no check finds {missed:?}");
}

#[test]
fn each_planted_defect_of_activators_is_found() {
    let missed = missed(|defect| matches!(defect, PlantedDefect::Activator(_)));
    assert!(missed.is_empty(), "no check finds {missed:?}");
}

#[test]
fn a_failure_tells_its_seed_its_time_and_its_last_events() {
    let defect = PlantedDefect::Command(CommandDefect::FenceInvented);
    let failure = found(defect).expect("the defect is found");
    let text = failure.to_string();
    assert!(text.starts_with(&format!("seed {}, ", failure.seed)), "{text}");
    assert!(text.contains("an owner speaks and orders in an epoch that it was given"), "{text}");
    assert!((1..=50).contains(&failure.last_events.len()), "{text}");
    assert!(text.contains(&format!("repeat: ebb simulate --world random --seed {}", failure.seed)), "{text}");
}

#[test]
fn a_failure_that_needs_no_fault_shrinks_to_one_service_without_faults() {
    let defect = Some(PlantedDefect::Command(CommandDefect::FenceInvented));
    let plan = WorldPlan::of_seed(1);
    let smaller = shrink(&plan, defect);
    assert_eq!((smaller.services(), smaller.faults()), (1, 0));
    let check = |plan: &WorldPlan| try_world(plan, defect).failure.map(|failure| failure.check);
    assert!(check(&smaller).is_some());
    assert_eq!(check(&smaller), check(&plan));
}

#[test]
fn a_world_that_fails_nowhere_is_not_shrunk() {
    let plan = WorldPlan::of_seed(1).twin();
    assert_eq!(shrink(&plan, None).services(), plan.services());
}

/// One Service whose pods always have requests. Three times the link of its first pod breaks, the owner of
/// the pod dials again, and before its first word has come the other owner has this bucket.
fn plan_with_slow_pod_links(bucket: u16) -> WorldPlan {
    let plan = WorldPlan::of_takeovers(1, 1, Duration::from_secs(900));
    let mut revisions = plan.revisions.clone();
    revisions[0].stretches = vec![LoadStretch { from: Duration::ZERO, rate: 1.0 }];
    let pod = PodChoice { service: ServiceNumber(0), nth: 0 };
    let (delay, length) = (Duration::from_secs(2), Duration::from_secs(20));
    let slow = WorldFault::PodLinkIsSlow { pod, delay, length };
    let moves = WorldFault::BucketMoves { bucket, notice: delay };
    let faults = [200_u64, 300, 400].into_iter().flat_map(|second| {
        let at = Duration::from_secs(second);
        [(at, slow), (at + Duration::from_secs(1), moves)]
    });
    let faults = faults.map(|(at, fault)| PlannedFault { at, fault }).collect();
    WorldPlan { revisions, faults, ..plan }
}

#[test]
fn a_pod_passes_over_the_late_settings_of_its_former_owner() {
    // Which bucket the Service has is a matter of its name. Both do not move at once, for an owner hears of
    // the one that it gets after that of the one that it loses.
    let reached = [0, 1].map(|bucket| {
        let outcome = try_world(&plan_with_slow_pod_links(bucket), None);
        if let Some(failure) = outcome.failure {
            panic!("{failure}");
        }
        !outcome.reached.missing().contains(&ReachedState::StaleSettingsIgnored)
    });
    assert_ne!(reached[0], reached[1], "of two buckets one is the Service's");
}
