//! No lost request: cold starts, bursts, scale-downs, path switches, restarts and rolling updates, all under
//! load.

use std::time::Duration;

use nix::sys::signal::Signal;
use rstest::rstest;
use tests::{ConfigMap, Ebb, Service, Tally};
use tokio::task::JoinSet;

fn from_zero(name: &str) -> Service {
    Service::new(name).scaling("initial-scale", "0")
}

/// `ebb up` with that many activators behind its listener; where there are several, with two autoscalers as
/// well, which divide the services among them.
async fn up(activators: u32, services: &[Service], config: &ConfigMap) -> Ebb {
    let autoscalers = if activators == 1 { "1" } else { "2" };
    let arguments = ["--activators", &activators.to_string(), "--autoscalers", autoscalers];
    Ebb::up_with(services, config, &arguments).await
}

fn zero_allowed() -> ConfigMap {
    ConfigMap::short().set("allow-zero-initial-scale", "true")
}

#[rstest]
#[tokio::test]
async fn twenty_services_wake_and_sleep_five_times(#[values(1, 3)] activators: u32) {
    let services: Vec<Service> = (0..20).map(|index| from_zero(&format!("sleeper-{index}"))).collect();
    let ebb = std::sync::Arc::new(up(activators, &services, &zero_allowed()).await);
    let mut cycles = JoinSet::new();
    for service in services {
        let ebb = std::sync::Arc::clone(&ebb);
        cycles.spawn(async move {
            let mut tally = Tally::default();
            for _ in 0..5 {
                tally.merge(ebb.load(service.name()).one().await);
                ebb.until_pods(service.name(), 0).await;
            }
            tally
        });
    }
    let mut tally = Tally::default();
    while let Some(cycle) = cycles.join_next().await {
        tally.merge(cycle.expect("a cycle ends"));
    }
    tally.assert_all_answered();
    assert_eq!(tally.sent, 100);
    assert_eq!(tally.by_process.len(), 100, "each wake starts a new process");
}

async fn a_burst_at_zero_pods(activators: u32, service: Service) -> Tally {
    let ebb = up(activators, std::slice::from_ref(&service), &zero_allowed()).await;
    let tally = ebb.load(service.name()).path("/?sleep=20").burst(1_000).await;
    tally.assert_all_answered();
    let revision = ebb.revision(service.name()).await.expect("ebb answers");
    assert!(revision.wanted() <= 20, "{revision:?}");
    tally
}

#[rstest]
#[tokio::test]
async fn a_burst_of_a_thousand_at_zero_pods_with_a_hard_limit(#[values(1, 3)] activators: u32) {
    let service = from_zero("burst-one").spec("containerConcurrency: 1").scaling("max-scale", "20");
    let tally = a_burst_at_zero_pods(activators, service).await;
    assert_eq!(tally.most_in_one_pod, 1);
}

#[rstest]
#[tokio::test]
async fn a_burst_of_a_thousand_at_zero_pods_without_a_limit(#[values(1, 3)] activators: u32) {
    a_burst_at_zero_pods(activators, from_zero("burst-free").scaling("max-scale", "20")).await;
}

#[rstest]
#[tokio::test]
async fn scaling_down_from_eight_to_one_under_load(#[values(1, 3)] activators: u32) {
    let service = Service::new("shrinking").scaling("target", "10").scaling("min-scale", "8");
    let ebb = up(activators, std::slice::from_ref(&service), &ConfigMap::short()).await;
    ebb.until_pods("shrinking", 8).await;
    let traffic = ebb.load("shrinking").path("/?sleep=50").in_background(60);
    ebb.rewrite(&service.scaling("min-scale", "1"));
    ebb.until_pods("shrinking", 1).await;
    traffic.end_after_a_second().await.assert_all_answered();
}

#[rstest]
#[tokio::test]
async fn the_path_switches_both_ways_under_load(#[values(1, 3)] activators: u32) {
    let service = Service::new("switching")
        .scaling("min-scale", "2")
        .scaling("target", "10")
        .scaling("target-burst-capacity", "0");
    let ebb =
        up(activators, std::slice::from_ref(&service), &ConfigMap::short().set("routing-dwell", "0s")).await;
    ebb.until_pods("switching", 2).await;
    let traffic = ebb.load("switching").path("/?sleep=20").in_background(100);
    for (capacity, routing) in [
        ("0", "direct"),
        ("-1", "through_activator"),
        ("5", "direct"),
        ("500", "through_activator"),
        ("0", "direct"),
    ] {
        ebb.rewrite(&service.clone().scaling("target-burst-capacity", capacity));
        ebb.until("switching", &format!("routing {routing} at capacity {capacity}"), |revision| {
            revision.field("routing") == routing
        })
        .await;
    }
    traffic.end_after_a_second().await.assert_all_answered();
}

