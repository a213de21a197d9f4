//! What a benchmark found: tables for people as soon as they are there, a verdict for each goal, everything
//! once more as JSON, and the promises for the page of all benchmarks.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Serialize;

use super::machine::Machine;
use super::promises::{self, GoalNumber, Promise, Verdict};
use super::statistics::Samples;

/// The version of [`Report`]'s JSON.
const FORMAT: u32 = 2;

/// Everything that one run of one benchmark found.
#[derive(Debug, Serialize)]
pub struct Report {
    format: u32,
    benchmark: String,
    quick: bool,
    rounds: usize,
    machine: Machine,
    measurements: Vec<Measurement>,
    tables: Vec<Table>,
    goals: Vec<Goal>,
    notes: Vec<String>,
    /// What could not be measured, and why.
    failures: Vec<String>,
}

/// One quantity of one contestant in one cell, round by round.
#[derive(Debug, Serialize)]
struct Measurement {
    cell: String,
    contestant: String,
    quantity: String,
    median: f64,
    least: f64,
    most: f64,
    rounds: Samples,
}

/// A goal and what became of it.
#[derive(Debug, Serialize)]
pub struct Goal {
    /// The goal, as a sentence with its number.
    pub goal: String,
    /// The number or the fact that was found.
    pub found: String,
    /// The number with its limit; none beside a fact, and none that is not finite.
    pub number: Option<GoalNumber>,
    /// Whether the goal was reached by what was found.
    pub verdict: Verdict,
}

impl Goal {
    /// That a number does not exceed a limit.
    pub fn at_most(goal: &str, value: f64, limit: f64) -> Self {
        Self {
            goal: goal.to_owned(),
            found: format!("{value:.2} (limit {limit:.2})"),
            number: GoalNumber::of(value, limit),
            verdict: Verdict::at_most(value, limit, 0.0),
        }
    }

    /// That a number does not exceed a limit, where both were measured, and their difference is known but for
    /// `uncertainty`.
    pub fn at_most_as_far_as_known(goal: &str, value: f64, limit: f64, uncertainty: f64) -> Self {
        Self {
            goal: goal.to_owned(),
            found: format!("{value:.2} (limit {limit:.2}, known to ± {uncertainty:.2})"),
            number: GoalNumber::of(value, limit),
            verdict: Verdict::at_most(value, limit, uncertainty),
        }
    }

    /// The goal that a statement is true.
    pub fn holds(goal: &str, found: impl Into<String>, met: Met) -> Self {
        Self { goal: goal.to_owned(), found: found.into(), number: None, verdict: met.into() }
    }

    /// With a number of this run beside what was found. In the goal's own words it would make another goal of
    /// each run.
    #[must_use]
    pub fn beside(mut self, remark: &str) -> Self {
        self.found = format!("{}; {remark}", self.found);
        self
    }
}

/// That a request costs no more CPU time (in µs) than in the version before, measured in the same rounds.
/// `noise` are the differences of HAProxy to itself there.
pub fn no_dearer_than_before(cell: &str, ours: &Samples, former: &Samples, noise: &Samples) -> Goal {
    let goal = format!("{cell}: CPU µs per request beyond the version before");
    Goal::at_most_as_far_as_known(&goal, ours.less(former).median(), 0.0, noise.uncertainty_of_median())
        .beside(&format!("× it {}", ours.over(former).summary(3)))
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The statement holds for what was found.
    Yes,
    /// The statement does not hold for what was found.
    No,
}

impl From<bool> for Met {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

impl From<Met> for Verdict {
    fn from(met: Met) -> Self {
        match met {
            Met::Yes => Self::Met,
            Met::No => Self::Missed,
        }
    }
}

/// Rows of text under a title.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows, with these columns.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = comfy_table::Table::new();
        table.load_preset(ASCII_MARKDOWN).set_header(&self.columns).add_rows(&self.rows);
        write!(formatter, "\n{}\n\n{table}", self.title)
    }
}

impl Report {
    /// Begins one, and says so.
    pub fn new(benchmark: &str, quick: bool, rounds: usize) -> Self {
        let report = Self {
            format: FORMAT,
            benchmark: benchmark.to_owned(),
            quick,
            rounds,
            machine: Machine::this(),
            measurements: Vec::new(),
            tables: Vec::new(),
            goals: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
        };
        let Machine { processor, cores, kernel, commit } = &report.machine;
        let commit = commit.as_deref().unwrap_or("an unknown commit");
        println!("{benchmark} at {commit}: {rounds} rounds on {cores} cores of {processor}, Linux {kernel}");
        report
    }

    /// Notes a quantity, its unit in its name.
    pub fn measured(&mut self, cell: &str, contestant: &str, quantity: &str, rounds: &Samples) {
        self.measurements.push(Measurement {
            cell: cell.to_owned(),
            contestant: contestant.to_owned(),
            quantity: quantity.to_owned(),
            median: rounds.median(),
            least: rounds.least(),
            most: rounds.most(),
            rounds: rounds.clone(),
        });
    }

    /// Adds a table, and prints it.
    pub fn table(&mut self, table: Table) {
        println!("{table}");
        self.tables.push(table);
    }

