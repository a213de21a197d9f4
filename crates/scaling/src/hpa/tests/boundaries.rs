//! Limits and windows, one step at a time: rows E, F, G, N5 to N7.

use super::*;
use crate::hpa::limits::{LimitedCount, Limiter};
use crate::hpa::stabilize::{self, Windows};
use crate::hpa::steps::Steps;

/// `id | current | want | min..max | count | reason`.
pub(in crate::hpa) const WITHOUT_BEHAVIOR: &str = "
    E1 | 5 | 7 | 3..8 | 7 | DesiredWithinRange
    E2 | 3 | 1 | 2..8 | 2 | TooFewReplicas
    E3 | 1 | 0 | 0..10 | 0 | DesiredWithinRange
    E4 | 20 | 1000 | 1..10 | 10 | TooManyReplicas
    E5 | 3 | 1000 | 1..2000 | 6 | ScaleUpLimit
    E6 | 1 | 100 | 1..100 | 4 | ScaleUpLimit
    E7 | 0 | 9 | 0..10 | 4 | ScaleUpLimit
    E8 | 10 | 20 | 1..20 | 20 | DesiredWithinRange
    the minimum wins over the doubling | 1 | 3 | 7..9 | 7 | TooFewReplicas
    both limits are the same | 2 | 5 | 1..4 | 4 | TooManyReplicas
    a doubling beyond all counts | 2000000000 | 2147483647 | 1..2147483647 | 2147483647 | DesiredWithinRange
";

