//! `ebb completion` and `ebb man`: what shells and `man` are told of the command line, made from the same
//! description that reads it.

mod completion;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionOptions, ManOptions};
pub(crate) use completion::script;

/// Prints the script by which a shell completes commands.
pub(crate) fn complete(options: &CompletionOptions) -> anyhow::Result<ExitCode> {
    print(script(options.shell).as_bytes())
}

/// Prints `ebb(1)`, or writes that and a page for each command.
pub(crate) fn run(options: &ManOptions) -> anyhow::Result<ExitCode> {
    let Some(directory) = &options.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return print(&page);
    };
    let mut written = std::fs::create_dir_all(directory);
    for (name, page) in pages()? {
        written = written.and_then(|()| std::fs::write(directory.join(name), page));
    }
    written.with_context(|| format!("writing manual pages to {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of each command that people give, with the name of its file.
pub(crate) fn pages() -> anyhow::Result<Vec<(String, String)>> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        let page = clap_mangen::Man::new(command);
        let mut text = Vec::new();
        page.render(&mut text)?;
        pages.push((page.get_filename(), String::from_utf8_lossy(&text).into_owned()));
    }
    Ok(pages)
}

fn print(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
