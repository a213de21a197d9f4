//! Faults that a scenario names.

use super::*;

fn with_fault(scenario: &Scenario, fault: &str) -> Scenario {
    Scenario { faults: vec![ScenarioFault::parse(fault).expect("a fault")], ..scenario.clone() }
}

#[test]
fn a_killed_pod_loses_what_it_holds_and_another_one_takes_its_place() {
    let calm = scenario(facts(&[("target", "10")], 4), "constant,rate=50rps", "200ms", 5);
    let killed = with_fault(&calm, "pods-killed,at=2m,service=hello,pods=1");
    let (before, after) = (outcome(&calm), outcome(&killed));
    assert_eq!((before.refused, before.requests), (0, after.requests));
    // At most four requests run in a pod, and forty wait.
    assert!((1..=44).contains(&after.refused), "{after:?}");
    assert_whole(&after, 50);
    // Another pod takes two seconds to start, and the count stays as it was ordered.
    assert!(after.waited_for_growth >= before.waited_for_growth, "{before:?} {after:?}");
    let share = after.pod_hours() / before.pod_hours();
    assert!((0.9..1.1).contains(&share), "{before:?} {after:?}");
    assert_eq!(outcome(&killed), after, "the same faults give the same numbers");
}

#[test]
fn all_pods_of_a_service_may_be_killed_and_their_cores_with_them() {
    let calm = scenario(facts(&[("target", "10")], 0), "constant,rate=50rps", "100ms", 4);
    let cores = calm.services.iter().map(|service| (service.facts.name.clone(), core_count("4")));
    let calm = Scenario { cores: cores.collect(), ..calm };
    let report = outcome(&with_fault(&calm, "pods-killed,at=90s,pods=1000"));
    assert!(report.refused > 0 && report.waited_from_zero > 0, "{report:?}");
    // They wait for pods that start anew, and are answered.
    assert!(report.refused < 50 && report.wait.longest > Duration::from_secs(1), "{report:?}");
    assert_whole(&report, 50);
}

fn core_count(text: &str) -> CoreCount {
    CoreCount::parse(text).expect("a number")
}

#[test]
fn starts_that_take_longer_let_requests_wait_for_longer() {
    let calm = scenario(facts(&[("target", "10")], 10), "step,from=10rps,to=200rps,at=2m", "100ms", 4);
    let slow = with_fault(&calm, "slow-starts,at=110s,length=1m,times=5");
    let (before, after) = (outcome(&calm), outcome(&slow));
    assert_eq!((before.requests, after.refused), (after.requests, 0));
    assert!(after.wait.p99 > before.wait.p99, "{before:?} {after:?}");
    // It is over before it would matter.
    let over = with_fault(&calm, "slow-starts,at=30s,length=30s,times=5");
    assert_eq!(outcome(&over).wait.p99, before.wait.p99);
}

/// The last count that was ordered.
fn last_count(report: &ServiceReport) -> PodCount {
    report.counts.last().expect("a count was ordered").count
}

#[test]
fn another_autoscaler_goes_on_as_the_killed_one_would_have() {
    let calm = scenario(facts(&[("target", "10")], 0), "constant,rate=50rps", "200ms", 5);
    let before = outcome(&calm);
    for fault in ["autoscaler-killed,at=2m,pause=15s", "takeover,at=2m"] {
        let after = outcome(&with_fault(&calm, fault));
        assert_eq!((after.requests, after.refused), (before.requests, 0), "{fault}");
        assert_whole(&after, 50);
        // The pods go on, and what they tell of their past keeps the count from falling.
        let share = after.pod_hours() / before.pod_hours();
        assert!((0.8..1.2).contains(&share), "{fault}: {before:?} {after:?}");
        let fell = after.counts.iter().any(|recorded| recorded.count == PodCount::ZERO);
        assert!(!fell, "{fault}: {:?}", after.counts);
        assert_eq!(outcome(&with_fault(&calm, fault)), after, "the same faults give the same numbers");
    }
}

#[test]
fn without_an_autoscaler_no_count_changes() {
    let step = "step,from=10rps,to=200rps,at=2m";
    let calm = scenario(facts(&[("target", "10"), ("max-scale", "20")], 10), step, "100ms", 6);
    let killed = with_fault(&calm, "autoscaler-killed,at=110s,pause=40s");
    let after = outcome(&killed);
    let absent = Duration::from_secs(110)..Duration::from_secs(150);
    assert!(!after.counts.iter().any(|recorded| absent.contains(&recorded.at)), "{:?}", after.counts);
    // The one that comes sees the load, and the requests that have waited are served.
    let (last, expected) = (last_count(&after), last_count(&outcome(&calm)));
    assert!(last.value().abs_diff(expected.value()) <= 1, "{last} and {expected}: {:?}", after.counts);
    assert!(after.wait.longest > Duration::from_secs(1), "{after:?}");
}

#[test]
fn pods_that_start_behind_slow_or_lost_links_are_used_later() {
    let step = "step,from=10rps,to=200rps,at=2m";
    let calm = scenario(facts(&[("target", "10"), ("max-scale", "20")], 10), step, "100ms", 6);
    let before = outcome(&calm);
    for fault in [
        "pod-links-slow,at=110s,length=1m,delay=3s,service=hello",
        "pod-links-lost,at=110s,length=30s",
        "activator-link-slow,at=110s,length=1m,delay=3s",
        "activator-link-lost,at=110s,length=30s",
    ] {
        let after = outcome(&with_fault(&calm, fault));
        assert_eq!((after.requests, after.refused), (before.requests, 0), "{fault}");
        assert!(after.wait.p99 > before.wait.p99, "{fault}: {before:?} {after:?}");
        let (last, expected) = (last_count(&after), last_count(&before));
        assert!(last.value().abs_diff(expected.value()) <= 1, "{fault}: {:?}", after.counts);
    }
}

#[test]
fn faults_that_cannot_happen_are_refused() {
    let calm = scenario(facts(&[("target", "10")], 0), "constant,rate=5rps", "100ms", 5);
    let problem = |scenario: &Scenario| simulate(scenario).expect_err("it cannot happen").to_string();
    let other = problem(&with_fault(&calm, "pods-killed,at=1m,service=other"));
    assert_eq!(other, "a fault is about the Service \"other\", which is none of default/service/hello");
    let late = problem(&with_fault(&calm, "pods-killed,at=5m"));
    assert_eq!(late, "a fault is at 5m, and the load ends after 5m");
    let fast = Scenario { pace: SimulationPace::WholeSeconds, ..with_fault(&calm, "pods-killed,at=1m") };
    assert!(problem(&fast).contains("leave --fast out"), "{}", problem(&fast));
}
