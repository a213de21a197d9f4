//! Pods before demand on real processes, with minutes of a second: `prediction-bin: 1s`.
//!
//! `cargo suite prediction`. It takes half an hour, for demand rises once in 60 s; `$PREDICTION_RISES` is the
//! number of rises, 30 unless it is set. The first nine are for learning, and of the others one in ten may be
//! late.

use std::time::Duration;

use tests::{ConfigMap, Ebb, Service, Tally};

const AHPA: &str = "ahpa.autoscaling.knative.dev";
const RISES: usize = 30;
/// After so many rises class ahpa is judged.
const LEARNING: usize = 9;
/// An hour of prediction, whose minutes last a second. Rules compare hours with hours, so rises that came
/// more often would not be learnt in less time.
const PERIOD: Duration = Duration::from_secs(60);
/// Demand is high for so long.
const HIGH: Duration = Duration::from_secs(15);
/// Requests a second, each of which lasts a second.
const LOW_RATE: u32 = 3;
const HIGH_RATE: u32 = 25;

/// A Service whose pods take three seconds to start, and ten requests at once.
fn service(name: &str) -> Service {
    Service::new(name)
        .args(&["--start-delay-ms", "3000"])
        .spec("containerConcurrency: 10")
        .scaling("min-scale", "1")
        .scaling("target-burst-capacity", "-1")
}

fn config() -> ConfigMap {
    ConfigMap::short().set("prediction-bin", "1s").set("prediction-budget", "50%")
}

fn number_of_rises() -> usize {
    let asked = std::env::var("PREDICTION_RISES").ok();
    let rises = asked.map_or(RISES, |asked| asked.parse().expect("PREDICTION_RISES is a whole number"));
    assert!(rises > LEARNING, "{rises} rises are too few; the first {LEARNING} are for learning");
    rises
}

/// The requests that waited in each rise.
async fn waits_of_rises(ebb: &Ebb, name: &str, rises: usize) -> Vec<usize> {
    let load = ebb.load(name).path("/?sleep=1000");
    let low = load.in_background(LOW_RATE);
    let high = load.with_own_connections();
    let mut periods = tokio::time::interval(PERIOD);
    let (mut waits, mut all) = (Vec::new(), Tally::default());
    for _ in 0..rises {
        periods.tick().await;
        let tally = high.steady(HIGH_RATE, HIGH).await;
        waits.push(tally.waited);
        all.merge(tally);
    }
    all.assert_all_answered();
    low.end().await.assert_all_answered();
    waits
}

#[tokio::test]
async fn demand_that_rises_each_minute_finds_its_pods_ready() {
    let rises = number_of_rises();
    let services = [service("reactive"), service("early").scaling("class", AHPA)];
    let ebb = Ebb::up(&services, &config()).await;
    for service in &services {
        ebb.until_pods(service.name(), 1).await;
    }
    let (reactive, early) =
        tokio::join!(waits_of_rises(&ebb, "reactive", rises), waits_of_rises(&ebb, "early", rises));
    println!("requests that waited, by rises: class kpa {reactive:?}, class ahpa {early:?}");
    let judged = rises - LEARNING;
    let late = early[LEARNING..].iter().filter(|waited| **waited > 0).count();
    let seen = ebb.explain("early").await.expect("ebb answers");
    assert!(late * 10 <= judged, "in {late} of {judged} rises a request waited: {early:?}\n{seen}");
    assert!(reactive[LEARNING..].iter().all(|waited| *waited > 0), "class kpa is late: {reactive:?}");
}
