//! Logs to standard error: for people, or as JSON for machines.

mod lossy;

use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use serde_json::json;
use tracing_subscriber::EnvFilter;

pub(crate) use self::lossy::LossyWriter;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// The line that says how many others were dropped.
    fn notice(self) -> fn(u64) -> String {
        match self {
            Self::Text => {
                |lines| format!("({lines} log lines were dropped: standard error was not read fast enough)\n")
            }
            Self::Json => |lines| {
                let message = "log lines were dropped: standard error was not read fast enough";
                format!("{{\"level\":\"WARN\",\"fields\":{{\"message\":\"{message}\",\"lines\":{lines}}}}}\n")
            },
        }
    }
}

/// Whether everything on standard error is JSON. Of the process, as standard error is: a panic anywhere, and
/// a part that fails for good, must know it without being told.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on what is printed on standard error has this format, also what is no line of the log: errors of
/// [`print_error`] and panics.
pub fn print_errors_as(format: LogFormat) {
    let is_json = format == LogFormat::Json;
    if !IS_JSON.swap(is_json, Ordering::Relaxed) && is_json {
        std::panic::set_hook(Box::new(|panic| print_error(panic)));
    }
}

/// The format in which [`print_error`] writes its lines.
pub fn error_format() -> LogFormat {
    if IS_JSON.load(Ordering::Relaxed) { LogFormat::Json } else { LogFormat::Text }
}

/// Starts logging for the process. `filter` is a `tracing` filter such as `info` or `info,autoscaler=debug`;
/// it fails if that cannot be read, or if logging was started before. No thread waits until a line is read:
/// while standard error is full, lines are dropped (how many is said afterwards), and a process whose
/// standard error is closed goes on without logs.
pub fn start_logs(format: LogFormat, filter: &str, colours: Colours) -> anyhow::Result<()> {
    let filter = read_filter(filter)?;
    print_errors_as(format);
    // A line without a reader is lost. By default, complaining about it on the same standard error would
    // panic.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Mutex::new(LossyWriter::new(io::stderr(), format.notice())))
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Text => lines.with_ansi(colours == Colours::On).with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging was started twice: {error}"))
}

/// Fails if [`start_logs`] could not read this filter.
pub fn check_log_filter(filter: &str) -> anyhow::Result<()> {
    read_filter(filter).map(drop)
}

fn read_filter(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter)
        .with_context(|| format!("the log filter {filter:?} is malformed; write something like \"info\""))
}

/// The present as log lines write it.
pub fn timestamp() -> String {
    use tracing_subscriber::fmt::format::Writer;
    use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
    let mut text = String::new();
    // A string takes whatever is written to it.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// Prints an error to standard error where there are no logs yet. If standard error is closed, the line is
/// lost; `eprintln!` would panic, and the exit code would no longer say what is wrong.
pub fn print_error(error: impl fmt::Display) {
    let line = match error_format() {
        LogFormat::Text => format!("error: {error}"),
        LogFormat::Json => error_object("ERROR", &error.to_string()),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a warning to standard error where there are no logs yet.
pub fn print_warning(warning: impl fmt::Display) {
    let line = match error_format() {
        LogFormat::Text => format!("warning: {warning}"),
        LogFormat::Json => error_object("WARN", &warning.to_string()),
    };
    let _ = writeln!(io::stderr(), "{line}");
}

/// A line as `tracing` writes it.
fn error_object(level: &str, message: &str) -> String {
    json!({"timestamp": timestamp(), "level": level, "fields": {"message": message}}).to_string()
}

/// Whether log lines carry terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// No escape codes of terminals.
    #[default]
    Off,
    /// Escape codes that a terminal shows as colours.
    On,
}
