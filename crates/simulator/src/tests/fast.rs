//! The fluid of whole seconds beside the exact world, on six loads.

use super::*;

/// So many of all seconds have counts that differ by one pod at most.
const SECONDS_ALIKE: f64 = 0.98;
const POD_HOURS: f64 = 0.02;
const WAITED: f64 = 0.1;

/// The count at each second of a load.
fn count_by_second(counts: &[RecordedCount], seconds: u64) -> Vec<u32> {
    let at = |second: u64| {
        let after = counts.partition_point(|count| count.at <= Duration::from_secs(second));
        counts[after.saturating_sub(1)].count.value()
    };
    (0..seconds).map(at).collect()
}

fn real(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("few"))
}

/// The numbers of requests that wait are random: where they differ by chance alone three standard deviations
/// of a Poisson number are allowed beside the tolerance.
fn assert_alike(name: &str, exact: &ServiceReport, fast: &ServiceReport, length: Duration) {
    let seconds = length.as_secs();
    let (of_exact, of_fast) =
        (count_by_second(&exact.counts, seconds), count_by_second(&fast.counts, seconds));
    let alike = of_exact.iter().zip(&of_fast).filter(|(one, other)| one.abs_diff(**other) <= 1).count();
    let alike = real(u64::try_from(alike).expect("few")) / real(seconds);
    assert!(alike >= SECONDS_ALIKE, "{name}: counts are alike in {alike} of all seconds");
    let pods = fast.pod_hours() / exact.pod_hours();
    assert!(
        (pods - 1.0).abs() <= POD_HOURS,
        "{name}: {} pod-hours, not {}",
        fast.pod_hours(),
        exact.pod_hours()
    );
    let waited = |report: &ServiceReport| real(report.waited_from_zero + report.waited_for_growth);
    let (of_exact, of_fast) = (waited(exact), waited(fast));
    let allowed = WAITED * of_exact + 3.0 * libm::sqrt(of_exact);
    assert!((of_exact - of_fast).abs() <= allowed, "{name}: {of_fast} waited, not {of_exact}");
    let requests = real(fast.requests) - real(exact.requests);
    assert!(
        requests.abs() <= 4.0 * libm::sqrt(real(exact.requests)) + 1.0,
        "{name}: {requests} more requests"
    );
}

/// Lets a scenario run both ways.
fn assert_fast_is_as_exact(name: &str, exact: &Scenario) {
    let fast = Scenario { pace: SimulationPace::WholeSeconds, ..exact.clone() };
    assert_alike(name, &outcome(exact), &outcome(&fast), exact.length);
}

#[test]
fn a_constant_load() {
    assert_fast_is_as_exact(
        "constant",
        &scenario(facts(&[], 0), "constant,rate=500rps", "120ms,p99=800ms", 15),
    );
}

#[test]
fn a_load_that_rises_and_falls() {
    let load = "diurnal,peak=2000rps,trough=50rps,period=20m";
    assert_fast_is_as_exact("diurnal", &scenario(facts(&[], 0), load, "120ms,p99=800ms", 20));
}

#[test]
fn a_step() {
    let facts = facts(&[("target", "10")], 0);
    let load = "step,from=5rps,to=100rps,at=10m";
    assert_fast_is_as_exact("step", &scenario(facts, load, "exponential,mean=300ms", 30));
}

#[test]
fn requests_so_rare_that_each_starts_a_pod() {
    let facts = facts(&[], 0);
    assert_fast_is_as_exact("sparse", &scenario(facts, "sparse,every=5m,requests=3", "200ms", 600));
}

#[test]
fn bursts_from_nothing() {
    let facts = facts(&[("target", "10")], 0);
    let load = "bursty,burst=80rps,every=10m,length=30s";
    assert_fast_is_as_exact("bursty", &scenario(facts, load, "120ms,p99=800ms", 180));
}

#[test]
fn pods_whose_slots_are_taken_until_others_start() {
    let facts = facts(&[("target-burst-capacity", "-1")], 100);
    let load = "step,from=50rps,to=800rps,at=5m";
    assert_fast_is_as_exact("containerConcurrency 100", &scenario(facts, load, "exponential,mean=200ms", 30));
}

/// A target of few requests is passed by chance several times in an hour, and then pods come for a minute. A
/// fluid draws such peaks: it has them at other times than the exact world, and as often.
#[test]
fn peaks_by_chance_are_as_frequent_and_take_as_many_pods() {
    for (target, load) in [("10", "constant,rate=50rps"), ("5", "diurnal,peak=100rps,trough=2rps,period=1h")]
    {
        let exact = scenario(facts(&[("target", target)], 0), load, "120ms,p99=800ms", 240);
        let fast = Scenario { pace: SimulationPace::WholeSeconds, ..exact.clone() };
        let (exact, fast) = (outcome(&exact), outcome(&fast));
        let pods = fast.pod_hours() / exact.pod_hours();
        assert!(
            (pods - 1.0).abs() < 0.05,
            "{load}: {} pod-hours, not {}",
            fast.pod_hours(),
            exact.pod_hours()
        );
        let changes = fast.changes_per_hour / exact.changes_per_hour;
        assert!((0.7..1.4).contains(&changes), "{load}: {changes} times as many changes");
    }
}

#[test]
fn the_two_load_tests_of_the_documents_have_their_counts() {
    for (annotations, expected) in
        [(&[("target", "10")][..], 8), (&[("target", "10"), ("min-scale", "1"), ("max-scale", "3")][..], 3)]
    {
        let exact = scenario(facts(annotations, 0), "clients=50", "100ms", 5);
        let fast = outcome(&Scenario { pace: SimulationPace::WholeSeconds, ..exact });
        let last = fast.counts.last().map(|last| last.count.value());
        assert_eq!(last, Some(expected), "{:?}", fast.counts);
        assert_eq!(fast.refused, 0);
    }
}

/// The queue of five servers again, in which requests wait by chance alone.
#[test]
fn a_fluid_waits_by_chance_as_often_as_a_queue() {
    let exact = queue(5, "30rps", 60);
    let fast = outcome(&Scenario { pace: SimulationPace::WholeSeconds, ..exact });
    let waited = real(fast.waited_for_growth) / real(fast.requests);
    let expected = chance_of_waiting(5, 3.0);
    assert!((waited - expected).abs() < 0.1 * expected, "{waited} of all wait, not {expected}");
}

#[test]
fn a_seed_repeats_its_fluid() {
    let exact = scenario(facts(&[("target", "10")], 0), "azure", "120ms,p99=800ms", 60);
    let fast = Scenario { pace: SimulationPace::WholeSeconds, ..exact };
    assert_eq!(simulate(&fast), simulate(&fast));
}

#[test]
fn the_requests_of_a_scenario_are_expected_as_they_come() {
    for load in [
        "constant,rate=50rps",
        "diurnal,peak=100rps,trough=2rps,period=20m",
        "bursty,rate=1rps,burst=80rps,every=1m,length=20s",
        "timer,every=1m,requests=30",
        "clients=20,pause=1s",
    ] {
        let scenario = scenario(facts(&[("min-scale", "20")], 0), load, "100ms", 40);
        let (expected, found) = (scenario.expected_requests(), real(outcome(&scenario).requests));
        // The number of bursts is random, and the bound is four of its standard deviations.
        let spread = if load.starts_with("bursty") { 0.6 } else { 0.03 };
        assert!((found - expected).abs() < spread * expected, "{load}: {found} requests, not {expected}");
    }
}
