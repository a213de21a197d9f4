//! When do two variants differ most, and why?

use std::fmt::Write as _;
use std::time::Duration;

use simulator::{CountDifference, greatest_differences};
use vocabulary::format_duration;

use super::outcome::VariantOutcome;

/// So many instants are shown for each Service.
const SHOWN: usize = 3;

/// The greatest differences of each Service, with the reasons of both variants.
pub(super) fn text(first: &VariantOutcome, second: &VariantOutcome, length: Duration) -> String {
    let mut text = String::new();
    for (one, other) in first.report.services.iter().zip(&second.report.services) {
        let found = greatest_differences(&one.counts, &other.counts, length, SHOWN);
        let (first, second) = (&first.title, &second.title);
        // A String takes whatever is written to it.
        let _ = if found.is_empty() {
            writeln!(text, "\n{}: {second} has as many pods as {first} at all times", one.name)
        } else {
            writeln!(text, "\n{}: {second} differs most from {first}", one.name)
        };
        for difference in &found {
            add(&mut text, difference, first, second);
        }
    }
    text.trim_end().to_owned()
}

fn add(text: &mut String, difference: &CountDifference, first: &str, second: &str) {
    let CountDifference { at, lasted, first: of_first, second: of_second } = difference;
    let whole = |span: &Duration| format_duration(Duration::from_secs(span.as_secs()));
    let _ = writeln!(
        text,
        "  after {}, for {}: {} pods and not {}",
        whole(at),
        whole(lasted),
        of_second.count,
        of_first.count
    );
    for (title, count) in [(first, of_first), (second, of_second)] {
        let _ = writeln!(text, "    {title}: {} since {}: {}", count.count, whole(&count.at), count.why);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;

    #[test]
    fn a_difference_has_its_time_both_counts_and_both_reasons() {
        let (first, second) =
            (outcome("as written", &[(0, 1), (60, 8)]), outcome("window=30s", &[(0, 1), (60, 8), (90, 2)]));
        let text = text(&first, &second, Duration::from_secs(120));
        for expected in [
            "default/service/hello: window=30s differs most from as written",
            "after 1m30s, for 30s: 2 pods and not 8",
            "as written: 8 since 1m: as written needs 8",
            "window=30s: 2 since 1m30s: window=30s needs 2",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
        let text = super::text(&first, &first, Duration::from_secs(120));
        assert!(text.contains("as many pods"), "{text}");
    }
}