#[rstest]
#[tokio::test]
async fn parts_are_rebuilt_under_load_without_a_change_of_count(#[values(1, 3)] activators: u32) {
    // 35 in flight at 14 per pod: in the middle of what 3 pods take. A window of usual length, because a busy
    // machine's jitter is load too, and short windows rightly follow it.
    let service =
        Service::new("rebuilt").scaling("target", "20").scaling("window", "30s").scaling("min-scale", "1");
    let ebb = up(activators, &[service, from_zero("asleep")], &zero_allowed()).await;
    ebb.until_pods("rebuilt", 1).await;
    let traffic = ebb.load("rebuilt").path("/?sleep=500").in_background(70);
    // A count that is ordered and not yet written when the autoscaler goes is decided anew after it.
    ebb.until("rebuilt", "three pods, and a load that calls for them", |revision| {
        revision.is_settled_at(3) && revision.field("stable_value").as_f64().is_some_and(|value| value > 29.0)
    })
    .await;
    for part in ["autoscaler", "activator", "autoscaler"] {
        let (code, _, stderr) = ebb.run(&["restart", part]).await;
        assert_eq!(code, 0, "{stderr}");
        for _ in 0..20 {
            let revision = ebb.revision("rebuilt").await.expect("ebb answers");
            assert_eq!(revision.wanted(), 3, "after rebuilding the {part}: {}", revision.decisions());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        ebb.until_pods("asleep", 0).await;
        ebb.load("asleep").one().await.assert_all_answered();
    }
    traffic.end().await.assert_all_answered();
}

#[rstest]
#[tokio::test]
async fn a_template_edit_under_load_replaces_the_pods(#[values(1, 3)] activators: u32) {
    let service = Service::new("rolling").scaling("min-scale", "2");
    let ebb = up(activators, std::slice::from_ref(&service), &ConfigMap::short()).await;
    let before = ebb.until_pods("rolling", 2).await.pids("app_pid");
    let traffic = ebb.load("rolling").path("/?sleep=30").in_background(100);
    ebb.rewrite(&service.env("GENERATION", "2"));
    let after = ebb
        .until("rolling", "two new pods alone", |revision| {
            let pids = revision.pids("app_pid");
            revision.ready() == 2 && pids.len() == 2 && pids.iter().all(|pid| !before.contains(pid))
        })
        .await;
    assert_eq!(after.wanted(), 2);
    traffic.end_after_a_second().await.assert_all_answered();
}

#[rstest]
#[tokio::test]
async fn an_interrupt_under_load_finishes_what_was_sent(#[values(1, 3)] activators: u32) {
    let mut ebb =
        up(activators, &[Service::new("interrupted").scaling("min-scale", "2")], &ConfigMap::short()).await;
    ebb.until_pods("interrupted", 2).await;
    let load = ebb.load("interrupted").path("/?sleep=100");
    let traffic = tokio::spawn(async move { load.steady(100, Duration::from_secs(6)).await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    ebb.signal(Signal::SIGINT);
    assert_eq!(ebb.ended().await.code(), Some(0));
    let tally = traffic.await.expect("the load ends");
    tally.assert_none_lost();
    assert!(tally.answered() > 100, "{:?}", tally.outcomes);
}

/// From one activator to three and back, and the other way round.
#[rstest]
#[tokio::test]
async fn two_take_overs_under_load(#[values(1, 3)] activators: u32) {
    let service = Service::new("kept").scaling("min-scale", "3").scaling("max-scale", "3");
    let service = service.spec("containerConcurrency: 10");
    let mut first = up(activators, &[service], &ConfigMap::short()).await;
    let before = first.until_pods("kept", 3).await.pids("app_pid");
    let long = first.load("kept").path("/?sleep=8000").with_own_connections();
    let long = tokio::spawn(async move { long.burst(8).await });
    let steady = first.load("kept").path("/?sleep=20");
    let steady = tokio::spawn(async move { steady.steady(100, Duration::from_secs(9)).await });
    first
        .until("kept", "8 requests in flight", |revision| {
            revision.pods().iter().filter_map(|pod| pod["in_flight"].as_f64()).sum::<f64>() >= 8.0
        })
        .await;
    let one = ["--activators", "1", "--autoscalers", "1"];
    let several = ["--activators", "3", "--autoscalers", "2"];
    let (own, other) = if activators == 1 { (&one, &several) } else { (&several, &one) };
    let mut second = first.successor_with(other).await;
    let third = second.successor_with(own).await;
    for tally in [long.await.expect("no panic"), steady.await.expect("no panic")] {
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    }
    for ended in [&mut first, &mut second] {
        assert_eq!(ended.ended().await.code(), Some(0), "{}", ended.output());
    }
    assert_eq!(third.until_pods("kept", 3).await.pids("app_pid"), before);
}

#[rstest]
#[tokio::test]
async fn an_emptied_file_under_load(#[values(1, 3)] activators: u32) {
    let service = Service::new("kept").scaling("min-scale", "2");
    let ebb = up(activators, std::slice::from_ref(&service), &ConfigMap::short()).await;
    let before = ebb.until_pods("kept", 2).await.pids("app_pid");
    let load = ebb.load("kept").path("/?sleep=20");
    let traffic = tokio::spawn(async move { load.steady(100, Duration::from_secs(7)).await });
    std::fs::write(ebb.folder().join("kept.yaml"), "").expect("the folder can be written");
    tests::eventually("it is refused", Duration::from_secs(30), || async {
        let (_, stdout, stderr) = ebb.run(&["get"]).await;
        if stderr.contains("kept.yaml: holds no manifest") { Ok(()) } else { Err(stdout + &stderr) }
    })
    .await;
    ebb.rewrite(&service);
    traffic.await.expect("the load ends").assert_all_answered();
    assert_eq!(ebb.until_pods("kept", 2).await.pids("app_pid"), before);
}

#[rstest]
#[tokio::test]
async fn a_burst_at_slow_starters_at_zero_pods(#[values(1, 3)] activators: u32) {
    let service = from_zero("interpreter").args(&["--start-work-ms", "400"]).spec("containerConcurrency: 1");
    let ebb = up(activators, &[service.scaling("max-scale", "10")], &zero_allowed()).await;
    let load = ebb.load("interpreter").path("/?sleep=100").with_own_connections();
    let tally = load.burst(60).await;
    tally.assert_all_answered();
    assert_eq!(tally.most_in_one_pod, 1);
}
