//! The frame of every program of ours: it reads its settings from the environment, says everything that is
//! wrong with them, and ends with an exit code that tells a bad setting from a failure.

use std::fmt::Display;
use std::process::ExitCode;

use vocabulary::{CheckedValue, Problem};

use crate::environment::Environment;
use crate::logs::{Colours, LogFormat, print_error, start_logs};

/// Something in the environment is wrong; to start again does not help.
pub const EXIT_BAD_CONFIG: u8 = 2;
/// Exit code of a program that could not start.
const EXIT_FAILED: u8 = 1;

/// Reads a program's settings from its environment, begins to log with the filter among them, and runs it
/// with them. Variables that are not UTF-8 count as not set.
pub fn run_program<Config, Failure: Display>(
    read: impl FnOnce(&Environment) -> Result<CheckedValue<Config>, Vec<Problem>>,
    log_filter: impl FnOnce(&Config) -> &str,
    run: impl FnOnce(Config) -> Result<(), Failure>,
) -> ExitCode {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let CheckedValue { value: config, warnings } = match read(&environment.collect()) {
        Ok(checked) => checked,
        Err(problems) => {
            problems.into_iter().for_each(print_error);
            return ExitCode::from(EXIT_BAD_CONFIG);
        }
    };
    if let Err(error) = start_logs(LogFormat::Text, log_filter(&config), Colours::Off) {
        print_error(format_args!("{error:#}"));
        return ExitCode::from(EXIT_BAD_CONFIG);
    }
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("{error:#}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}
