//! Does the reference of metrics, `docs/reference/metrics.md`, have the rows of a page of metrics? Each
//! program that has metrics asks in its tests.

/// The faults of a reference, a sentence each: metrics of `page` (OpenMetrics text) without a row in
/// `manual`, and rows of `manual` whose names begin with `prefix` and that belong to no metric of the page.
pub fn reference_faults(manual: &str, page: &str, prefix: &str) -> Vec<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let rows: Vec<String> = types
        .map(|(name, kind)| {
            let total = if kind == "counter" { "_total" } else { "" };
            format!("| `{name}{total}` | {kind} |")
        })
        .collect();
    let missing = rows.iter().filter(|row| !manual.contains(row.as_str()));
    let is_known = |line: &str| rows.iter().any(|row| line.starts_with(row));
    let begin = format!("| `{prefix}");
    let others = manual.lines().filter(|line| line.starts_with(&begin) && !is_known(line));
    let missing = missing.map(|row| format!("no row begins with {row}"));
    missing.chain(others.map(|line| format!("no metric has the row {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_without_a_row_and_rows_without_a_metric_are_faults() {
        let page =
            "# HELP app_wakes Wakes.\n# TYPE app_wakes counter\napp_wakes_total 1\n# TYPE app_pods gauge\n";
        let manual = "| `app_wakes_total` | counter | wakes |\n| `app_pods` | gauge | pods |\n";
        assert_eq!(reference_faults(manual, page, "app_"), [""; 0]);
        let manual =
            "| `app_wakes` | counter | wakes |\n| `app_pods` | gauge | pods |\n| `other` | gauge | |\n";
        let expected = [
            "no row begins with | `app_wakes_total` | counter |",
            "no metric has the row | `app_wakes` | counter | wakes |",
        ];
        assert_eq!(reference_faults(manual, page, "app_"), expected);
    }
}