/// `id | current | want | min..max | rules | events | count | reason`: `+9@20` were 9 more 20 s ago.
pub(in crate::hpa) const WITH_BEHAVIOR: &str = "
    F1  | 3 | 1000 | 1..2000 | up=1%/60 | | 4 | ScaleUpLimit
    F2  | 10 | 50 | 1..1000 | behavior | | 20 | ScaleUpLimit
    F3  | 10 | 500 | 1..1000 | up=100/60 up=100%/60 | | 110 | ScaleUpLimit
    F4  | 10 | 500 | 1..1000 | up=2/60 up=100%/60 | | 20 | ScaleUpLimit
    F5  | 10 | 50 | 1..1000 | up=30/60 | | 40 | ScaleUpLimit
    F6  | 10 | 50 | 1..1000 | up=200%/60 | | 30 | ScaleUpLimit
    F7  | 100 | 1000 | 100..150 | behavior | | 150 | TooManyReplicas
    F8  | 1 | 9 | 1..99 | up-select=min up=2/60 up=50%/60 | | 2 | ScaleUpLimit
    F9  | 100 | 2 | 1..1000 | down=20/60 down=1%/60 | | 80 | ScaleDownLimit
    F10 | 100 | 2 | 1..1000 | down=2/60 down=1%/60 | | 98 | ScaleDownLimit
    F11 | 10 | 0 | 1..1000 | down=100/60 | | 1 | TooFewReplicas
    F12 | 10 | 2 | 5..1000 | down=100%/60 | | 5 | TooFewReplicas
    F13 | 10 | 2 | 1..1000 | down=5/60 | | 5 | ScaleDownLimit
    F14 | 5 | 1 | 1..9 | down-select=min down=2/60 down=50%/60 | | 3 | ScaleDownLimit
    F15 | 1000 | 3 | 3..2000 | down=20/60 | | 980 | ScaleDownLimit
    F16 | 100 | 500 | 1..1000 | up=5/120 | +1@100 +5@60 +9@20 | 100 | ScaleUpLimit
    F17 | 100 | 500 | 1..1000 | up=150/120 | +1@100 +5@60 +9@20 | 235 | ScaleUpLimit
    F18 | 100 | 500 | 1..1000 | up=200%/120 | +1@100 +5@60 +9@20 | 255 | ScaleUpLimit
    F19 | 6 | 24 | 1..1000 | up=300%/300 | +4@60 -2@60 | 16 | ScaleUpLimit
    F20 | 100 | 2 | 1..1000 | down=5/120 | -1@100 -5@60 -9@20 | 100 | ScaleDownLimit
    F21 | 100 | 0 | 1..1000 | down=50%/120 | -2@100 -4@60 -6@20 | 56 | ScaleDownLimit
    F22 | 10 | 1 | 1..1000 | down=50%/180 | +2@60 -4@60 | 6 | ScaleDownLimit
    F23 | 100 | 0 | 1..1000 | down=10%/120 | -10@100 -10@60 -10@20 | 100 | ScaleDownLimit
    F24 | 10 | 5 | 1..1000 | down=1000%/120 | -10@100 -10@60 -10@20 | 5 | DesiredWithinRange
    F25 | 0 | 5 | 0..10 | up=100%/15 | | 0 | ScaleUpLimit
    F27 | 3 | 60 | 1..100 | up=700%/60 | | 24 | ScaleUpLimit
    N5 of 50  | 50 | 9999 | 1..9999 | up=10%/60 | | 56 | ScaleUpLimit
    N5 of 90  | 90 | 9999 | 1..9999 | up=10%/60 | | 100 | ScaleUpLimit
    N5 of 100 | 100 | 9999 | 1..9999 | up=10%/60 | | 111 | ScaleUpLimit
    N5 of 110 | 110 | 9999 | 1..9999 | up=10%/60 | | 122 | ScaleUpLimit
    N6 of 10  | 10 | 0 | 0..9999 | down=90%/60 | | 0 | DesiredWithinRange
    N6 of 20  | 20 | 0 | 0..9999 | down=90%/60 | | 1 | ScaleDownLimit
    N6 of 50  | 50 | 0 | 0..9999 | down=90%/60 | | 4 | ScaleDownLimit
    N6 of 100 | 100 | 0 | 0..9999 | down=90%/60 | | 9 | ScaleDownLimit
    N7 of 5   | 5 | 0 | 0..9999 | down=80%/60 | | 0 | DesiredWithinRange
    N7 of 10  | 10 | 0 | 0..9999 | down=80%/60 | | 1 | ScaleDownLimit
    N7 of 100 | 100 | 0 | 0..9999 | down=80%/60 | | 19 | ScaleDownLimit
    N7 30% of 90 | 90 | 0 | 0..9999 | down=30%/60 | | 62 | ScaleDownLimit
    an event as old as the period no longer counts | 10 | 99 | 1..99 | up=5/60 | +5@60 | 15 | ScaleUpLimit
    one a little younger does | 10 | 99 | 1..99 | up=5/60 | +5@59.999 | 10 | ScaleUpLimit
    more than all counts | 2000000000 | 2147483647 | 1..2147483647 | up=4294967295%/60 | | 2147483647 | DesiredWithinRange
    a start below zero | 1 | 9 | 1..99 | up=5/60 | +90@30 | 1 | ScaleUpLimit
    upwards the minimum is not asked | 1 | 2 | 5..9 | behavior | | 2 | DesiredWithinRange
    nothing to limit | 7 | 7 | 1..9 | behavior | | 7 | DesiredWithinRange
    down is disabled | 10 | 2 | 1..99 | down-select=disabled | | 10 | ScaleDownLimit
    up is disabled | 10 | 20 | 1..99 | up-select=disabled | | 10 | ScaleUpLimit
";

