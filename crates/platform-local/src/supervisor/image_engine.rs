//! What `ebb up` has an engine do: pull an image, and remove containers that no process has.

use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::images::{INSTANCE_LABEL, ImageEngine, has_owner, prefix_of_containers};

/// How long an engine may take for anything but a pull. One that hangs holds up no pod for longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// So many of the last lines of a failed pull are told.
const LAST_LINES: usize = 3;

/// Whether the image is on this machine.
pub(super) async fn has_image(engine: ImageEngine, reference: &str) -> bool {
    let words = ["image", "inspect", "--format", "{{.Id}}", reference];
    answer(engine, &words).await.is_ok_and(|output| output.status.success())
}

/// Pulls an image, and hands out each line of its progress. Fails with the last lines that the engine
/// printed. Dropped, it ends the pull.
pub(super) async fn pull(
    engine: ImageEngine,
    reference: &str,
    mut progress: impl FnMut(String),
) -> Result<(), Vec<String>> {
    let failed = |error: io::Error| vec![format!("{engine}: {error}")];
    let mut command = command(engine, &["pull", reference]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let stdout = child.stdout.take().expect("it is piped");
    let stderr = child.stderr.take().expect("it is piped");
    let (mut printed, mut errors) = (BufReader::new(stdout).lines(), BufReader::new(stderr).lines());
    let (mut prints, mut complains) = (true, true);
    let mut last = Vec::new();
    // Both engines say how far they are, one here and one there; what failed stands in the second.
    while prints || complains {
        // Cancel-safe: a line that is not complete stays with its reader.
        tokio::select! {
            line = printed.next_line(), if prints => match line {
                Ok(Some(line)) => progress(line),
                Ok(None) | Err(_) => prints = false,
            },
            line = errors.next_line(), if complains => match line {
                Ok(Some(line)) => {
                    if last.len() == LAST_LINES {
                        last.remove(0);
                    }
                    last.push(line.clone());
                    progress(line);
                }
                Ok(None) | Err(_) => complains = false,
            },
        }
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() { Ok(()) } else { Err(last) }
}

/// Removes the containers of every `ebb pod` that is gone, whichever `ebb up` it was of.
pub(crate) async fn remove_ownerless(engine: ImageEngine) {
    let label = format!("label={INSTANCE_LABEL}");
    let listed = answer(engine, &["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]).await;
    let names = match listed.and_then(|output| printed(&output)) {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%engine, %error, "it is not known whether containers of pods are left over");
            return;
        }
    };
    let prefix = prefix_of_containers();
    let is_left = |name: &&str| name.starts_with(&prefix) && !has_owner(name);
    let left: Vec<&str> = names.lines().map(str::trim).filter(is_left).collect();
    if left.is_empty() {
        return;
    }
    let removed = answer(engine, &[engine.removal(), left.as_slice()].concat()).await;
    let containers = left.join(", ");
    if removed.is_ok_and(|output| output.status.success()) {
        tracing::info!(%engine, containers, "removed containers whose pods are gone");
    } else {
        tracing::warn!(%engine, containers, "containers whose pods are gone cannot be removed");
    }
}

/// What a command of the engine printed, if it ended well; else its complaint.
fn printed(output: &Output) -> io::Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: {}", output.status, complaint.trim())))
}

/// What a command of the engine ends with and prints, if it does so in time.
async fn answer(engine: ImageEngine, words: &[&str]) -> io::Result<Output> {
    let ended = tokio::time::timeout(PATIENCE, command(engine, words).output()).await;
    ended.unwrap_or_else(|_| Err(io::Error::other(format!("no answer within {PATIENCE:?}"))))
}

fn command(engine: ImageEngine, words: &[&str]) -> Command {
    let mut command = Command::new(engine.program());
    command.args(words).stdin(Stdio::null()).kill_on_drop(true);
    command
}
