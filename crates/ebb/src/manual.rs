//! `ebb completion` and `ebb man`: what shells and `man` are told of the command line, made from the same
//! description that reads it.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionOptions, ManOptions};

const NAME: &str = "ebb";

/// Prints a shell's script.
pub(crate) fn complete(options: &CompletionOptions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), NAME, &mut script);
    print(&script)
}

/// Prints `ebb(1)`, or writes that and a page for each command.
pub(crate) fn run(options: &ManOptions) -> anyhow::Result<ExitCode> {
    let Some(directory) = &options.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return print(&page);
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("writing manual pages to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
