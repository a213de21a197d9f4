//! The command line of every benchmark program.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

/// What all benchmark programs take.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// A short form that proves that the program works; its numbers mean little.
    #[arg(long)]
    pub quick: bool,
    /// How often every contestant has its turn.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// How long one contestant's turn in one cell takes, in whole seconds, where a benchmark measures for a
    /// time.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u32>,
    /// Only what has this in its name.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Writes everything that was measured.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Draws the results into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Says that cargo runs a benchmark; `cargo bench` adds it.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// Reads the command line; on a mistake the process ends with a message.
    pub fn read() -> Self {
        Self::parse()
    }

    /// The same for a benchmark that has no parts: `--only` is a mistake there.
    pub fn read_whole() -> Self {
        Self::parse().whole().unwrap_or_else(|error| error.exit())
    }

    fn whole(self) -> Result<Self, clap::Error> {
        let Some(only) = &self.only else { return Ok(self) };
        let message =
            format!("this benchmark has no parts, so there is no \"{only}\" to measure: leave --only out");
        Err(Self::command().error(ErrorKind::ArgumentConflict, message))
    }

    /// How many rounds: what was asked for, else `full`, or `quick` in the short form.
    pub fn rounds(&self, full: usize, quick: usize) -> usize {
        self.rounds.unwrap_or(if self.quick { quick } else { full }).max(1)
    }

    /// How long a turn takes: what was asked for, else `full` seconds, or one in the short form.
    pub fn turn(&self, full: u32) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(if self.quick { 1 } else { full }).max(1).into())
    }

    /// Whether something of this name is to be measured.
    pub fn includes(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only))
    }

    /// The first value in a full run, the second in a quick one.
    pub fn choose<Value>(&self, full: Value, quick: Value) -> Value {
        if self.quick { quick } else { full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_without_parts_refuses_to_measure_one() {
        let read = |arguments: &[&str]| {
            let program = ["bench"].iter().chain(arguments);
            Options::try_parse_from(program)
                .expect("they are known")
                .whole()
                .map_err(|error| error.to_string())
        };
        assert!(read(&["--quick", "--bench"]).is_ok());
        let refused = read(&["--only", "h2c"]).expect_err("there are no parts");
        assert!(refused.contains("no \"h2c\" to measure: leave --only out"), "{refused}");
    }
}
