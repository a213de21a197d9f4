//! Counts beside the committed ones: a table, a goal for each, and what is to be committed.

use std::collections::BTreeMap;

use anyhow::ensure;
use tests::bench::callgrind::cost::RequestCost;
use tests::bench::callgrind::figures::{BuildKind, CommittedFigures, FigureVerdict, section};
use tests::bench::{Goal, Report, Table};

use super::work::Work;

/// Where the figures are committed.
const FILE: &str = "tests/benches/instructions/figures.txt";

/// All that one run counted.
pub(crate) struct Comparison {
    build: BuildKind,
    committed: CommittedFigures,
    rows: Vec<ComparedCount>,
}

struct ComparedCount {
    name: String,
    cost: RequestCost,
    committed: Option<f64>,
    tolerance: f64,
    verdict: FigureVerdict,
}

impl Comparison {
    pub(crate) fn new(build: BuildKind, committed: CommittedFigures) -> Self {
        Self { build, committed, rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, work: &Work, cost: &RequestCost) {
        let (name, tolerance) = (work.name(), work.tolerance());
        let committed = self.committed.figure(&name);
        let verdict = FigureVerdict::of(cost.instructions, committed, tolerance);
        self.rows.push(ComparedCount { name, cost: cost.clone(), committed, tolerance, verdict });
    }

    /// The table of all counts, the goals, and the figures to commit where some are missing or too large.
    pub(crate) fn fill(&self, report: &mut Report) {
        if self.rows.is_empty() {
            return;
        }
        let columns = ["each", "instructions", "committed", "memcpy", "of all", "allocations", "rounds"];
        let mut table = Table::new(&format!("Each once, {}", self.build), &columns);
        for ComparedCount { name, cost, committed, .. } in &self.rows {
            table.row([
                name.clone(),
                format!("{:.0}", cost.instructions),
                committed.map_or_else(|| "none".to_owned(), |figure| format!("{figure:.0}")),
                format!("{:.0}", cost.copying),
                format!("{:.1} %", 100.0 * cost.copying / cost.instructions),
                format!("{:.2}", cost.allocations),
                cost.rounds.summary(0),
            ]);
        }
        report.table(table);
        for ComparedCount { name, cost, committed, tolerance, .. } in &self.rows {
            let Some(figure) = committed else { continue };
            let goal = format!(
                "{name}: instructions, at most {:.0} % above the committed figure",
                100.0 * tolerance
            );
            report.goal(Goal::at_most(&goal, cost.instructions, figure * (1.0 + tolerance)));
        }
        if let Some(note) = self.note() {
            report.note(note);
        }
    }

    /// What is to be committed, and why.
    fn note(&self) -> Option<String> {
        let of = |verdict: FigureVerdict| self.rows.iter().filter(move |row| row.verdict == verdict);
        let asked = of(FigureVerdict::Unknown).chain(of(FigureVerdict::Cheaper));
        let counts: BTreeMap<String, f64> =
            asked.map(|row| (row.name.clone(), row.cost.instructions)).collect();
        (!counts.is_empty()).then(|| {
            format!(
                "{} counts have no committed figure for this build, and {} are below theirs by more than counts \
                 differ. Please commit these lines to {FILE}, in the place of those of the same names:\n\n{}",
                of(FigureVerdict::Unknown).count(),
                of(FigureVerdict::Cheaper).count(),
                section(&self.build, &counts)
            )
        })
    }

    /// Fails where something costs more than its committed figure, in the short form too.
    pub(crate) fn require(&self) -> anyhow::Result<()> {
        let dearer = self.rows.iter().filter(|row| row.verdict == FigureVerdict::Dearer);
        let counts: BTreeMap<String, f64> =
            dearer.map(|row| (row.name.clone(), row.cost.instructions)).collect();
        ensure!(
            counts.is_empty(),
            "these cost more than their committed figures in {FILE}; make them cheaper, or commit the new figures \
             and say why:\n{}",
            section(&self.build, &counts)
        );
        Ok(())
    }
}
