//! Traces of the reference: many passes of one autoscaler over time.

use super::*;

/// The rules of the file are at its head.
pub(in crate::hpa) const TRACES: &str = include_str!("traces.txt");

#[test]
fn traces_run_as_in_the_reference() {
    let traces: Vec<&str> = TRACES.split("\n## ").skip(1).collect();
    assert_eq!(traces.len(), 19);
    for trace in traces {
        run(trace);
    }
}

fn run(trace: &str) {
    let name = trace.lines().next().unwrap();
    let field = |key: &str| trace.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let mut spec = spec_of(per_thousand(), field("spec").unwrap());
    spec.settings.tolerance = 0.0;
    let mut count = pods(field("start").unwrap());
    let mut state = HpaState::default();
    if count == PodCount::ZERO {
        // Before the history begins: it went to zero long ago.
        state.note_rescale(&spec, CountChange { from: PodCount::ONE, to: count }, ago("5000"));
    }
    let raws: Vec<u32> = field("raw").unwrap().split(' ').map(|raw| raw.parse().unwrap()).collect();
    let tick: u64 = field("tick").map_or(15, |tick| tick.parse().unwrap());
    let mut changes = Vec::new();
    let passes = field("until").unwrap().parse::<u64>().unwrap() / tick;
    for (index, second) in (0..=passes).map(|pass| pass * tick).enumerate() {
        let now = NOW + Duration::from_secs(second);
        let samples = [asking_for(raws[index.min(raws.len() - 1)])];
        let none = HpaPods::default();
        let observation = HpaObservation { scale: scale(count, count), pods: &none, samples: &samples };
        let outcome = evaluate(&spec, &observation, &mut state, now);
        assert_linked(state.reasons());
        let limited = format!("{:?}", state.conditions().scaling_limited.unwrap().reason);
        if let Some(expected) = field("limited") {
            assert_eq!(limited, expected, "{name}: at {second}");
        }
        if outcome.desired != count {
            changes.push((format!("{second}:{count}>{}", outcome.desired), limited));
            state.note_rescale(&spec, CountChange { from: count, to: outcome.desired }, now);
            count = outcome.desired;
        }
    }
    let expected: Vec<&str> = field("changes").unwrap().split_whitespace().collect();
    let said: Vec<&str> = changes.iter().map(|(change, _)| change.as_str()).collect();
    let wanted: Vec<&str> = expected.iter().map(|one| one.split(',').next().unwrap()).collect();
    assert_eq!(said, wanted, "{name}");
    for ((change, limited), expected) in changes.iter().zip(expected) {
        if let Some((_, reason)) = expected.split_once(',') {
            assert_eq!(limited, reason, "{name}: {change}");
        }
    }
}
