//! How things are shown: errors once and whole, tables for people, JSON for programs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table};
use runtime::LogFormat;
use serde::Serialize;
use vocabulary::format_duration;

pub(crate) const DAY_SECONDS: u64 = 86_400;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error with its causes on one line.
pub(crate) fn print_error(error: &anyhow::Error) {
    print_problem(&format!("{error:#}"));
}

/// Prints one problem as an error, in the format of the logs.
pub(crate) fn print_problem(problem: &str) {
    match runtime::error_format() {
        LogFormat::Text => write_to_stderr(&format!("{ERROR}error:{ERROR:#} {}", escaped(problem))),
        LogFormat::Json => runtime::print_error(problem),
    }
}

/// Prints one warning, in the format of the logs.
pub(crate) fn print_warning(warning: &str) {
    match runtime::error_format() {
        LogFormat::Text => write_to_stderr(&format!("{WARNING}warning:{WARNING:#} {}", escaped(warning))),
        LogFormat::Json => runtime::print_warning(warning),
    }
}

/// `eprintln!` would panic without a reader.
fn write_to_stderr(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_shown(&serde_json::to_string_pretty(value)?)
}

/// Prints what others have said, for people to see: pods and apps write what they like, and a terminal does
/// what it is told.
pub(crate) fn print_shown(text: &str) -> anyhow::Result<()> {
    print_line(&escaped(text))
}

/// Prints a line of an app as it is, whatever that does to a terminal.
pub(crate) fn print_raw(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// With what could control a terminal, or show letters in another order than they stand, written as JSON
/// does (`\\u001b`). So JSON means the same as before.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_controlling) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_controlling(letter) {
            // A String takes whatever is written to it.
            let _ = write!(safe, "\\u{:04x}", u32::from(letter));
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

fn is_controlling(letter: char) -> bool {
    let is_order =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_order || (letter.is_control() && !matches!(letter, '\n' | '\t'))
}

/// Prints a line. It fails when the reader has gone (`ebb get --watch | head`), which [`is_reader_gone`]
/// recognises.
pub(crate) fn print_line(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Whether the error says that no program reads what we print: a reason to end, not to complain.
pub(crate) fn is_reader_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether people see what we print.
pub(crate) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}

/// How wide a line may be: as wide as the terminal, or as what the classic one was. Where standard output is
/// no terminal, a line may have any length.
pub(crate) fn width() -> usize {
    const CLASSIC: usize = 80;
    if !is_terminal() {
        return usize::MAX;
    }
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

/// A length of time with its two greatest parts: "6d3h", "2h5m", "45s".
pub(crate) fn span(seconds: u64) -> String {
    let (days, hours) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS / 3600);
    match (days, hours) {
        (0, 0) => format_duration(Duration::from_secs(seconds)),
        (0, _) => format_duration(Duration::from_secs(seconds / 60 * 60)),
        (_, 0) => format!("{days}d"),
        (_, _) => format!("{days}d{hours}h"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_their_two_greatest_parts() {
        for (seconds, text) in [(45, "45s"), (7530, "2h5m"), (86_400, "1d"), (530_000, "6d3h")] {
            assert_eq!(span(seconds), text);
        }
    }

    #[test]
    fn control_characters_are_escaped_and_all_else_is_as_it_was() {
        for (text, expected) in [
            ("a line\n\tand another: é 漢 🙂", "a line\n\tand another: é 漢 🙂"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("\u{1b}[2J\u{1b}[31mred", "\\u001b[2J\\u001b[31mred"),
            ("100 %\rdone\u{8}", "100 %\\u000ddone\\u0008"),
            ("\u{9b}2J \u{7f}", "\\u009b2J \\u007f"),
            ("evil\u{202e}txt.exe", "evil\\u202etxt.exe"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"line": "\u{1b}[2J \u{9b}2J \u{202e} \n \t é"});
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let safe = escaped(&text);
        assert_ne!(safe, text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON still"), value);
    }
}
