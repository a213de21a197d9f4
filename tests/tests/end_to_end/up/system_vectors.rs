//! The system-level vectors P of the reference behaviour, end to end.

use std::time::Duration;

use tests::grip::Grip;
use tests::{ConfigMap, Ebb, Service};

/// Vectors of this group that no test here is named for, and why.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "P7",
    "a rolling update is the same revision here; pods are replaced one for one, each when its successor is ready",
)];

#[test]
fn every_system_vector_has_a_test_of_its_name_or_is_an_exception() {
    let tests = include_str!("system_vectors.rs").lines().filter(|line| line.starts_with("async fn "));
    let named: Vec<&str> = tests.flat_map(|line| line["async fn ".len()..].split('_')).collect();
    for number in 1..=10 {
        let is_named = named.contains(&format!("p{number}").as_str());
        let is_exception = EXCEPTIONS.iter().any(|(id, _)| *id == format!("P{number}"));
        assert_ne!(is_named, is_exception, "P{number} has neither a test nor an exception, or both");
    }
}

fn from_zero(name: &str) -> Service {
    Service::new(name).scaling("initial-scale", "0")
}

fn zero_allowed() -> ConfigMap {
    ConfigMap::short().set("allow-zero-initial-scale", "true")
}

/// P1: constant concurrency of n times the target keeps n … ⌈⌈n / 0.7⌉ × 1.1⌉ pods ready. On the way one may
/// be missed for a moment, as when it is replaced; two would be a dip.
#[tokio::test]
async fn p1_pods_follow_a_constant_concurrency() {
    const N: usize = 4;
    const MOST: usize = 7;
    let service = from_zero("constant")
        .scaling("target", "6")
        .scaling("target-utilization-percentage", "70")
        .scaling("window", "30s");
    let ebb = Ebb::up(&[service], &zero_allowed()).await;
    let load = ebb.load("constant").path("/?sleep=500");
    let mut traffic = tokio::spawn(async move { load.closed_loop(6 * N, Duration::from_secs(30)).await });
    let mut seen = 0;
    let tally = loop {
        tokio::select! {
            tally = &mut traffic => break tally.expect("the load ends"),
            () = tokio::time::sleep(Duration::from_secs(2)) => {
                let revision = ebb.revision("constant").await.expect("ebb answers");
                assert!(revision.ready() + 1 >= seen, "fell from {seen}: {}", revision.decisions());
                assert!(revision.ready() <= MOST, "{} pods: {}", revision.ready(), revision.decisions());
                seen = seen.max(revision.ready().min(N));
            }
        }
    };
    tally.assert_all_answered();
    assert_eq!(seen, N);
}

/// P2: up, down to zero, up again, with the other algorithm too (the linear one is the main job).
#[tokio::test]
async fn p2_weighted_windows_reach_zero_and_come_back() {
    let ebb = Ebb::up(
        &[from_zero("weighted").scaling("metric-aggregation-algorithm", "weighted-exponential")],
        &zero_allowed(),
    )
    .await;
    for _ in 0..2 {
        ebb.load("weighted")
            .path("/?sleep=50")
            .steady(20, Duration::from_secs(3))
            .await
            .assert_all_answered();
        ebb.until_pods("weighted", 0).await;
    }
}

/// P3: with a target burst capacity of 7, one pod at concurrency 7 lacks room (−4), two at 12 have some (1).
#[tokio::test]
async fn p3_excess_burst_capacity_decides_who_serves() {
    let service = Service::new("burst")
        .scaling("min-scale", "1")
        .scaling("target", "10")
        .scaling("target-utilization-percentage", "70")
        .scaling("target-burst-capacity", "7");
    let ebb = Ebb::up(&[service], &ConfigMap::short().set("routing-dwell", "0s")).await;
    ebb.until_pods("burst", 1).await;
    let load = ebb.load("burst").path("/?sleep=200");
    let seven = load.closed_loop_in_background(7);
    ebb.until("burst", "the activator in the path of one pod", |revision| {
        revision.wanted() == 1
            && revision.field("routing") == "through_activator"
            && last_decision_field(revision, "excess_burst_capacity") == Some(-4)
    })
    .await;
    let five_more = load.closed_loop_in_background(5);
    ebb.until("burst", "two pods that serve directly", |revision| {
        revision.ready() == 2
            && revision.field("routing") == "direct"
            && last_decision_field(revision, "excess_burst_capacity") == Some(1)
    })
    .await;
    seven.end().await.assert_all_answered();
    five_more.end().await.assert_all_answered();
}

