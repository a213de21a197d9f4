//! Clients that wait for each answer before they ask again are so many, whichever way their requests take: no
//! decision counts one of them with pods and with activators at once while the path changes.

use proptest::prelude::*;

use super::closed_loop::{
    BURST_AT, ClosedLoop, ClosedLoopPlan, LinkStart, Millis, Redial, TARGET, at, name_of, plan,
    restless_plan, settings_of_both_classes,
};
use super::*;

/// One more than these clients need.
fn bound(plan: &ClosedLoopPlan) -> u32 {
    let clients = f64::from(u32::try_from(plan.requests.len()).expect("few"));
    PodCount::ceil_from(clients / TARGET).value() + 1
}

/// How many more requests the present counts say than there were within the last 100 ms and so much longer.
fn miscount(world: &ClosedLoop, longer: Millis) -> Option<String> {
    let counted = world.collector.surge_total(at(world.now)).unwrap_or(0.0);
    let existed = world.requests_within(longer);
    (counted > existed + 1e-9).then(|| format!("at {} ms {counted} are counted of {existed}", world.now))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn present_counts_never_say_more_than_there_was_while_the_path_changes(plan in plan()) {
        for spec in settings_of_both_classes() {
            let mut problems = Vec::new();
            ClosedLoop::new(&spec, plan.clone()).run(|world| problems.extend(miscount(world, 0)));
            prop_assert!(problems.is_empty(), "{}: {problems:?}", name_of(&spec));
        }
    }

    /// A count is as old as its link is late when it comes.
    #[test]
    fn present_counts_never_say_more_than_there_was_while_clients_change_their_activators(
        plan in restless_plan(),
    ) {
        for spec in settings_of_both_classes() {
            let mut problems = Vec::new();
            let late = plan.lateness.iter().copied().max().unwrap_or(0);
            ClosedLoop::new(&spec, plan.clone()).run(|world| problems.extend(miscount(world, late)));
            prop_assert!(problems.is_empty(), "{}: {problems:?}", name_of(&spec));
        }
    }

    #[test]
    fn no_more_than_one_pod_too_many_is_wanted_while_the_path_changes(plan in plan()) {
        for spec in settings_of_both_classes() {
            let mut world = ClosedLoop::new(&spec, plan.clone());
            world.run(|_| {});
            let most = bound(&plan);
            prop_assert!(world.most_wanted <= most, "{}: {} of {most}", name_of(&spec), world.most_wanted);
        }
    }

    /// What a new owner hears of the past is no change of the path.
    #[test]
    fn an_owner_that_starts_while_the_path_changes_wants_no_more_than_one_pod_too_many(
        plan in plan(),
        restart_after in 0_u64..4_000,
    ) {
        for spec in settings_of_both_classes() {
            let mut world = ClosedLoop::new(&spec, plan.clone());
            let (mut wanted, mut most_wanted) = (u32::MAX, 0);
            world.run(|world| {
                if world.successor.is_none() && world.now >= BURST_AT + restart_after {
                    world.start_successor(Redial::AtOnce);
                }
                let status = world.successor.as_ref().and_then(|one| one.status(REVISION, at(world.now)));
                let before = wanted;
                wanted = status.map_or(u32::MAX, |status| status.wanted.value());
                if wanted > before {
                    most_wanted = most_wanted.max(wanted);
                }
            });
            let most = bound(&plan);
            prop_assert!(most_wanted <= most, "{}: {most_wanted} of {most}", name_of(&spec));
        }
    }
}

/// As a burst does that puts activators into the path of a revision that was served directly.
#[test]
fn twenty_clients_at_target_five_want_at_most_five_pods_while_the_path_changes() {
    let starts = [(400, 700), (900, 300), (100, 1_000)];
    let starts = starts.map(|(at, second_rest)| LinkStart { at, second_rest, lateness: 1 }).to_vec();
    for spec in settings_of_both_classes() {
        for first_path in [Routing::Direct, Routing::ThroughActivator] {
            for (lasts, switch) in [(100, 50), (300, 100), (1_000, 100), (1_000, 700)] {
                let plan = ClosedLoopPlan {
                    requests: vec![lasts; 20],
                    pods: 1,
                    activators: 2,
                    starts: starts.clone(),
                    lateness: vec![1, 3],
                    switches: vec![switch],
                    first_path,
                    moves: Vec::new(),
                };
                let mut world = ClosedLoop::new(&spec, plan);
                world.run(|_| {});
                let wanted = world.most_wanted;
                let name = name_of(&spec);
                assert!((4..=5).contains(&wanted), "{name} {first_path:?} {lasts} {switch}: {wanted}");
            }
        }
    }
}
