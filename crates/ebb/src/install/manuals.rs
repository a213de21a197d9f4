//! What do `man` and shells find once ebb is installed, besides the units?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap_complete::Shell;

use super::scope::{ServiceScope, folder_of_user};
use crate::{manual, output};

/// With this in one of its first lines a file is ours: any other is left alone.
const MARK: &str = "Written by `ebb install`";
/// For all users of this machine, beside what packages bring.
const OF_MACHINE: &str = "/usr/local/share";
/// Below the directory, where each shell looks.
const SCRIPTS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/ebb"),
    (Shell::Zsh, "zsh/site-functions/_ebb"),
    (Shell::Fish, "fish/vendor_completions.d/ebb.fish"),
];

/// A manual page or a script for a shell.
struct ManualFile {
    path: PathBuf,
    text: String,
}

/// What is to happen to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManualsTask {
    Write,
    /// Print which files would be written.
    Show,
    Remove,
    /// The same, only to be shown.
    ShowRemoval,
}

/// Writes or removes all of them, or shows where. A service runs without them, so a file of another program
/// is named, left alone, and no reason to fail.
pub(super) fn carry_out(directory: &Path, task: ManualsTask) -> anyhow::Result<()> {
    for ManualFile { path, text } in all(directory)? {
        let place = path.display();
        let found = is_ours(&path)?;
        if found == Some(false) {
            output::print_line(&format!("left alone, as it is not of `ebb install`: {place}"))?;
            continue;
        }
        match task {
            ManualsTask::Write => {
                let written = path.parent().map_or(Ok(()), fs::create_dir_all);
                written.and_then(|()| fs::write(&path, text)).with_context(|| format!("writing {place}"))?;
                output::print_line(&format!("written: {place}"))?;
            }
            ManualsTask::Show => output::print_line(&format!("would be written: {place}"))?,
            ManualsTask::Remove if found.is_some() => {
                fs::remove_file(&path).with_context(|| format!("removing {place}"))?;
                output::print_line(&format!("removed: {place}"))?;
            }
            ManualsTask::ShowRemoval if found.is_some() => {
                output::print_line(&format!("would be removed: {place}"))?;
            }
            ManualsTask::Remove | ManualsTask::ShowRemoval => {}
        }
    }
    Ok(())
}

/// Below which directory they are looked for.
pub(super) fn directory(manager: ServiceScope) -> anyhow::Result<PathBuf> {
    match manager {
        ServiceScope::System => Ok(OF_MACHINE.into()),
        ServiceScope::User => folder_of_user("XDG_DATA_HOME", ".local/share", "--manual-directory"),
    }
}

fn all(directory: &Path) -> anyhow::Result<Vec<ManualFile>> {
    let mut files = Vec::new();
    for (name, page) in manual::pages()? {
        let text = format!(".\\\" {MARK}\n{page}");
        files.push(ManualFile { path: directory.join("man/man1").join(name), text });
    }
    for (shell, place) in SCRIPTS {
        let script = manual::script(shell);
        // The first line of zsh's says to zsh what it is for.
        let (first, rest) = script.split_once('\n').unwrap_or((&script, ""));
        let text = format!("{first}\n# {MARK}\n{rest}");
        files.push(ManualFile { path: directory.join(place), text });
    }
    Ok(files)
}

/// Whether an earlier `ebb install` wrote it; `None` if there is no file.
fn is_ours(path: &Path) -> anyhow::Result<Option<bool>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).lines().take(2).any(|line| line.contains(MARK)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}
