//! How things are shown: errors once and whole, tables for people, JSON for programs.

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error with its causes on one line.
pub(crate) fn print_error(error: &anyhow::Error) {
    print_problem(&format!("{error:#}"));
}

/// Prints one problem.
pub(crate) fn print_problem(problem: &str) {
    anstream::eprintln!("{ERROR}error:{ERROR:#} {problem}");
}

/// Prints one warning.
pub(crate) fn print_warning(warning: &str) {
    anstream::eprintln!("{WARNING}warning:{WARNING:#} {warning}");
}

/// Prints JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    anstream::println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// A table without lines, as `kubectl` prints them.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings);
    table
}
