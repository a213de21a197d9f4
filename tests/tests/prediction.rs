//! Pods before demand on real processes, with minutes of a second: `prediction-bin: 1s`.
//!
//! `cargo suite prediction`. It takes half an hour, for demand rises once in 60 s; `$PREDICTION_RISES` is the
//! number of rises, 30 unless it is set. The first nine are for learning, and of the others one in ten may be
//! late.
//!
//! `.ci/all` asks for five. The first rule that can know anything compares with the same minute of the last
//! three hours, so it has an expectation for the fourth rise; a rule is in force once an hour has ended in
//! which it would have saved requests, so from the fifth rise on. Where no more than nine rises are asked
//! for, those from the fifth on are judged by one number each: at most a tenth as many requests wait as with
//! class kpa.

use std::time::{Duration, UNIX_EPOCH};

use runtime::wall_time;
use tests::{ConfigMap, Ebb, Service, Tally};

const AHPA: &str = "ahpa.autoscaling.knative.dev";
const RISES: usize = 30;
/// After so many rises class ahpa is judged.
const LEARNING: usize = 9;
/// After so many rises a rule can be in force: three hours have to be known, and one has to be replayed.
const RISES_BEFORE_A_RULE: usize = 4;
/// The seconds of a minute at which demand may begin, [`LEAD`] before its first rise. Rules are chosen as an
/// hour of prediction ends, which is a minute of the clock: after one rise is over, and well before the next.
const FIRST_SECOND: std::ops::Range<u64> = 5..35;
/// Demand is low for so long before the first rise: a rise is what is more than in the three minutes before.
const LEAD: Duration = Duration::from_secs(5);
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
    let config = ConfigMap::short().set("prediction-bin", "1s").set("prediction-budget", "50%");
    // Hours of local time are minutes of the clock there.
    config.set("time-zone", "UTC")
}

fn number_of_rises() -> usize {
    let asked = std::env::var("PREDICTION_RISES").ok();
    let rises = asked.map_or(RISES, |asked| asked.parse().expect("PREDICTION_RISES is a whole number"));
    let least = RISES_BEFORE_A_RULE + 1;
    assert!(rises >= least, "PREDICTION_RISES is {rises}, and no rule is in force before rise {least}");
    rises
}

/// Waits for a second of the clock at which demand may begin.
async fn until_first_second() {
    let since_epoch = wall_time().duration_since(UNIX_EPOCH).expect("the clock shows a time after 1970");
    let second = since_epoch.as_secs() % PERIOD.as_secs();
    if !FIRST_SECOND.contains(&second) {
        let seconds = (FIRST_SECOND.start + PERIOD.as_secs() - second) % PERIOD.as_secs();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// The requests that waited in each rise.
async fn waits_of_rises(ebb: &Ebb, name: &str, rises: usize) -> Vec<usize> {
    let load = ebb.load(name).path("/?sleep=1000");
    let low = load.in_background(LOW_RATE);
    let high = load.with_own_connections();
    tokio::time::sleep(LEAD).await;
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
    until_first_second().await;
    let (reactive, early) =
        tokio::join!(waits_of_rises(&ebb, "reactive", rises), waits_of_rises(&ebb, "early", rises));
    println!("requests that waited, by rises: class kpa {reactive:?}, class ahpa {early:?}");
    let seen = ebb.explain("early").await.expect("ebb answers");
    let is_whole = rises > LEARNING;
    let first_judged = if is_whole { LEARNING } else { RISES_BEFORE_A_RULE };
    let (judged_reactive, judged_early) = (&reactive[first_judged..], &early[first_judged..]);
    let late = judged_early.iter().filter(|waited| **waited > 0).count();
    let mut pairs = judged_reactive.iter().zip(judged_early);
    let is_foreseen = if is_whole {
        late * 10 <= judged_early.len()
    } else {
        pairs.all(|(without, with)| with * 10 <= *without)
    };
    assert!(is_foreseen, "requests waited in {late} of {} rises: {early:?}\n{seen}", judged_early.len());
    assert!(judged_reactive.iter().all(|waited| *waited > 0), "class kpa is late: {reactive:?}");
}
