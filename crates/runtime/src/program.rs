//! What every program of ours does around its own work: it reads its settings from the environment, says everything that is wrong with them, and ends with an exit
//! code that tells a bad setting from a failure.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::print_error;

/// Something in the environment is wrong; to start again does not help.
const EXIT_BAD_CONFIG: u8 = 2;
/// It could not start.
const EXIT_FAILED: u8 = 1;

/// Reads a program's settings from its environment, and runs it with them. Variables that are not UTF-8 count as not set.
pub fn run_program<Config, Failure: Display>(
    read: impl FnOnce(&BTreeMap<String, String>) -> Result<Config, Vec<String>>,
    run: impl FnOnce(Config) -> Result<(), Failure>,
) -> ExitCode {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = match read(&environment.collect()) {
        Ok(config) => config,
        Err(problems) => {
            problems.into_iter().for_each(print_error);
            return ExitCode::from(EXIT_BAD_CONFIG);
        }
    };
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(format_args!("{error:#}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The address that a variable names, or else `default`. What is none is one of the `problems`.
pub fn read_address(
    environment: &BTreeMap<String, String>,
    key: &str,
    default: &str,
    problems: &mut Vec<String>,
) -> SocketAddr {
    let text = environment.get(key).map_or(default, String::as_str);
    text.parse().unwrap_or_else(|_| {
        problems.push(format!("{key} is {text:?}; write an address with a port, such as \"{default}\""));
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}