    /// Adds a goal and what became of it.
    pub fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    /// Adds a sentence that a reader needs to judge the numbers.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// What was found, or `None` after noting why it could not be measured. The rest is still worth having;
    /// at the end the run fails.
    pub fn unless_failed<Found>(&mut self, what: &str, found: anyhow::Result<Found>) -> Option<Found> {
        let note = |why| {
            let failure = format!("{what} could not be measured: {why:#}");
            println!("\n{failure}");
            self.failures.push(failure);
        };
        found.map_err(note).ok()
    }

    /// Fails where a goal is missed, and names each. The numbers of the short form mean little, so nothing is
    /// missed there.
    pub fn require_goals(&self) -> anyhow::Result<()> {
        let missed = self.goals.iter().filter(|goal| goal.verdict == Verdict::Missed && !self.quick);
        let missed: Vec<String> = missed.map(|goal| format!("{}: {}", goal.goal, goal.found)).collect();
        ensure!(missed.is_empty(), "missed:\n{}", missed.join("\n"));
        Ok(())
    }

    /// Prints the verdict, writes the JSON where that was asked for, and keeps what was found of the promises
    /// unless this was the short form. Fails if something could not be measured, or nothing was.
    pub fn finish(&self, json: Option<&Path>) -> anyhow::Result<()> {
        println!("{self}");
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(self).context("a report is plain data")?;
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        if !self.quick && !self.goals.is_empty() {
            promises::keep(&promises::folder()?, &self.benchmark, &self.promises())?;
        }
        if !self.failures.is_empty() {
            bail!("{}", self.failures.join("\n"));
        }
        if self.goals.is_empty() && self.measurements.is_empty() {
            bail!(
                "nothing was measured: no part of {} has the text of --only in its name; the names stand in the tables of `--quick`",
                self.benchmark
            );
        }
        Ok(())
    }

    fn promises(&self) -> Vec<Promise> {
        let command = promises::command(&self.benchmark);
        let promise = |goal: &Goal| Promise {
            benchmark: self.benchmark.clone(),
            goal: goal.goal.clone(),
            found: goal.found.clone(),
            number: goal.number,
            verdict: goal.verdict,
            command: command.clone(),
            commit: self.machine.commit.clone(),
            processor: self.machine.processor.clone(),
        };
        self.goals.iter().map(promise).collect()
    }
}

/// The notes and the verdict; tables were printed when they came.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(formatter, "\n{note}")?;
        }
        let mut verdict = Table::new("Goals", &["", "goal", "found"]);
        for goal in &self.goals {
            verdict.row([goal.verdict.word().to_owned(), goal.goal.clone(), goal.found.clone()]);
        }
        writeln!(formatter, "{verdict}")?;
        if self.quick {
            return write!(
                formatter,
                "\nThis was the short form: it shows that the benchmark works, and its numbers mean little."
            );
        }
        let count = |verdict| self.goals.iter().filter(|goal| goal.verdict == verdict).count();
        let [met, even, missed] = [Verdict::Met, Verdict::Even, Verdict::Missed].map(count);
        write!(
            formatter,
            "\nOf {} goals {met} are met, {missed} missed, and {even} even: beyond the limit by less than these rounds can tell.",
            self.goals.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_nothing_is_a_failure() {
        let mut report = Report::new("nothing", true, 1);
        let error = report.finish(None).expect_err("no goal was looked at").to_string();
        assert!(error.starts_with("nothing was measured: no part of nothing has"), "{error}");
        report.goal(Goal::at_most("something", 1.0, 2.0));
        report.finish(None).expect("one was");
    }

    #[test]
    fn a_promise_has_the_goal_in_the_same_words_in_every_run() {
        let mut report = Report::new("something", true, 1);
        report.goal(Goal::at_most("cores", 0.3, 0.5).beside("noise 0.01"));
        let promises = report.promises();
        assert_eq!(promises.len(), 1);
        assert_eq!((promises[0].benchmark.as_str(), promises[0].goal.as_str()), ("something", "cores"));
        assert_eq!(promises[0].found, "0.30 (limit 0.50); noise 0.01");
        assert_eq!(promises[0].commit, report.machine.commit);
    }

    #[test]
    fn measurements_without_a_goal_are_enough() {
        let mut report = Report::new("something", true, 1);
        report.measured("cell", "ebb", "instructions", &Samples(vec![1.0]));
        report.finish(None).expect("something was measured");
    }

    #[test]
    fn a_missed_goal_fails_where_goals_are_required_and_the_numbers_mean_something() {
        for (quick, found, is_met) in [(false, 3.0, false), (false, 2.0, true), (true, 3.0, true)] {
            let mut report = Report::new("something", quick, 1);
            report.goal(Goal::at_most("MB more", found, 2.0));
            assert_eq!(report.require_goals().is_ok(), is_met, "{quick}, {found}");
        }
    }

    #[test]
    fn a_number_beyond_its_limit_is_even_only_within_what_is_known() {
        assert_eq!(Verdict::at_most(1.0, 1.0, 0.0), Verdict::Met);
        assert_eq!(Verdict::at_most(1.1, 1.0, 0.0), Verdict::Missed);
        assert_eq!(Verdict::at_most(1.1, 1.0, 0.2), Verdict::Even);
        assert_eq!(Verdict::at_most(1.3, 1.0, 0.2), Verdict::Missed);
        assert_eq!(Verdict::at_most(f64::NAN, 1.0, 0.2), Verdict::Missed);
    }
}
