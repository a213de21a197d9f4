//! The ledger of a simulated revision: what it says of another least count is what a second run with that
//! least count comes to.
//!
//! So it is where the count follows the load alone. Panic mode looks at the pods that are ready, and holds
//! the count: a least count can keep a revision out of it, and then costs less than the ledger says. Here the
//! threshold of panic mode is out of reach.

use scaling::RevisionLedger;

use super::*;
use crate::call_log::CallLog;
use crate::world::World;

/// One run: the pod-hours counted by the world, and the ledger of the control loop.
struct LedgerRun {
    pod_hours: f64,
    ledger: RevisionLedger,
}

fn run_with(min_scale: u32, load: &str, minutes: u64) -> LedgerRun {
    let least = min_scale.to_string();
    let annotations = [("target", "2"), ("panic-threshold-percentage", "1000"), ("min-scale", &*least)];
    let scenario = scenario(facts(&annotations, 0), load, "120ms", minutes);
    let mut world = World::new(&scenario, CallLog::Forgotten);
    world.run(&mut |_| {});
    let ledger = world.ledger(&scenario.services[0].facts.name).expect("the Service was used");
    let report = world.report().services.remove(0);
    LedgerRun { pod_hours: report.pod_hours(), ledger }
}

fn hours(seconds: u64) -> f64 {
    Duration::from_secs(seconds).as_secs_f64() / 3600.0
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("few"))
}

fn assert_within_a_hundredth(found: f64, expected: f64, of: &str) {
    assert!((found - expected).abs() <= expected / 100.0, "{of}: {found} instead of {expected}");
}

/// The ledger of a run without a least count against runs with one.
fn compare(load: &str, minutes: u64) {
    let base = run_with(0, load, minutes);
    let starts = number(base.ledger.cold_starts.sum());
    assert!(base.ledger.cold_starts.from_zero > 3, "{:?}", base.ledger.cold_starts);
    // A second for each pod, by which its life is longer or shorter in whole seconds; one pod was found.
    let found = hours(base.ledger.pod_seconds.sum());
    assert!((found - base.pod_hours).abs() * 3600.0 <= starts + 1.0, "{found}, not {}", base.pod_hours);
    for (least, what_if) in base.ledger.least_counts().filter(|(least, _)| *least > PodCount::ZERO) {
        let again = run_with(least.value(), load, minutes);
        let told = base.pod_hours + hours(what_if.extra_pod_seconds);
        assert_within_a_hundredth(told, again.pod_hours, &format!("pod-hours of min-scale {least}"));
        let left = base.ledger.cold_starts.sum() - what_if.avoided_cold_starts;
        let (left, counted) = (number(left), number(again.ledger.cold_starts.sum()));
        let tolerance = 1.0 + starts / 100.0;
        assert!((left - counted).abs() <= tolerance, "min-scale {least}: {left} starts, not {counted}");
    }
}

#[test]
fn the_ledger_of_rare_requests_tells_what_a_least_count_would_have_cost() {
    compare("timer,every=5m", 240);
}

#[test]
fn the_ledger_of_a_changing_load_tells_what_a_least_count_would_have_cost() {
    compare("diurnal,peak=30rps,trough=0rps,period=40m", 240);
}
