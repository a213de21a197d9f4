//! Does `ebb simulate` tell what `ebb up` does?
//!
//! `cargo bench -p tests --bench truth`. Six loads run on a recorded `ebb up`. Each is then simulated twice:
//! with the arrivals and durations that the client noted and the start-ups of the record; and from the record
//! alone, which knows how many requests came in a second. Both begin at the instant of the clock at which the
//! autoscaler has begun, so that Services are evaluated at the same times, and restart the autoscaler when it
//! was restarted. The counts that were decided are compared over the whole time, ten times a second.

mod truth {
    pub(super) mod counts;
    pub(super) mod live;
    pub(super) mod loads;
    pub(super) mod simulated;
}

use std::time::Duration;

use anyhow::Context;
use tests::bench::up::executables;
use tests::bench::{Goal, Options, Report, Table};

use truth::counts::{CountComparison, PodCounts};
use truth::live::{self, LiveSetup};
use truth::loads::{LOADS, TruthLoad};
use truth::simulated;

/// What is compared of one load.
struct TruthResult {
    with_list: CountComparison,
    from_record: CountComparison,
}

fn main() -> anyhow::Result<()> {
    let options = Options::read();
    let [ebb, app] = executables()?;
    let setup = LiveSetup { ebb, app, length: Duration::from_secs(options.choose(90, 14)) };
    let mut report = Report::new("truth", options.quick, 1);
    let mut table = Table::new(
        "simulated counts beside the recorded ones",
        &[
            "load",
            "equal",
            "longest time more than 1 apart",
            "starts from zero, live and simulated",
            "from the record alone: within 1",
            "pod-hours apart",
        ],
    );
    // The short form shows that each step works: three loads are enough for that.
    let all =
        LOADS.iter().filter(|load| options.includes(load.name) && (!options.quick || load.is_in_short_form));
    for load in all {
        let tried = compare(&setup, load).with_context(|| load.name);
        let Some(result) = report.unless_failed(load.name, tried) else { continue };
        table.row(result.row(load.name));
        for goal in result.goals(load.name) {
            report.goal(goal);
        }
    }
    report.table(table);
    report.finish(options.json.as_deref())
}

fn compare(setup: &LiveSetup, load: &TruthLoad) -> anyhow::Result<TruthResult> {
    let folder = tempfile::tempdir()?;
    let run = live::play(setup, load, folder.path())?;
    let live = PodCounts::of_record(&run.recorded, load.name)?;
    let with_list = simulated::with_list(&setup.ebb, &run, load)?;
    let from_record = simulated::from_record(&setup.ebb, &run)?;
    Ok(TruthResult {
        with_list: live.compared_with(&with_list.counts, with_list.length),
        from_record: live.compared_with(&from_record.counts, from_record.length),
    })
}

impl TruthResult {
    fn row(&self, name: &str) -> [String; 6] {
        let (first, second) = (&self.with_list, &self.from_record);
        [
            name.to_owned(),
            format!("{:.1} %", first.equal * 100.0),
            format!("{:.1} s", first.longest_apart),
            format!("{}, {}", first.starts_from_zero.0, first.starts_from_zero.1),
            format!("{:.1} %", second.within_one * 100.0),
            format!("{:+.1} %", second.pod_time_apart * 100.0),
        ]
    }

    fn goals(&self, name: &str) -> [Goal; 5] {
        let (first, second) = (&self.with_list, &self.from_record);
        let (live, simulated) = first.starts_from_zero;
        let title = |goal: &str| format!("{name}: {goal}");
        [
            Goal::at_most(
                &title("seconds with counts more than 1 apart, at a stretch"),
                first.longest_apart,
                2.0,
            ),
            Goal::at_most(&title("time with other counts, %"), (1.0 - first.equal) * 100.0, 5.0),
            Goal::holds(
                &title("as many starts from zero"),
                format!("{live} live, {simulated} simulated"),
                (live == simulated).into(),
            ),
            Goal::at_most(
                &title("from the record alone: time with counts more than 1 apart, %"),
                (1.0 - second.within_one) * 100.0,
                10.0,
            ),
            Goal::at_most(
                &title("from the record alone: pod-hours apart, %"),
                second.pod_time_apart.abs() * 100.0,
                5.0,
            ),
        ]
    }
}
