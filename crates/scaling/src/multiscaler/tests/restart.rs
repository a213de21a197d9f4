//! An autoscaler that starts anew knows nothing of the past but what all reporters say again when they have
//! reached it. Its averages are those of an autoscaler that never stopped.

use proptest::prelude::*;

use super::closed_loop::{
    BURST_AT, ClosedLoop, ClosedLoopPlan, ENDS_AT, LinkStart, Millis, Redial, STEP, at, name_of, plan,
    settings_of_both_classes,
};
use super::*;

/// Plain averages have six decimals.
const LAST_DECIMAL: f64 = 1.5e-6;

/// How often both are asked.
const LOOK_EVERY: Millis = 20;

/// What both scalers say of one moment.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    at: Millis,
    /// Each of the first and of the scaler that was started anew.
    stable: [f64; 2],
    panic: [f64; 2],
}

/// What both said from the moment on at which the second scaler had heard of whole seconds from everyone.
fn comparisons(
    spec: &ScalingSpec,
    plan: ClosedLoopPlan,
    restart_at: Millis,
    redial: Redial,
) -> Vec<Comparison> {
    let mut world = ClosedLoop::new(spec, plan);
    let mut comparisons = Vec::new();
    world.run(|world| {
        if world.successor.is_none() && world.now >= restart_at {
            world.start_successor(redial);
        }
        if world.is_successor_informed() && world.now.is_multiple_of(LOOK_EVERY) {
            comparisons.extend(comparison(world));
        }
    });
    comparisons
}

fn comparison(world: &ClosedLoop) -> Option<Comparison> {
    let of = |scaler: &Multiscaler| scaler.status(REVISION, at(world.now)).expect("both know the revision");
    let (first, anew) = (of(&world.multiscaler), of(world.successor.as_ref()?));
    Some(Comparison {
        at: world.now,
        stable: [first.stable_value?, anew.stable_value?],
        panic: [first.panic_value?, anew.panic_value?],
    })
}

impl Comparison {
    fn agrees(&self) -> bool {
        distance(self.stable) < LAST_DECIMAL && distance(self.panic) < LAST_DECIMAL
    }
}

fn distance([one, other]: [f64; 2]) -> f64 {
    (one - other).abs()
}

/// A reporter whose hello is later than the words after it is anchored anew by one of them, in either scaler
/// when that comes; such a second may lie one beside where it lies in the other one until then.
fn with_punctual_hellos(plan: ClosedLoopPlan) -> ClosedLoopPlan {
    let lateness = plan.lateness.iter().copied().min().unwrap_or(0);
    let starts = plan.starts.iter().map(|start| LinkStart { lateness, ..*start }).collect();
    ClosedLoopPlan { starts, ..plan }
}

/// After every reporter's first second, and early enough for all to have reported after it.
fn moments() -> impl Strategy<Value = Millis> {
    (4_000 / STEP..(ENDS_AT - 4_000) / STEP).prop_map(|steps| steps * STEP)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_restart_changes_no_average(plan in plan(), restart_at in moments()) {
        let plan = with_punctual_hellos(plan);
        for spec in settings_of_both_classes() {
            let compared = comparisons(&spec, plan.clone(), restart_at, Redial::InPhase);
            prop_assert!(!compared.is_empty(), "{}: nothing was compared", name_of(&spec));
            for one in compared {
                prop_assert!(one.agrees(), "{}: {one:?}", name_of(&spec));
            }
        }
    }

    /// Which second of ours a reporter's second is depends on the moment of its hello. It makes no difference
    /// once a load has lasted for longer than the windows look back.
    #[test]
    fn a_restart_at_any_moment_of_the_reporters_seconds_finds_a_constant_load(
        plan in plan(),
        restart_at in moments(),
    ) {
        for spec in settings_of_both_classes() {
            let plan = ClosedLoopPlan { switches: Vec::new(), ..plan.clone() };
            let clients = f64::from(u32::try_from(plan.requests.len()).expect("few"));
            // The last of what was there before the load may lie two seconds later, and is settled three
            // later.
            let looks_back = spec.panic_window + Duration::from_secs(5);
            let compared = comparisons(&spec, plan, restart_at, Redial::AtOnce);
            let lasts = compared.iter().filter(|one| at(one.at) >= at(BURST_AT) + looks_back);
            for one in lasts {
                let finds_all = one.panic.iter().all(|panic| distance([*panic, clients]) < LAST_DECIMAL);
                prop_assert!(finds_all, "{}: {one:?}", name_of(&spec));
            }
        }
    }
}

#[test]
fn a_restart_under_35_requests_in_flight_finds_35() {
    let start = LinkStart { at: STEP, second_rest: 1_000 - STEP, lateness: 0 };
    for spec in settings_of_both_classes() {
        for restart_at in (BURST_AT + 2_100..BURST_AT + 4_000).step_by(250) {
            let plan = ClosedLoopPlan {
                requests: vec![500; 35],
                pods: 3,
                activators: 3,
                starts: vec![start],
                lateness: vec![0],
                switches: Vec::new(),
                first_path: Routing::ThroughActivator,
                moves: Vec::new(),
            };
            let compared = comparisons(&spec, plan, restart_at, Redial::AtOnce);
            let name = name_of(&spec);
            assert!(compared.iter().all(Comparison::agrees), "{name}: {compared:?}");
            let last = compared.last().expect("something was compared");
            assert!((last.panic[1] - 35.0).abs() < LAST_DECIMAL, "{name}: {last:?}");
        }
    }
}
