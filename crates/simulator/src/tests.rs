//! Whole worlds: what is known of queues and of the load tests of the documents, and that a seed repeats.

mod fast;
mod faults;
mod ledger;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestration::RevisionFacts;
use settings::{ClusterConfig, RevisionSettings};
use vocabulary::{PodCount, RevisionName};

use super::*;
use crate::fluid::capacity::chance_of_waiting;

/// A Service with annotations, without their prefix.
fn facts(annotations: &[(&str, &str)], container_concurrency: u32) -> RevisionFacts {
    let annotations: BTreeMap<String, String> = annotations
        .iter()
        .map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), (*value).to_owned()))
        .collect();
    let cluster = ClusterConfig::default();
    let settings = RevisionSettings::read(&annotations, &cluster, None).expect("good annotations").value;
    let name = RevisionName::parse("default/service/hello").expect("a name");
    new_service(name, settings, container_concurrency, &cluster)
}

fn scenario(facts: RevisionFacts, load: &str, service_time: &str, minutes: u64) -> Scenario {
    let service = ServiceScenario {
        facts,
        load: Some(LoadShape::of_option(&format!("hello={load}"))),
        service_time: TimeDistribution::parse(service_time).expect("a time"),
        start_up: TimeDistribution::parse("2s").expect("a time"),
    };
    Scenario {
        cluster: Arc::new(ClusterConfig::default()),
        services: vec![service],
        cores: BTreeMap::new(),
        delays: WorldDelays::default(),
        beginning: LoadBeginning::default(),
        length: Duration::from_secs(60 * minutes),
        seed: 7,
        pace: SimulationPace::EveryRequest,
        faults: Vec::new(),
    }
}

/// The only Service of a scenario, after its load.
fn outcome(scenario: &Scenario) -> ServiceReport {
    let mut report = simulate(scenario).expect("a scenario that can be simulated");
    report.services.remove(0)
}

/// Everything that arrived is accounted for.
fn assert_whole(report: &ServiceReport, unanswered_max: u64) {
    let ended = report.answered + report.refused;
    assert!(ended <= report.requests && report.requests - ended <= unanswered_max, "{report:?}");
}

#[test]
fn a_constant_load_is_served_and_the_table_has_its_numbers() {
    let report = outcome(&scenario(facts(&[("target", "10")], 0), "constant,rate=50rps", "120ms", 10));
    let expected = 30_000.0;
    let requests = f64::from(u32::try_from(report.requests).expect("few"));
    assert!((requests - expected).abs() < 4.0 * libm::sqrt(expected), "{requests} requests");
    assert_eq!(report.refused, 0);
    assert_whole(&report, 50);
    // The first pod becomes ready a second after the load began: what came until then waited for it.
    assert!(report.waited_from_zero > 0 && report.wait.longest >= Duration::from_millis(900), "{report:?}");
    assert!(report.wait.longest < Duration::from_secs(3) && report.wait.p50.is_zero(), "{report:?}");
    assert!(report.pod_hours() > 0.1 && report.share_idle() < 1.0, "{report:?}");
}

/// The load test of the documents: 50 clients at target 10, of which 70 % are used, need ⌈50 / 7⌉ pods.
#[test]
fn fifty_clients_at_target_10_get_8_pods() {
    let report = outcome(&scenario(facts(&[("target", "10")], 0), "clients=50", "100ms", 5));
    assert_eq!(report.refused, 0);
    let last = report.counts.last().expect("a count was ordered");
    assert_eq!(last.count, PodCount::new(8), "{:?}", report.counts);
    assert!(!last.why.is_empty());
}

#[test]
fn bounds_hold_against_any_load() {
    let bounded = facts(&[("target", "10"), ("min-scale", "1"), ("max-scale", "3")], 0);
    let report = outcome(&scenario(bounded, "clients=50", "100ms", 5));
    let (least, most) = count_range(&report.counts).expect("counts were ordered");
    assert!(least >= PodCount::ONE && most <= PodCount::new(3), "{:?}", report.counts);
    assert_eq!(report.counts.last().map(|last| last.count), Some(PodCount::new(3)));
}

#[test]
fn a_service_without_requests_goes_to_zero_and_comes_back() {
    let report = outcome(&scenario(facts(&[], 0), "timer,every=5m", "100ms", 11));
    assert_eq!((report.requests, report.answered), (2, 2));
    // Five minutes without requests are longer than the stable window and the grace period together.
    assert_eq!(report.waited_from_zero, 2, "{report:?}");
    let counts: Vec<u32> = report.counts.iter().map(|recorded| recorded.count.value()).collect();
    assert!(counts.contains(&0) && counts.first() == Some(&1), "{counts:?}");
}

