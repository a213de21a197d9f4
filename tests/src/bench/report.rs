//! What a benchmark found: tables for people as soon as they are there, a verdict for each goal, and everything once more as JSON.

use std::fmt;
use std::path::Path;

use anyhow::{Context, bail};
use comfy_table::presets::ASCII_MARKDOWN;
use serde::Serialize;

use super::machine::Machine;
use super::statistics::Samples;

/// The version of [`Report`]'s JSON.
const FORMAT: u32 = 1;

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
    /// What was to hold.
    pub goal: String,
    /// What was found.
    pub found: String,
    /// Whether it holds.
    pub met: bool,
}

impl Goal {
    /// That a number does not exceed a limit.
    pub fn at_most(goal: &str, value: f64, limit: f64) -> Self {
        Self { goal: goal.to_owned(), found: format!("{value:.2} (limit {limit:.2})"), met: value <= limit }
    }

    /// That something holds.
    pub fn holds(goal: &str, found: impl Into<String>, met: Met) -> Self {
        Self { goal: goal.to_owned(), found: found.into(), met: met == Met::Yes }
    }
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// It holds.
    Yes,
    /// It does not.
    No,
}

impl From<bool> for Met {
    fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
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
    /// An empty one.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
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

    /// Adds a goal.
    pub fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    /// Adds a sentence that a reader needs to judge the numbers.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// What was found, or `None` after noting why it could not be measured. The rest is still worth having; at the end the run fails.
    pub fn unless_failed<Found>(&mut self, what: &str, found: anyhow::Result<Found>) -> Option<Found> {
        let note = |why| {
            let failure = format!("{what} could not be measured: {why:#}");
            println!("\n{failure}");
            self.failures.push(failure);
        };
        found.map_err(note).ok()
    }

    /// Prints the verdict and writes the JSON where that was asked for. Fails if something could not be measured.
    pub fn finish(&self, json: Option<&Path>) -> anyhow::Result<()> {
        println!("{self}");
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(self).context("a report is plain data")?;
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        if !self.failures.is_empty() {
            bail!("{}", self.failures.join("\n"));
        }
        Ok(())
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
            let met = if goal.met { "met" } else { "MISSED" };
            verdict.row([met.to_owned(), goal.goal.clone(), goal.found.clone()]);
        }
        writeln!(formatter, "{verdict}")?;
        let missed = self.goals.iter().filter(|goal| !goal.met).count();
        match (self.quick, missed) {
            (true, _) => write!(
                formatter,
                "\nThis was the short form: it shows that the benchmark works, and its numbers mean little."
            ),
            (false, 0) => write!(formatter, "\nAll {} goals are met.", self.goals.len()),
            (false, _) => write!(formatter, "\n{missed} of {} goals are missed.", self.goals.len()),
        }
    }
}
