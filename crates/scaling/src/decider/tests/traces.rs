//! Traces of the reference: many evaluations of one decider over time, as tables.

use super::*;
use crate::window::{Second, SecondSums, View, WindowHistory};

/// The rules of the file are at its head.
const TRACES: &str = include_str!("traces.txt");

/// Whichever it is, a trace is of one.
const METRIC: Metric = Metric::Concurrency;

#[test]
fn traces_run_as_in_the_reference() {
    let traces: Vec<&str> = TRACES.split("\n## ").skip(1).collect();
    assert_eq!(traces.len(), 11);
    for trace in traces {
        Trace::new(trace).run();
    }
}

struct Trace<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
    spec: ScalingSpec,
    decider: Decider,
    /// By the second in which they were recorded.
    loads: Vec<(Second, f64)>,
    history: WindowHistory,
    /// Evaluations that are not shown, every 2 s, with as many ready pods as were wanted, at least one.
    following: Option<(u64, PodCount)>,
}

impl<'a> Trace<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let name = lines.next().unwrap();
        let mut lines: Vec<&str> = lines.collect();
        let take = |lines: &mut Vec<&'a str>, word: &str| {
            let index = lines.iter().position(|line| line.split_whitespace().next() == Some(word))?;
            lines.remove(index).strip_prefix(word).map(str::trim)
        };
        let spec = spec(take(&mut lines, "spec").unwrap_or_default());
        let count = take(&mut lines, "created-with").map_or(PodCount::ZERO, pods);
        let following = take(&mut lines, "following").map(|ready| (2, pods(ready)));
        let mut loads = Vec::new();
        while let Some(load) = take(&mut lines, "load") {
            let (seconds, value) = load.split_once(' ').unwrap();
            let (from, to) = seconds.split_once("..").unwrap_or((seconds, seconds));
            let whole = |time: &str| Second::try_from(at(time).whole_secs()).unwrap();
            loads.extend(
                (whole(from)..=whole(to)).map(|second| (second, value.trim().parse::<f64>().unwrap())),
            );
        }
        let decider = Decider::new(&spec, count, Timestamp::ZERO);
        let history = WindowHistory::new(spec.stable_window, spec.panic_window);
        Self { name, lines, spec, decider, loads, history, following }
    }

    fn run(mut self) {
        for row in std::mem::take(&mut self.lines) {
            let cells: Vec<&str> = row.split_whitespace().collect();
            if cells[0] == "t" {
                continue;
            }
            self.follow_until(at(cells[0]));
            self.check(&cells, row);
        }
    }

    fn check(&mut self, cells: &[&str], row: &str) {
        let (now, name) = (at(cells[0]), self.name);
        let observed_windows = self.observe(now);
        if cells[2] == "no-data" {
            assert_eq!(observed_windows, None, "{name}: {row}");
            return;
        }
        let close =
            |said: f64, cell: &str| cell == "_" || (said - cell.parse::<f64>().unwrap()).abs() < 5.001e-7;
        let averages = observed_windows
            .unwrap_or_else(|| Averages::complete(cells[2].parse().unwrap(), cells[3].parse().unwrap()));
        assert!(
            close(averages.stable, cells[2]) && close(averages.panic, cells[3]),
            "{name}: {row}: {averages:?}"
        );
        let (_, ready) = self.following.unwrap_or((0, pods(cells[1])));
        assert_eq!(ready, pods(cells[1]), "{name}: {row}");
        let verdict = self.decide(ready, averages, now);
        assert_eq!(verdict.desired, pods(cells[4]), "{name}: {row}: {verdict:?}");
        if let Some(room) = cells.get(5).filter(|&&room| room != "_") {
            assert_eq!(verdict.excess_burst_capacity.to_string(), **room, "{name}: {row}");
        }
        match cells.get(6) {
            Some(&"-") => assert_eq!(verdict.mode, Mode::Stable, "{name}: {row}"),
            Some(since) => assert_eq!(verdict.mode, Mode::Panic { since: at(since) }, "{name}: {row}"),
            None => {}
        }
    }

    fn follow_until(&mut self, until: Timestamp) {
        while let Some((tick, ready)) = self.following
            && Timestamp::from_secs(tick) <= until
        {
            if Timestamp::from_secs(tick) == until {
                break;
            }
            if let Some(averages) = self.observe(Timestamp::from_secs(tick)) {
                self.decide(ready, averages, Timestamp::from_secs(tick));
            }
            if let Some(next) = &mut self.following {
                next.0 += 2;
            }
        }
    }

    fn decide(&mut self, ready: PodCount, averages: Averages, now: Timestamp) -> Verdict {
        let observation =
            Observation { ready, reachable: ready, wanted: ready, averages, present_count: None };
        let verdict = self.decider.decide(&self.spec, &observation, now);
        assert_linked(&verdict);
        if let Some((_, ready)) = &mut self.following {
            *ready = verdict.desired.max(PodCount::ONE);
        }
        verdict
    }

    /// What the windows say; `None` without data, or in a trace that gives its values.
    fn observe(&mut self, now: Timestamp) -> Option<Averages> {
        let second = Second::try_from(now.whole_secs()).unwrap();
        self.loads.retain(|&(written, value)| {
            if written <= second {
                self.history.add(written, SecondSums { concurrency: value, rate: 0.0 });
            }
            written > second
        });
        let [stable, panic] = [self.history.stable(METRIC), self.history.panic(METRIC)];
        let average = |window: View<'_>| window.average(self.spec.aggregation, second);
        (!stable.is_empty(second)).then(|| Averages::complete(average(stable), average(panic)))
    }
}
