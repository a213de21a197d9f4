//! Logs to standard error: for people, or as JSON for machines.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging for the process. `filter` is a `tracing` filter such as `info` or `info,autoscaler=debug`; it fails if that cannot be
/// read, or if logging was started before. A process whose standard error is closed goes on without logs.
pub fn start_logs(format: LogFormat, filter: &str, colours: Colours) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("the log filter {filter:?} is malformed; write something like \"info\""))?;
    // A line that nobody reads any more is lost. By default, complaining about it on the same standard error would panic.
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let started = match format {
        LogFormat::Text => lines.with_ansi(colours == Colours::On).with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging was started twice: {error}"))
}

/// Whether log lines carry terminal colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// No escape codes.
    #[default]
    Off,
    /// For a terminal.
    On,
}
