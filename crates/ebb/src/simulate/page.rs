//! The whole report as one file that any browser shows: the table, the charts of the dashboard's pages, the
//! differences and the verdict, without anything to load.

use std::fmt::Write as _;
use std::time::Duration;

use dashboard::ChartReport;
use serde::Serialize;
use simulator::ServiceReport;

use super::chart::{column_counts, escaped_for_markup};
use super::outcome::VariantOutcome;

/// As many changes of a count have their reasons in the file: those of a week of a Service whose count
/// changes each ten minutes. `--json` writes all of them.
const CHANGES_MAX: usize = 1_000;

/// What the page shows, from top to bottom.
pub(super) struct ReportPage<'o> {
    pub(super) headings: &'o [&'o str],
    pub(super) rows: Vec<Vec<String>>,
    pub(super) charts: ReportNumbers<'o>,
    /// What differs most and the verdict, as they are printed.
    pub(super) texts: Vec<String>,
}

/// The numbers of the charts, as the script of the file reads them.
#[derive(Debug, Serialize)]
pub(super) struct ReportNumbers<'o> {
    length_ms: u128,
    services: Vec<ServiceNumbers<'o>>,
}

#[derive(Debug, Serialize)]
struct ServiceNumbers<'o> {
    name: &'o str,
    variants: Vec<VariantNumbers<'o>>,
}

#[derive(Debug, Serialize)]
struct VariantNumbers<'o> {
    title: &'o str,
    /// The greatest count in each of the equal parts of the length.
    counts: Vec<u32>,
    /// When the count changed, in milliseconds, to which, and why.
    changes: Vec<(u128, u32, &'o str)>,
    changes_left_out: usize,
}

impl<'o> ReportNumbers<'o> {
    pub(super) fn new(outcomes: &'o [VariantOutcome], length: Duration) -> Self {
        let services = outcomes.first().map_or(&[][..], |first| first.report.services.as_slice());
        let numbers = services.iter().enumerate().map(|(place, service)| ServiceNumbers {
            name: service.name.as_str(),
            variants: outcomes
                .iter()
                .filter_map(|outcome| {
                    Some(variant(&outcome.title, outcome.report.services.get(place)?, length))
                })
                .collect(),
        });
        Self { length_ms: length.as_millis(), services: numbers.collect() }
    }
}

fn variant<'o>(title: &'o str, service: &'o ServiceReport, length: Duration) -> VariantNumbers<'o> {
    let changes = service.counts.iter().take(CHANGES_MAX);
    VariantNumbers {
        title,
        counts: column_counts(&service.counts, length),
        changes: changes
            .map(|count| (count.at.as_millis(), count.count.value(), count.why.as_str()))
            .collect(),
        changes_left_out: service.counts.len().saturating_sub(CHANGES_MAX),
    }
}

impl ReportPage<'_> {
    /// The text of the file. A String takes whatever is written to it, so that no error is lost here.
    pub(super) fn markup(&self) -> String {
        let mut above = "<header><h1>ebb simulate</h1></header>\n\
                         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Variants\">\
                         <table><thead><tr>"
            .to_owned();
        for (column, heading) in self.headings.iter().enumerate() {
            let _ =
                write!(above, "<th scope=\"col\"{}>{}</th>", class_of(column), escaped_for_markup(heading));
        }
        above.push_str("</tr></thead>\n<tbody>");
        for row in &self.rows {
            above.push_str("\n<tr>");
            for (column, cell) in row.iter().enumerate() {
                let _ = write!(above, "<td{}>{}</td>", class_of(column), escaped_for_markup(cell));
            }
            above.push_str("</tr>");
        }
        above.push_str("\n</tbody></table></div>\n<h2>Counts of pods</h2>");
        let mut below = String::new();
        for text in &self.texts {
            let _ = writeln!(below, "<pre tabindex=\"0\">{}</pre>", escaped_for_markup(text.trim()));
        }
        let numbers = serde_json::to_string(&self.charts).expect("numbers are plain data");
        ChartReport { title: "ebb simulate", above: &above, below: &below, numbers: &numbers }.file()
    }
}

/// Behind the variant and its Service each column has numbers.
fn class_of(column: usize) -> &'static str {
    if column < 2 { "" } else { " class=\"number\"" }
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;

    #[test]
    fn a_page_is_whole_and_its_numbers_are_those_of_the_variants() {
        let outcomes = [outcome("as written", &[(0, 1), (60, 8)]), outcome("target=<5>", &[(0, 2)])];
        let charts = ReportNumbers::new(&outcomes, Duration::from_secs(120));
        let page = ReportPage {
            headings: &["VARIANT", "SERVICE", "PODS"],
            rows: vec![vec!["target=<5>".to_owned(), "hello".to_owned(), "1-8".to_owned()]],
            charts,
            texts: vec!["\na & b".to_owned()],
        };
        let markup = page.markup();
        for expected in [
            "<th scope=\"col\">VARIANT</th>",
            "<td>target=&lt;5&gt;</td><td>hello</td><td class=\"number\">1-8</td>",
            "<pre tabindex=\"0\">a &amp; b</pre>",
            "{\"length_ms\":120000,\"services\":[{\"name\":\"default/service/hello\",\"variants\":[",
            "\"changes\":[[0,1,\"as written needs 1\"],[60000,8,\"as written needs 8\"]],\"changes_left_out\":0}",
            "{\"title\":\"target=\\u003c5>\",\"counts\":[2,2,",
        ] {
            assert!(markup.contains(expected), "{expected} is missing in\n{markup}");
        }
    }

    #[test]
    fn a_service_of_many_changes_has_the_reasons_of_the_first_ones() {
        let counts: Vec<(u64, u32)> =
            (0..1_200_u64).map(|second| (second, u32::from(second.is_multiple_of(2)))).collect();
        let outcomes = [outcome("as written", &counts)];
        let numbers = ReportNumbers::new(&outcomes, Duration::from_secs(1_200));
        let variant = &numbers.services[0].variants[0];
        assert_eq!(
            (variant.counts.len(), variant.changes.len(), variant.changes_left_out),
            (800, 1_000, 200)
        );
        assert!(ReportNumbers::new(&[], Duration::from_secs(60)).services.is_empty());
    }
}
