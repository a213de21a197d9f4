//! All promises on one page: a table in Markdown, and the same as HTML.

use super::{Promise, Verdict};
use crate::bench::report::Table;

/// What stands on the page of all benchmarks.
#[derive(Debug)]
pub struct PromisePage {
    /// What every benchmark promises, in the order of the page.
    pub promises: Vec<Promise>,
    /// The names of the benchmarks that were never measured here.
    pub unmeasured: Vec<String>,
    /// The commit of the page itself, where git knows.
    pub commit: Option<String>,
}

const COLUMNS: [&str; 6] = ["", "benchmark", "goal", "found", "commit", "command"];

/// Nothing but what a browser needs to show a wide table.
const STYLE: &str = "body{font:15px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}\
    td,th{border-bottom:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}\
    .missed{background:#fdd}.even{background:#ffd}code{font-size:13px}";

impl PromisePage {
    /// The page as text, with its table in Markdown.
    pub fn markdown(&self) -> String {
        let mut table = Table::new(&self.summary(), &COLUMNS);
        for promise in &self.promises {
            // A bar would end the cell.
            table.row(cells(promise).map(|cell| cell.replace('|', r"\|")));
        }
        format!("# What ebb promises\n{table}\n\n{}", self.unmeasured_words())
    }

    /// The page as a file for a browser.
    pub fn html(&self) -> String {
        let header = format!("<th>{}</th>", COLUMNS.join("</th><th>"));
        let rows: String = self.promises.iter().map(row).collect();
        let [summary, unmeasured] = [self.summary(), self.unmeasured_words()].map(|text| escaped(&text));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>What ebb promises</title>\n\
             <style>{STYLE}</style>\n<h1>What ebb promises</h1>\n<p>{summary}</p>\n\
             <table>\n<tr>{header}</tr>\n{rows}</table>\n<p>{unmeasured}</p>\n</html>\n"
        )
    }

    fn summary(&self) -> String {
        let count = |verdict| self.promises.iter().filter(|promise| promise.verdict == verdict).count();
        let [met, even, missed] = [Verdict::Met, Verdict::Even, Verdict::Missed].map(count);
        let commit = self.commit.as_deref().unwrap_or("an unknown commit");
        format!(
            "At {commit}: {} promises, of which {met} are met, {missed} missed, and {even} even (beyond the \
             limit by less than the rounds can tell). Each stands with the commit at which it was measured last.",
            self.promises.len()
        )
    }

    fn unmeasured_words(&self) -> String {
        if self.unmeasured.is_empty() {
            return "Every benchmark was measured.\n".to_owned();
        }
        format!("Never measured here: {}.\n", self.unmeasured.join(", "))
    }
}

fn cells(promise: &Promise) -> [String; 6] {
    let Promise { benchmark, goal, found, verdict, command, commit, processor: _, number: _ } = promise;
    let commit = commit.clone().unwrap_or_else(|| "unknown".to_owned());
    [
        verdict.word().to_owned(),
        benchmark.clone(),
        goal.clone(),
        found.clone(),
        commit,
        format!("`{command}`"),
    ]
}

fn row(promise: &Promise) -> String {
    let class = match promise.verdict {
        Verdict::Met => "met",
        Verdict::Even => "even",
        Verdict::Missed => "missed",
    };
    let [verdict, benchmark, goal, found, commit, _] = cells(promise).map(|cell| escaped(&cell));
    let [command, processor] = [&promise.command, &promise.processor].map(|text| escaped(text));
    format!(
        "<tr class=\"{class}\"><td>{verdict}</td><td>{benchmark}</td><td>{goal}</td>\
         <td title=\"{processor}\">{found}</td><td>{commit}</td><td><code>{command}</code></td></tr>\n"
    )
}

/// The text with what HTML would take for its own.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(goal: &str, found: &str, verdict: Verdict) -> Promise {
        let promise = crate::bench::promises::tests::promise(goal, found, verdict);
        Promise { processor: "AMD \"EPYC\"".to_owned(), ..promise }
    }

    fn page() -> PromisePage {
        PromisePage {
            promises: vec![
                promise("64x12B: CPU per request × HAProxy's", "0.95 (limit 1.00)", Verdict::Met),
                promise("p99 < 10 | 20 ms", "12", Verdict::Missed),
            ],
            unmeasured: vec!["soak".to_owned(), "cluster-wake".to_owned()],
            commit: Some("5e9a1b0".to_owned()),
        }
    }

    #[test]
    fn the_table_in_markdown_has_a_row_for_each_promise() {
        let text = page().markdown();
        assert!(text.contains("At 5e9a1b0: 2 promises, of which 1 are met, 1 missed, and 0 even"), "{text}");
        let row = text.lines().find(|line| line.contains("64x12B")).expect("a row");
        let cells: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let expected =
            ["| met", "hop", "64x12B: CPU per request × HAProxy's", "0.95 (limit 1.00)", "4d881d9"];
        assert_eq!(cells[..5], expected, "{row}");
        assert!(cells[5].starts_with("`cargo bench -p tests --bench hop`"), "{row}");
        assert!(text.contains(r"p99 < 10 \| 20 ms"), "{text}");
        assert!(text.ends_with("Never measured here: soak, cluster-wake.\n"), "{text}");
    }

    #[test]
    fn the_page_for_a_browser_escapes_texts_and_marks_misses() {
        let text = page().html();
        let missed = "<tr class=\"missed\"><td>MISSED</td><td>hop</td><td>p99 &lt; 10 | 20 ms</td>";
        assert!(text.contains(missed), "{text}");
        assert!(text.contains("<code>cargo bench -p tests --bench hop</code>"), "{text}");
        assert!(text.contains("<td title=\"AMD &quot;EPYC&quot;\">12</td>"), "{text}");
        assert_eq!(text.matches("<tr").count(), 3);
    }

    #[test]
    fn a_page_of_everything_says_so() {
        let everything = PromisePage { unmeasured: Vec::new(), ..page() };
        assert!(everything.markdown().ends_with("Every benchmark was measured.\n"));
    }
}