/// `id | path | current | raw | settings | history | count | condition | recommendations kept`.
pub(in crate::hpa) const STABILIZATION: &str = "
    G1  | without | - | 3 | stabilization=300 | 4@120 5@60 | 5 | | 3
    G2  | without | - | 3 | stabilization=300 | 10@600 9@540 | 3 | | 2
    G3  | without | - | 3 | stabilization=300 | 10@600 4@60 5@120 9@540 | 5 | | 4
    G4  | with | 100 | 5 | up-window=0 down-window=0 | | 5 | ReadyForNewScale | 1
    G5  | with | 100 | 3 | up-window=0 down-window=180 | 4@120 5@60 | 5 | ScaleDownStabilized | 3
    G6  | with | 1 | 7 | up-window=300 down-window=0 | 4@120 5@60 | 4 | ScaleUpStabilized | 3
    G7  | with | 1 | 3 | up-window=0 down-window=300 | 4@120 5@60 | 3 | ReadyForNewScale | 3
    G8  | with | 1 | 100 | up-window=300 down-window=0 | 10@6000 6@60 5@120 9@180 | 5 | ScaleUpStabilized | 4
    G9  | with | 2 | 1 | up-window=300 down-window=300 | 2@6000 3@180 | 2 | ScaleDownStabilized | 2
    G10 | with | 2 | 3 | up-window=300 down-window=300 | 2@6000 1@180 | 2 | ScaleUpStabilized | 2
    G11 | without | 8 | 3 | stabilization=300 | 8@300 | 8 | | 2
    G12 | with | 8 | 3 | up-window=0 down-window=300 | 8@300 | 3 | ReadyForNewScale | 2
    the cluster's window is the default | with | 8 | 3 | stabilization=60 behavior | 8@59 | 8 | ScaleDownStabilized | 2
    without a window nothing is looked back on | without | 8 | 3 | stabilization=0 | 8@0 | 3 | | 2
";

fn bounds(text: &str) -> (PodCount, PodCount) {
    let (min, max) = text.split_once("..").unwrap();
    (pods(min), pods(max))
}

fn events(text: &str) -> ScaleEvents {
    let mut events = ScaleEvents::default();
    for event in text.split_whitespace() {
        let (change, age) = event.split_once('@').unwrap();
        let list = if change.starts_with('+') { &mut events.ups } else { &mut events.downs };
        list.push(ScaleEvent { change: change[1..].parse().unwrap(), at: ago(age) });
    }
    events
}

fn check_limited(row: &[&str], limited: LimitedCount, steps: &Steps) {
    let [.., count, reason] = row else { panic!("{row:?}") };
    assert_eq!(limited.count, pods(count), "{row:?}: {limited:?}");
    assert_eq!(format!("{:?}", limited.reason), *reason, "{row:?}");
    assert_linked(steps.as_slice());
}

#[test]
fn limits_without_behavior_are_those_of_the_reference() {
    for row in rows(WITHOUT_BEHAVIOR) {
        let (min, max) = bounds(row[3]);
        let none = ScaleEvents::default();
        let limiter = Limiter { min, max, current: pods(row[1]), events: &none, now: NOW };
        let mut steps = Steps::default();
        check_limited(&row, limiter.without_behavior(pods(row[2]), &mut steps), &steps);
    }
}

#[test]
fn limits_with_behavior_are_those_of_the_reference() {
    for row in rows(WITH_BEHAVIOR) {
        let (min, max) = bounds(row[3]);
        let behavior = spec_of(per_thousand(), row[4]).behavior.unwrap();
        let events = events(row[5]);
        let limiter = Limiter { min, max, current: pods(row[1]), events: &events, now: NOW };
        let mut steps = Steps::default();
        check_limited(&row, limiter.with_behavior(&behavior, pods(row[2]), &mut steps), &steps);
    }
}

#[test]
fn windows_are_those_of_the_reference() {
    for row in rows(STABILIZATION) {
        let [_, path, current, raw, words, past, count, condition, kept] = row[..] else { panic!("{row:?}") };
        let recommendations = past.split_whitespace().map(|one| {
            let (count, age) = one.split_once('@').unwrap();
            Recommendation { count: pods(count), at: ago(age) }
        });
        let mut history = history_of(recommendations.collect());
        let spec = spec_of(per_thousand(), words);
        let mut steps = Steps::default();
        let stabilized = if path == "without" {
            stabilize::without_behavior(&mut history, pods(raw), &spec.settings, NOW, &mut steps)
        } else {
            let windows = Windows::of(spec.behavior.as_ref().unwrap(), &spec.settings);
            let envelope = windows.envelope(&history, pods(raw), NOW);
            windows.record(&mut history, pods(raw), NOW);
            envelope.force(pods(current), &mut steps)
        };
        assert_eq!(stabilized, pods(count), "{row:?}");
        assert_eq!(history.recommendations().len().to_string(), kept, "{row:?}");
        assert!(
            history.recommendations().iter().any(|one| one.count == pods(raw) && one.at == NOW),
            "{row:?}"
        );
        if !condition.is_empty() {
            check_condition(&row, &spec);
        }
    }
}