fn last_decision_field(revision: &tests::Revision, name: &str) -> Option<i64> {
    revision.field("decisions").as_array()?.last()?[name].as_i64()
}

/// P6: with an activation scale of 5, one request after zero asks for five pods.
#[tokio::test]
async fn p6_one_request_after_zero_activates_five_pods() {
    let ebb = Ebb::up(&[from_zero("activated").scaling("activation-scale", "5")], &zero_allowed()).await;
    ebb.until_pods("activated", 0).await;
    ebb.load("activated").one().await.assert_all_answered();
    ebb.until("activated", "five pods", |revision| revision.wanted() == 5 && revision.ready() == 5).await;
}

/// P5, P8: the lower bound of a live revision is followed up and down to zero, with target burst capacity 0.
#[tokio::test]
async fn p5_p8_an_edited_min_scale_is_followed_to_zero() {
    let service = Service::new("edited").scaling("target-burst-capacity", "0").scaling("window", "6s");
    let ebb = Ebb::up(&[service.clone().scaling("min-scale", "1")], &ConfigMap::short()).await;
    for count in [1, 2, 3, 0] {
        ebb.rewrite(&service.clone().scaling("min-scale", &count.to_string()));
        ebb.until_pods("edited", count).await;
    }
}

/// P4: with an unlimited target burst capacity the activator serves, also while there is a pod, and an idle
/// revision is gone all the same. (How soon, to the second, is the scenarios' to show, in `scaling`.)
#[tokio::test]
async fn p4_an_idle_revision_behind_the_activator_ends() {
    let service = Service::new("behind").scaling("target-burst-capacity", "-1").scaling("window", "6s");
    let ebb = Ebb::up(&[service], &ConfigMap::short()).await;
    assert_eq!(ebb.until_pods("behind", 1).await.field("routing"), "through_activator");
    assert_eq!(ebb.until_pods("behind", 0).await.field("routing"), "through_activator");
}

/// P9: three initial pods without any traffic, and fewer once they have been ready.
#[tokio::test]
async fn p9_initial_pods_start_without_traffic_and_then_leave() {
    let ebb = Ebb::up(&[Service::new("initial").scaling("initial-scale", "3")], &ConfigMap::short()).await;
    // They leave within two seconds, which a busy machine may not be asked in time to see; what was decided
    // about them stays to be read.
    ebb.until("initial", "zero after three ready pods", |revision| {
        revision.pods().is_empty() && revision.had_ready(3)
    })
    .await;
}

/// P10: the autoscaler that owns a sleeping revision is killed; the next request wakes it all the same, once
/// another has taken over.
#[tokio::test]
async fn p10_a_request_wakes_what_slept_when_its_owner_was_killed() {
    let mut grip = Grip::listen().await;
    let ebb = Ebb::up_gripped(&grip, &[from_zero("orphan")], &zero_allowed(), &["--autoscalers", "2"]).await;
    let asleep = ebb.until_pods("orphan", 0).await;
    let owner = asleep.field("owner")["name"].as_str().expect("it has an owner").to_owned();
    grip.kill(&owner).await;
    let woken = ebb.load("orphan").patience(Duration::from_secs(60)).one().await;
    woken.assert_all_answered();
    ebb.until("orphan", "another owner", |revision| revision.field("owner")["name"] != owner.as_str()).await;
}
