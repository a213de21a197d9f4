//! Programs of other makers, as `tests/people/build` and `tests/cluster/build` have built them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// One of the programs that `tests/people/build` makes.
pub(crate) fn tool(name: &str) -> Command {
    Command::new(built("target/people/bin", name, "tests/people/build"))
}

pub(crate) fn kubectl() -> Command {
    Command::new(built("target/cluster/bin", "kubectl", "tests/cluster/build"))
}

fn built(folder: &str, name: &str, script: &str) -> PathBuf {
    let program = root().join(folder).join(name);
    assert!(program.exists(), "{} is missing: run {script}", program.display());
    program
}

/// The text that a command prints; a command that fails is a failed test.
pub(crate) fn printed_by(command: &mut Command) -> String {
    let output = command.current_dir(root()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
