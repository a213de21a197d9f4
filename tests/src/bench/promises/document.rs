//! The table of `docs/design/performance.md`: a row for each kind of goal, with the figure that is nearest to
//! its limit, or farthest beyond it.
//!
//! A benchmark has a goal for each of its cells (`64x12B: CPU per request × HAProxy's`), hundreds in all. The
//! words behind the first colon are the kind, and goals of one kind share a row. People write the head of the
//! document; the report replaces the rows of kinds that were measured on this machine. The other rows stay,
//! each with its commit and its processor, because no machine measures everything: a part needs a cluster. A
//! row of a goal that no benchmark has any more is deleted by hand.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::{GoalNumber, Promise, Verdict};

/// The line that ends the part that people write.
const HEADING: &str = "## Figures";
/// The most lines that the document may have.
const LINES_MOST: usize = 120;
const TABLE_HEAD: [&str; 3] = [
    "",
    "| Benchmark | Goal | Reached | Figure nearest to its limit | Command | Commit, processor |",
    "|---|---|---|---|---|---|",
];

/// A row of the table, as it stands in the document.
#[derive(Debug)]
struct FigureRow {
    benchmark: String,
    goal: String,
    line: String,
}

/// The document with the rows of these promises in the place of its former ones. Fails where the heading of
/// the table is missing, and where the document becomes too long.
pub fn rewritten(former: &str, promises: &[Promise]) -> anyhow::Result<String> {
    let heading = former.lines().position(|line| line == HEADING);
    let heading =
        heading.with_context(|| format!("no line is {HEADING:?}; the table of figures stands below it"))?;
    let mut rows: Vec<FigureRow> = former.lines().skip(heading + 1).filter_map(FigureRow::read).collect();
    for ((benchmark, kind), promises) in by_kind(promises) {
        let Some(row) = FigureRow::of(benchmark, kind, &promises) else { continue };
        match rows.iter_mut().find(|known| known.benchmark == row.benchmark && known.goal == row.goal) {
            Some(known) => *known = row,
            None => rows.push(row),
        }
    }
    // Kinds of one benchmark keep their order: the sort is stable.
    rows.sort_by(|one, other| one.benchmark.cmp(&other.benchmark));
    let head = former.lines().take(heading + 1);
    let table = TABLE_HEAD.into_iter().chain(rows.iter().map(|row| row.line.as_str()));
    let lines: Vec<&str> = head.chain(table).collect();
    ensure!(
        lines.len() <= LINES_MOST,
        "the document would have {} lines, and may have {LINES_MOST}: shorten the part above {HEADING:?}, delete rows of goals that are gone, or give goals of one kind the same words behind the colon",
        lines.len()
    );
    Ok(lines.join("\n") + "\n")
}

/// The promises by benchmark and kind of goal.
fn by_kind(promises: &[Promise]) -> BTreeMap<(&str, &str), Vec<&Promise>> {
    let mut kinds: BTreeMap<(&str, &str), Vec<&Promise>> = BTreeMap::new();
    for promise in promises {
        let (_, kind) = cell_and_kind(&promise.goal);
        kinds.entry((promise.benchmark.as_str(), kind)).or_default().push(promise);
    }
    kinds
}

/// The cell of a benchmark, if the goal is that of one cell, and the kind of the goal.
fn cell_and_kind(goal: &str) -> (Option<&str>, &str) {
    goal.split_once(": ").map_or((None, goal), |(cell, kind)| (Some(cell), kind))
}

impl FigureRow {
    /// A row of the document; `None` of another line.
    fn read(line: &str) -> Option<Self> {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let benchmark = cells.next().filter(|cell| cell.starts_with('`'))?.to_owned();
        Some(Self { benchmark, goal: cells.next()?.to_owned(), line: line.to_owned() })
    }

    /// The row of one kind of goal; `None` without a promise.
    fn of(benchmark: &str, kind: &str, promises: &[&Promise]) -> Option<Self> {
        // A number that is not finite missed its goal, and is the worst of all.
        let share = |promise: &Promise| promise.number.map_or(f64::INFINITY, GoalNumber::share_of_limit);
        let worst = promises.iter().max_by(|one, other| {
            one.verdict.cmp(&other.verdict).then_with(|| share(one).total_cmp(&share(other)))
        })?;
        let commit = worst.commit.as_deref().unwrap_or("unknown");
        let cells = [
            format!("`{benchmark}`"),
            kind.to_owned(),
            reached(promises),
            figure(worst),
            format!("`{}`", worst.command),
            format!("{commit}, {}", worst.processor),
        ]
        // A bar would end the cell.
        .map(|cell| cell.replace('|', r"\|"));
        let line = format!("| {} |", cells.join(" | "));
        let [benchmark, goal, ..] = cells;
        Some(Self { benchmark, goal, line })
    }
}