/// The same through a whole pass, for what that says of itself.
fn check_condition(row: &[&str], spec: &HpaSpec) {
    let recommendations = row[5].split_whitespace().map(|one| {
        let (count, age) = one.split_once('@').unwrap();
        Recommendation { count: pods(count), at: ago(age) }
    });
    let mut spec = spec.clone();
    spec.settings.tolerance = 0.0;
    let mut state = remembering(recommendations.collect());
    let current = pods(row[2]);
    let (none, samples) = (HpaPods::default(), [asking_for(pods(row[3]).value())]);
    let observation = HpaObservation { scale: scale(current, current), pods: &none, samples: &samples };
    let outcome = evaluate(&spec, &observation, &mut state, NOW);
    assert_eq!(outcome.stabilized, Some(pods(row[6])), "{row:?}");
    let able = state.conditions().able_to_scale.unwrap();
    assert_eq!(format!("{:?}", able.reason), row[7], "{row:?}");
}

#[test]
fn events_are_kept_for_the_longest_period_of_either_direction() {
    let behavior = spec_of(per_thousand(), "up=1/60 down=1/1800").behavior.unwrap();
    let mut events = events("+3@1800 +4@1799 -5@1800 -6@10");
    events.store(pods("10"), pods("12"), &behavior, NOW);
    let changes = |list: &[ScaleEvent]| list.iter().map(|event| event.change).collect::<Vec<_>>();
    assert_eq!((changes(&events.ups), changes(&events.downs)), (vec![4, 2], vec![6]));
}

/// The minimal case of a difference. Kubernetes keeps a change for the longest period of its own direction,
/// and then writes the next one over it, though policies of the other direction look back on both.
#[test]
fn changes_are_remembered_for_the_longest_period_of_either_direction() {
    let behavior = spec_of(per_thousand(), "up=4/15 down=4/1800").behavior.unwrap();
    let mut ours = ScaleEvents::default();
    ours.store(pods("4"), pods("8"), &behavior, ago("40"));
    ours.store(pods("8"), pods("10"), &behavior, ago("20"));
    for (remembered, expected) in [(ours, "1"), (events("+2@20"), "4")] {
        let (min, max) = (PodCount::ONE, PodCount::new(100));
        let limiter = Limiter { min, max, current: pods("10"), events: &remembered, now: NOW };
        let bounded = limiter.with_behavior(&behavior, PodCount::ZERO, &mut Steps::default());
        assert_eq!(bounded.count, pods(expected), "{remembered:?}");
    }
}

#[test]
fn recommendations_and_events_are_kept_up_to_a_limit() {
    use crate::hpa::history::{EVENTS_MAX, RECOMMENDATIONS_MAX};
    let behavior = spec_of(per_thousand(), "up=1/1800").behavior.unwrap();
    let mut history = HpaHistory::default();
    for number in 0..10_000_u32 {
        let now = NOW + Duration::from_millis(100) * number;
        history.record(Recommendation { count: PodCount::new(number), at: now }, None);
        history.events.store(PodCount::ZERO, PodCount::ONE, &behavior, now);
    }
    assert_eq!(history.recommendations().len(), RECOMMENDATIONS_MAX);
    assert!(history.recommendations().iter().all(|one| one.count >= PodCount::new(2800)));
    assert_eq!(history.events().0.len(), EVENTS_MAX);
    let sum: u32 = history.events().0.iter().map(|event| event.change).sum();
    assert_eq!(sum, 10_000, "what is forgotten is added to what is kept");
}