/// A world in which the count is held and a message takes no time, with one slot for each pod: a queue with
/// random arrivals, random work and so many servers.
fn queue(servers: u32, rate: &str, minutes: u64) -> Scenario {
    let servers = servers.to_string();
    let held = [("min-scale", &*servers), ("max-scale", &*servers), ("target-burst-capacity", "-1")];
    let mut scenario =
        scenario(facts(&held, 1), &format!("constant,rate={rate}"), "exponential,mean=100ms", minutes);
    scenario.delays.request = Duration::ZERO;
    scenario
}

/// With the count held the world is the queue M/M/c: as many requests wait as Erlang's formula says, and the
/// pods are busy as Little's law says. The tolerances of the waits are four standard errors of so many
/// requests, whose waits are correlated over less than a second.
#[test]
fn a_held_count_waits_as_the_queue_with_so_many_servers() {
    let (servers, offered) = (5_u32, 3.0);
    let report = outcome(&queue(servers, "30rps", 180));
    assert_eq!(report.counts.len(), 1, "the count is held: {:?}", report.counts);
    assert_whole(&report, 500);
    let number = |count: u64| f64::from(u32::try_from(count).expect("few"));
    let waited = number(report.waited_for_growth + report.waited_from_zero) / number(report.requests);
    let expected = chance_of_waiting(servers, offered);
    assert!((waited - expected).abs() < 0.05 * expected, "{waited} of all wait, not {expected}");
    // Of those that wait the wait is exponential, with a mean of one service time for each free server.
    let mean = 0.1 / (f64::from(servers) - offered);
    let p95 = mean * libm::log(expected / 0.05);
    let found = report.wait.p95.as_secs_f64();
    assert!((found - p95).abs() < 0.08 * p95, "95 of 100 wait {found} s, not {p95} s");
    let busy = 1.0 - report.share_idle();
    let utilization = offered / f64::from(servers);
    assert!(
        (busy - utilization).abs() < 0.03 * utilization,
        "{busy} of the pods are busy, not {utilization}"
    );
}

/// Two queues for so long that chance moves their waits by less than 3 %: the chance to wait, the mean wait,
/// and by Little's law how many wait and how many are served on average.
#[test]
fn waits_of_long_queues_are_within_3_of_100_of_the_formulas() {
    for (servers, rate, offered) in [(5_u32, "40rps", 4.0), (2, "12rps", 1.2)] {
        let minutes = 600;
        let report = outcome(&queue(servers, rate, minutes));
        let number = |count: u64| f64::from(u32::try_from(count).expect("few"));
        let near = |name: &str, found: f64, expected: f64| {
            assert!((found - expected).abs() < 0.03 * expected, "{servers}: {name} {found}, not {expected}");
        };
        let waited = number(report.waited_for_growth + report.waited_from_zero) / number(report.requests);
        near("chance to wait", waited, chance_of_waiting(servers, offered));
        let free = f64::from(servers) - offered;
        let mean = chance_of_waiting(servers, offered) * 0.1 / free;
        near("mean wait", report.wait.mean.as_secs_f64(), mean);
        let per_second = number(report.requests) / (60.0 * number(minutes));
        near("number that wait", per_second * report.wait.mean.as_secs_f64(), offered * 10.0 * mean);
        let busy = f64::from(servers) * (1.0 - report.share_idle());
        near("number that is served", busy, per_second * 0.1);
    }
}

/// A pod with one core and any number of requests at once is the queue M/M/1 with processor sharing: busy for
/// the offered load, and not for the longer time in which requests that do not disturb each other overlap.
#[test]
fn requests_that_share_one_core_keep_it_busy_for_the_offered_load() {
    let mut one_pod = scenario(
        facts(&[("min-scale", "1"), ("max-scale", "1")], 0),
        "constant,rate=7rps",
        "exponential,mean=100ms",
        120,
    );
    one_pod.cores =
        [(one_pod.services[0].facts.name.clone(), CoreCount::parse("1").expect("a number"))].into();
    let report = outcome(&one_pod);
    assert_whole(&report, 100);
    let busy = 1.0 - report.share_idle();
    assert!((busy - 0.7).abs() < 0.03 * 0.7, "{busy} of the pod is busy, not 0.7");
    one_pod.cores.clear();
    let busy = 1.0 - outcome(&one_pod).share_idle();
    let expected = 1.0 - libm::exp(-0.7);
    assert!((busy - expected).abs() < 0.03 * expected, "{busy} of the pod is busy, not {expected}");
}

