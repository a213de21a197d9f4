use super::*;

const WINDOW: Duration = Duration::from_secs(60);

fn pods(count: u32) -> PodCount {
    PodCount::new(count)
}

fn check(rows: impl IntoIterator<Item = (impl Into<Sentence>, &'static str)>) {
    for (said, words) in rows {
        let sentence: Sentence = said.into();
        assert_eq!(sentence.to_string(), words);
        assert_eq!(serde_json::to_value(sentence).unwrap(), serde_json::Value::from(words));
    }
}

#[test]
fn needs_read_as_sentences() {
    let (metric, ready, count, window) = (Metric::Rps, pods(2), pods(4), WINDOW);
    let unheard = SilentPods { pods: pods(2), activators: pods(1) };
    check([
        (
            NeedText::StableWindow { value: 1.5, metric, window, target: 150.0 },
            "1.5 requests per second over 1m, 150 per pod",
        ),
        (
            NeedText::PanicWindow {
                value: 7.0 / 3.0,
                metric: Metric::Concurrency,
                window: WINDOW / 10,
                need: 4.0,
                ready,
            },
            "2.33 requests in flight over 6s need 4; ready are 2",
        ),
        (NeedText::PresentAndNoneReady { need: count }, "present requests need 4; no pod is ready"),
        (NeedText::Present { need: 4.0, ready }, "present requests need 4; ready are 2"),
        (
            NeedText::ScaleUpRate { ready, count, rate: 2.0 },
            "from 2 ready at most to 4 at once (max-scale-up-rate 2)",
        ),
        (
            NeedText::ScaleDownRate { ready, count, rate: 1.5 },
            "from 2 ready not below 4 at once (max-scale-down-rate 1.5)",
        ),
        (NeedText::ActivationScale { count }, "at least 4 while there is any need (activation-scale)"),
        (NeedText::FoundAtStart { count, window }, "the 4 pods found at the start stay for 1m"),
        (
            NeedText::MostInPanic { count, window },
            "4 were needed since panic began, which ends 1m after the last alarm",
        ),
        (
            NeedText::Unheard { count, unheard, least: pods(3), most: pods(6) },
            "the count stays at 4: 2 ready pods and 1 activator are not heard, so 3 to 6 are needed",
        ),
        (
            NeedText::PathChanges { count, least: pods(3), most: pods(5) },
            "the count stays at 4: requests change between pods and activators, so 3 to 5 are needed",
        ),
        (
            NeedText::RecentPeak { count, delay: WINDOW },
            "4 were needed within the last 1m (scale-down-delay)",
        ),
        (NeedText::BetweenTicks { count }, "the count stays at 4: between two ticks it only rises"),
    ]);
}

#[test]
fn one_that_is_not_heard_is_spoken_of_as_one() {
    for (pods_silent, activators_silent, words) in [
        (1, 0, "1 ready pod is"),
        (0, 1, "1 activator is"),
        (0, 3, "3 activators are"),
        (1, 1, "1 ready pod and 1 activator are"),
    ] {
        let silent = SilentPods { pods: pods(pods_silent), activators: pods(activators_silent) };
        assert_eq!(silent.to_string(), words);
    }
}

#[test]
fn bounds_read_as_sentences() {
    let (least, most, present) = (pods(2), pods(3), pods(4));
    check([
        (BoundText::InitialScale { least }, "starts with 2 pods (initial-scale) until they were ready once"),
        (BoundText::MinScale { least }, "never below 2 (min-scale)"),
        (BoundText::MaxScale { most }, "never above 3 (max-scale)"),
        (BoundText::Unknown { present }, "nothing is known of the load yet, so the present count of 4 stays"),
        (BoundText::Panic { present }, "panic mode ends no pods: the count stays at 4"),
        (BoundText::BetweenTicks { present }, "between two ticks the count only rises: it stays at 4"),
    ]);
}

#[test]
fn the_rules_around_zero_read_as_sentences() {
    let (timeout, window, retention, grace) = (WINDOW, WINDOW, WINDOW, WINDOW);
    let to_go = Some(Duration::from_millis(1200));
    let time = Duration::from_millis(61_900);
    check([
        (ZeroText::Disabled, "scale to zero is turned off (enable-scale-to-zero)"),
        (
            ZeroText::InFlight { requests: 1.0, age: Some(Duration::from_millis(42_700)) },
            "1 request in flight for 42s: one pod stays (in-flight-holds-pods)",
        ),
        (
            ZeroText::InFlight { requests: 3.0, age: None },
            "3 requests in flight: one pod stays (in-flight-holds-pods)",
        ),
        (
            ZeroText::GivenUp { timeout },
            "no pods got ready within the activation timeout of 1m, and no request waits: given up",
        ),
        (
            ZeroText::Starting { timeout },
            "still starting; given up 1m after the start if no request waits then",
        ),
        (ZeroText::ActivatorsFirst, "the activators take over first, then the last pod may go"),
        (
            ZeroText::RecentlyActive { window, to_go: None },
            "active for less than the stable window of 1m: one pod stays",
        ),
        (
            ZeroText::RecentlyActive { window, to_go },
            "active for less than the stable window of 1m: one pod stays; 2s to go",
        ),
        (ZeroText::Unacknowledged, "not every activator has acknowledged that it answers for the revision"),
        (ZeroText::NoTraffic { time }, "no traffic for 1m1s, and the activators answer"),
        (
            ZeroText::Retained { retention, to_go: None },
            "the last pod is retained for 1m after traffic ended",
        ),
        (
            ZeroText::Retained { retention, to_go },
            "the last pod is retained for 1m after traffic ended; 2s to go",
        ),
        (ZeroText::Answered { time }, "no traffic, and the activators have answered for 1m1s"),
        (
            ZeroText::Grace { grace, to_go: None },
            "the activators must answer for the grace period of 1m first",
        ),
        (
            ZeroText::Grace { grace, to_go },
            "the activators must answer for the grace period of 1m first; 2s to go",
        ),
    ]);
}

#[test]
fn states_read_as_sentences() {
    check([
        (StandingText::NoData, "no data: no reporter was heard, so everything stays as it is"),
        (StandingText::NothingKnown, "no load is known yet, so the count stays as it is"),
        (
            StandingText::Panic { count: pods(4), age: Duration::from_millis(3900), window: WINDOW },
            "panic mode holds 4 pods; begun or extended 3s ago, it lasts 1m",
        ),
        (
            StandingText::Load { value: 0.01234, target: 70.0 },
            "the stable window still averages 0.01 with a target of 70 per pod",
        ),
        (StandingText::EarlierPeak, "an earlier peak holds the count"),
        (
            StandingText::MetricsChanged { sync_period: Duration::from_secs(15) },
            "its metrics were changed: the count stays until their first sync, within 15s",
        ),
    ]);
}

#[test]
fn connections_that_hold_a_count_read_as_a_sentence() {
    let peers = PeerList::of([[10, 0, 0, 7], [10, 0, 0, 8]].map(std::net::IpAddr::from));
    let present = PodCount::new(2);
    let held = ConnectionHoldText { present, count: 4, unreadable_pods: 0, age: NonZeroU32::new(192), peers };
    let end = " (adopted-connections-hold; ebb.dev/forget-connections ends the wait)";
    for (text, expected) in [
        (
            held,
            "the count stays at 2: 4 connections from before the adoption past ebb, the oldest for 3m12s, from 10.0.0.7, 10.0.0.8",
        ),
        (
            ConnectionHoldText { count: 1, age: None, peers: PeerList::default(), ..held },
            "the count stays at 2: 1 connection from before the adoption past ebb",
        ),
        (
            ConnectionHoldText { count: 0, unreadable_pods: 1, ..held },
            "the count stays at 2: 1 pod whose kernel does not show whether the app has such connections",
        ),
        (
            ConnectionHoldText {
                count: 1,
                age: None,
                unreadable_pods: 2,
                peers: PeerList::of(peers.iter().take(1)),
                ..held
            },
            "the count stays at 2: 1 connection from before the adoption past ebb, from 10.0.0.7; 2 pods whose kernel does not show whether the apps have such connections",
        ),
    ] {
        assert_eq!(Sentence::from(text).to_string(), format!("{expected}{end}"));
    }
}
