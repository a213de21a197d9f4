//! How things are shown: errors once and whole, tables for people, JSON for programs.

use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table};
use runtime::LogFormat;
use serde::Serialize;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error with its causes on one line.
pub(crate) fn print_error(error: &anyhow::Error) {
    print_problem(&format!("{error:#}"));
}

/// Prints one problem.
pub(crate) fn print_problem(problem: &str) {
    match runtime::error_format() {
        LogFormat::Text => complain(&format!("{ERROR}error:{ERROR:#} {problem}")),
        LogFormat::Json => runtime::print_error(problem),
    }
}

/// Prints one warning.
pub(crate) fn print_warning(warning: &str) {
    match runtime::error_format() {
        LogFormat::Text => complain(&format!("{WARNING}warning:{WARNING:#} {warning}")),
        LogFormat::Json => runtime::print_warning(warning),
    }
}

/// `eprintln!` would panic if nobody reads it.
fn complain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_line(&serde_json::to_string_pretty(value)?)
}

/// Prints a line. It fails when the reader has gone (`ebb get --watch | head`), which [`is_reader_gone`]
/// recognises.
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

/// Whether people see what we print.
pub(crate) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// How wide a line may be: as wide as the terminal, or as what the classic one was.
pub(crate) fn width() -> usize {
    const CLASSIC: usize = 80;
    let said = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    terminal.or_else(said).unwrap_or(CLASSIC)
}

/// The line in at most so many characters.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// A table without lines, as `kubectl` prints them.
pub(crate) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}