#[test]
fn a_run_that_is_watched_tells_how_far_it_is_and_ends_as_any_other() {
    let scenario = scenario(facts(&[("target", "10")], 0), "constant,rate=5rps", "120ms", 2);
    let mut told = Vec::new();
    let watched = simulate_watched(&scenario, &mut |passed| told.push(passed)).expect("a world");
    assert_eq!(watched, simulate(&scenario).expect("a world"));
    assert!(told.len() > 60 && told.is_sorted() && told.last() <= Some(&scenario.length), "{told:?}");
}

#[test]
fn a_seed_repeats_to_the_last_event_and_another_one_does_not() {
    let first = scenario(
        facts(&[("target", "10")], 0),
        "diurnal,peak=40rps,trough=1rps,period=5m",
        "120ms,p99=800ms",
        10,
    );
    let (one, again) = (simulate(&first).expect("a world"), simulate(&first).expect("a world"));
    assert_eq!(one, again);
    let other = simulate(&Scenario { seed: 8, ..first }).expect("a world");
    assert_ne!(one.fingerprint, other.fingerprint);
}

/// As that of a record does. A fluid is of whole seconds, and begins as ever.
#[test]
fn a_load_may_begin_with_the_autoscaler_at_any_part_of_a_second() {
    let after = scenario(facts(&[("target", "10")], 0), "constant,rate=50rps", "120ms", 3);
    let beginning = LoadBeginning::WithAutoscaler { past_second: Duration::from_millis(400) };
    let with = Scenario { beginning, ..after.clone() };
    let report = outcome(&with);
    assert_eq!(report.requests, outcome(&after).requests);
    assert_eq!(report.counts.first().map(|first| first.at), Some(Duration::ZERO));
    assert_whole(&report, 50);
    let fast =
        |scenario: &Scenario| outcome(&Scenario { pace: SimulationPace::WholeSeconds, ..scenario.clone() });
    assert_eq!(fast(&with), fast(&after));
}

/// Variants meet the same requests: as many arrive, and with a count that never lacks a slot they differ in
/// nothing but pods.
#[test]
fn variants_have_common_random_numbers() {
    let variant = |window: &str| {
        let facts = facts(&[("target", "10"), ("window", window)], 0);
        outcome(&scenario(facts, "diurnal,peak=60rps,trough=0rps,period=10m", "120ms,p99=800ms", 20))
    };
    let (short, long) = (variant("10s"), variant("2m"));
    assert_eq!(short.requests, long.requests);
    let differences = greatest_differences(&short.counts, &long.counts, Duration::from_secs(1_200), 3);
    assert!(!differences.is_empty() && differences.len() <= 3, "{:?} and {:?}", short.counts, long.counts);
}

#[test]
fn class_ahpa_asks_for_what_class_kpa_does_where_no_past_is_known() {
    let counts = |pairs: &[(&str, &str)]| {
        outcome(&scenario(facts(pairs, 0), "diurnal,peak=60rps,trough=5rps,period=10m", "120ms", 20)).counts
    };
    let ahpa = counts(&[("target", "10"), ("class", "ahpa.autoscaling.knative.dev")]);
    assert_eq!(ahpa, counts(&[("target", "10")]));
}

#[test]
fn class_hpa_and_no_time_are_refused() {
    let mut hpa = facts(&[], 0);
    hpa.settings.class = Some(settings::Class::Hpa);
    let problem =
        simulate(&scenario(hpa, "constant,rate=1rps", "1s", 1)).expect_err("its metrics are missing");
    assert!(problem.to_string().contains("default/service/hello has the class hpa"), "{problem}");
    let nothing = scenario(facts(&[], 0), "constant,rate=1rps", "1s", 0);
    assert_eq!(simulate(&nothing), Err(ScenarioProblem::NoLength));
}

/// The fingerprints of three seeds in every build, gnu and musl. The failure of `fingerprints_are_pinned`
/// prints those of a changed world.
const FINGERPRINTS: [(u64, u64); 3] =
    [(1, 13_447_779_081_094_899_142), (7, 11_920_213_291_015_708_036), (42, 17_219_163_296_463_737_470)];

#[test]
fn fingerprints_are_pinned() {
    let found = FINGERPRINTS.map(|(seed, _)| {
        let base = scenario(facts(&[("target", "10")], 0), "constant,rate=50rps", "120ms,p99=800ms", 1);
        (seed, simulate(&Scenario { seed, ..base }).expect("a world").fingerprint)
    });
    assert_eq!(found, FINGERPRINTS, "pin these numbers, after a look at why they changed");
}
