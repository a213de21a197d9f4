//! `ebb schema`: what may stand in manifests, for editors. It says less than `ebb lint`, which knows what
//! fields have to do with each other.

use std::process::ExitCode;

use crate::output;

/// The schema, in JSON Schema of draft 7.
const SCHEMA: &str = include_str!("../../../config/ebb.schema.json");

/// Prints the schema of manifests.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    output::print_line(SCHEMA.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
