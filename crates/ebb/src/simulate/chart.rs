//! The counts of every variant over time, as a drawing.
//!
//! A picture has few columns and a load many changes: each column shows the greatest count of its time, so
//! that no peak is lost.

use std::fmt::Write as _;
use std::time::Duration;

use simulator::RecordedCount;
use vocabulary::format_duration;

use super::outcome::VariantOutcome;

/// The drawing in its own units, which the viewer scales.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 40.0;
const COLUMNS: u32 = 800;
/// Lines across for numbers of pods, and marks below for times.
const LINES: u32 = 4;
const MARKS: u32 = 6;
/// Of equal darkness, and told apart by people who see few colours too; more variants repeat them.
const COLORS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// One chart for each Service, one below the other.
pub(super) fn charts(outcomes: &[VariantOutcome], length: Duration) -> String {
    let names: Vec<&str> = outcomes.first().map_or_else(Vec::new, |first| {
        first.report.services.iter().map(|service| service.name.as_str()).collect()
    });
    let height = HEIGHT * real(names.len().max(1));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n"
    );
    for (place, name) in names.iter().enumerate() {
        let lines = outcomes.iter().filter_map(|outcome| {
            let service = outcome.report.services.get(place)?;
            Some(ChartLine { title: &outcome.title, counts: column_counts(&service.counts, length) })
        });
        let chart = CountChart { name, top: HEIGHT * real(place), length, lines: lines.collect() };
        chart.draw(&mut svg);
    }
    svg + "</svg>\n"
}

/// The counts of one Service.
struct CountChart<'o> {
    name: &'o str,
    /// Where the chart begins in the drawing.
    top: f64,
    length: Duration,
    lines: Vec<ChartLine<'o>>,
}

/// The counts of one variant, column by column.
struct ChartLine<'o> {
    title: &'o str,
    counts: Vec<u32>,
}

impl CountChart<'_> {
    /// A String takes whatever is written to it, so that no error is lost here.
    fn draw(&self, svg: &mut String) {
        let most = self.lines.iter().flat_map(|line| &line.counts).copied().max().unwrap_or_default();
        // Whole pods between two lines.
        let step = most.div_ceil(LINES).max(1);
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\" font-size=\"15\">{}: pods</text>",
            self.top + 18.0,
            escaped_for_markup(self.name)
        );
        for line in 0..=LINES {
            let (pods, y) = (line * step, self.y(f64::from(line) / f64::from(LINES)));
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{pods}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for mark in 0..=MARKS {
            let seconds = self.length.as_secs() * u64::from(mark) / u64::from(MARKS);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x(f64::from(mark) / f64::from(MARKS)),
                self.y(0.0) + 18.0,
                format_duration(Duration::from_secs(seconds))
            );
        }
        let highest = f64::from(step * LINES);
        for (line, color) in self.lines.iter().zip(COLORS.iter().cycle()) {
            let _ = writeln!(
                svg,
                "<path d=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
                self.path(line, highest)
            );
        }
        self.draw_legend(svg);
    }

    fn draw_legend(&self, svg: &mut String) {
        let _ = write!(svg, "<text x=\"{LEFT}\" y=\"{:.1}\">", self.top + 38.0);
        for (line, color) in self.lines.iter().zip(COLORS.iter().cycle()) {
            let _ = write!(svg, "<tspan fill=\"{color}\">— {}  </tspan>", escaped_for_markup(line.title));
        }
        svg.push_str("</text>\n");
    }

    /// Steps from count to count.
    fn path(&self, line: &ChartLine<'_>, highest: f64) -> String {
        let (mut path, mut before) = (String::new(), None);
        for (column, &count) in (0_u32..).zip(&line.counts) {
            if before == Some(count) {
                continue;
            }
            let (at, y) = (x(f64::from(column) / f64::from(COLUMNS)), self.y(f64::from(count) / highest));
            let _ = match before {
                None => write!(path, "M{at:.1} {y:.1}"),
                Some(_) => write!(path, "H{at:.1}V{y:.1}"),
            };
            before = Some(count);
        }
        let _ = write!(path, "H{:.1}", x(1.0));
        path
    }

    /// The height of a part of the highest count.
    fn y(&self, part: f64) -> f64 {
        self.top + HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }
}

/// The place of a part of the length.
fn x(part: f64) -> f64 {
    LEFT + part * (WIDTH - LEFT - RIGHT)
}

/// The greatest count in the time of each column.
pub(super) fn column_counts(counts: &[RecordedCount], length: Duration) -> Vec<u32> {
    let at = |column: u32| length.mul_f64(f64::from(column) / f64::from(COLUMNS));
    let (mut next, mut present) = (0, 0);
    let columns = (1..=COLUMNS).map(|column| {
        let mut greatest = present;
        while let Some(count) = counts.get(next).filter(|count| count.at < at(column)) {
            present = count.count.value();
            // A count that held for no part of the column's time, at its very beginning, is none of it.
            greatest = if count.at <= at(column - 1) { present } else { greatest.max(present) };
            next += 1;
        }
        greatest
    });
    columns.collect()
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A text in markup: names and titles are what people have written.
pub(super) fn escaped_for_markup(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;

    #[test]
    fn each_column_has_its_greatest_count() {
        let outcome = outcome("as written", &[(0, 1), (300, 8), (301, 2), (799, 3)]);
        let counts = column_counts(&outcome.report.services[0].counts, Duration::from_secs(800));
        assert_eq!(counts.len(), 800);
        assert_eq!((counts[0], counts[299], counts[300], counts[301], counts[799]), (1, 1, 8, 2, 3));
        // Two changes in one column: the peak is seen.
        let counts = column_counts(&outcome.report.services[0].counts, Duration::from_secs(8_000));
        assert_eq!((counts[29], counts[30], counts[31]), (1, 8, 2));
    }

    #[test]
    fn a_drawing_has_a_line_for_each_variant_and_escapes_their_titles() {
        let variants = [outcome("as written", &[(0, 1), (60, 8)]), outcome("a<b&\"c\"", &[(0, 1)])];
        let svg = charts(&variants, Duration::from_secs(120));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("stroke-width").count(), 2);
        assert!(svg.contains("a&lt;b&amp;&quot;c&quot;") && !svg.contains("a<b"), "{svg}");
        assert!(svg.contains("default/service/hello: pods"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_service_without_counts_has_an_empty_chart() {
        let svg = charts(&[outcome("as written", &[])], Duration::from_secs(60));
        assert!(svg.contains("</svg>") && !svg.contains("NaN"), "{svg}");
        assert!(charts(&[], Duration::from_secs(60)).contains("</svg>"));
    }
}