/// How many goals of a kind were reached.
fn reached(promises: &[&Promise]) -> String {
    if let [one] = promises {
        return one.verdict.word().to_owned();
    }
    let count = |verdict| promises.iter().filter(|promise| promise.verdict == verdict).count();
    let met = format!("{} of {} met", count(Verdict::Met), promises.len());
    let others = [Verdict::Even, Verdict::Missed].map(|verdict| (count(verdict), verdict.word()));
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let others = others.map(|(count, word)| format!("{count} {word}"));
    [met].into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// What was found, with the name of its cell and without remarks.
fn figure(promise: &Promise) -> String {
    let found = promise.found.split_once("; ").map_or(promise.found.as_str(), |(figure, _)| figure);
    match cell_and_kind(&promise.goal) {
        (Some(cell), _) => format!("{cell}: {found}"),
        (None, _) => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::bench::report::Goal;

    const DOCUMENT: &str = include_str!("../../../../docs/design/performance.md");
    const FORMER: &str = "# Performance\n\n| a table | of the head |\n\n## Figures\n\n\
        | Benchmark | Goal | Reached | Figure nearest to its limit | Command | Commit, processor |\n\
        |---|---|---|---|---|---|\n\
        | `hop` | p99 in µs beyond HAProxy's | met | 64x12B: -3.00 (limit 0.00) | `…` | 4d881d9, AMD EPYC |\n\
        | `soak` | no request is lost | met | 0 lost of 9 | `…` | 4d881d9, AMD EPYC |\n";

    fn promises(goals: impl IntoIterator<Item = Goal>) -> Vec<Promise> {
        let promise = |Goal { goal, found, number, verdict }| Promise {
            number,
            ..super::super::tests::promise(&goal, &found, verdict)
        };
        goals.into_iter().map(promise).collect()
    }

    /// The rows of the document's table.
    fn rows(document: &str) -> Vec<&str> {
        document.lines().filter(|line| line.starts_with("| `")).collect()
    }

    #[test]
    fn goals_of_one_kind_share_a_row_with_the_figure_nearest_to_its_limit() {
        let cpu = |cell: &str, value, limit| {
            Goal::at_most(&format!("{cell}: CPU × HAProxy's"), value, limit).beside("HAProxy again 1.00")
        };
        let even = Goal::at_most_as_far_as_known("1x12B: p99 | ms", 0.2, 0.0, 0.3);
        let goals = [cpu("1x12B", 1.0, 1.1), cpu("64x12B", 0.95, 1.0), cpu("64x16KB", 0.7, 1.1), even];
        let document = rewritten("## Figures", &promises(goals)).expect("it is short");
        let command = "`cargo bench -p tests --bench hop` | 4d881d9, AMD EPYC |";
        assert_eq!(
            rows(&document),
            [
                format!("| `hop` | CPU × HAProxy's | 3 of 3 met | 64x12B: 0.95 (limit 1.00) | {command}"),
                format!(
                    r"| `hop` | p99 \| ms | even | 1x12B: 0.20 (limit 0.00, known to ± 0.30) | {command}"
                ),
            ]
        );
        let missed = [cpu("1x12B", 1.2, 1.1), cpu("64x12B", f64::NAN, 1.0), cpu("64x16KB", 0.7, 1.1)];
        let again = rewritten(&document, &promises(missed)).expect("it is short");
        assert_eq!(rows(&again)[1], rows(&document)[1], "it was not measured again");
        let row = "| `hop` | CPU × HAProxy's | 1 of 3 met, 2 MISSED | 64x12B: NaN (limit 1.00) | ";
        assert!(again.contains(row), "{again}");
    }

    #[test]
    fn rows_that_were_not_measured_stay_and_so_does_the_head() {
        let goals = [
            Goal::at_most("64x12B: p99 in µs beyond HAProxy's", 9.0, 0.0),
            Goal::holds("everything is answered", "all of 9", true.into()),
        ];
        let goals = goals.map(|goal| goal.beside("in one run"));
        let document = rewritten(FORMER, &promises(goals)).expect("it is short");
        let head = "# Performance\n\n| a table | of the head |\n\n## Figures\n\n| Benchmark | ";
        assert!(document.starts_with(head), "{document}");
        let [p99, answered, soak] = rows(&document)[..] else { panic!("three rows: {document}") };
        assert!(p99.starts_with("| `hop` | p99 in µs beyond HAProxy's | MISSED | 64x12B: 9.00"), "{p99}");
        assert!(answered.starts_with("| `hop` | everything is answered | met | all of 9 | "), "{answered}");
        assert_eq!(Some(soak), FORMER.lines().last());
        assert_eq!(rewritten(FORMER, &[]).expect("it is short"), FORMER);
    }

    #[test]
    fn a_document_that_is_too_long_or_has_no_table_is_refused() {
        let error = rewritten("# Performance\n", &[]).expect_err("it has no table").to_string();
        assert!(error.contains("## Figures"), "{error}");
        let long = "a line\n".repeat(LINES_MOST) + "## Figures\n";
        let error = rewritten(&long, &[]).expect_err("it is too long").to_string();
        assert!(error.starts_with("the document would have 124 lines, and may have 120: "), "{error}");
    }

    #[test]
    fn every_benchmark_stands_in_the_document_which_the_report_can_rewrite() {
        assert_eq!(rewritten(DOCUMENT, &[]).expect("it is short enough"), DOCUMENT);
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
        for entry in fs::read_dir(sources).expect("the benchmarks' folder") {
            let path = entry.expect("it can be read").path();
            let name = path.file_stem().and_then(OsStr::to_str).expect("a name");
            if path.extension() == Some(OsStr::new("rs")) && name != "report" {
                let row = format!("| `{name}` | ");
                assert!(DOCUMENT.contains(&row), "no row of {name} in docs/design/performance.md");
            }
        }
    }
}
