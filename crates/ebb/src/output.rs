//! How things are shown: errors once and whole, tables for people, JSON for programs.

use std::io::{self, Write as _};

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
    complain(&format!("{ERROR}error:{ERROR:#} {problem}"));
}

/// Prints one warning.
pub(crate) fn print_warning(warning: &str) {
    complain(&format!("{WARNING}warning:{WARNING:#} {warning}"));
}

/// `eprintln!` would panic if nobody reads it.
fn complain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_line(&serde_json::to_string_pretty(value)?)
}

/// Prints a line. It fails when the reader has gone (`ebb get --watch | head`), which [`is_reader_gone`] recognises.
pub(crate) fn print_line(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Whether the error says that nobody reads what we print: a reason to end, not to complain.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
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
