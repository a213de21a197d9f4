//! A copy of the sources, in which mutants are built and tested.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// The packages whose tests look at the control loop, the fastest first.
const TESTED: [&str; 3] = ["scaling", "orchestration", "simulator"];
/// The tests of a mutant may take so many times as long as without the change: an endless loop is caught.
const PATIENCE: u32 = 5;
/// The least limit: a short test may be slowed down by other work of the machine.
const LIMIT_MIN: Duration = Duration::from_secs(60);
/// Without a change the tests take minutes at most.
const UNCHANGED_MAX: Duration = Duration::from_secs(3_600);
/// Nothing is fetched, and nothing is printed.
const QUIETLY: [&str; 3] = ["--quiet", "--locked", "--offline"];

/// The copy, and where it is built.
pub(super) struct SourceCopy {
    root: PathBuf,
    target: PathBuf,
}

/// How the tests of a mutant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestEnd {
    NotBuilt,
    /// A test failed, or took too long.
    Failed,
    Passed,
}

/// How long tests take, and how long they may.
pub(super) struct Patience {
    pub(super) unchanged: Duration,
    pub(super) limit: Duration,
}

impl SourceCopy {
    /// Copies every file that git knows. A file that is the same already stays, so cargo builds only what
    /// has changed since the last run. A file that git no longer knows goes: cargo would build a test of it.
    pub(super) fn new(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let copy = Self { root: folder.join("sources"), target: folder.join("build") };
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
        let listed = listed.context("starting git")?;
        ensure!(listed.status.success(), "git does not list the files of {}", root.display());
        let mut copied = BTreeSet::new();
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let (from, to) = (root.join(name), copy.root.join(name));
            // A file that is removed and not committed yet.
            let Ok(bytes) = std::fs::read(&from) else { continue };
            copied.insert(to.clone());
            if std::fs::read(&to).is_ok_and(|present| present == bytes) {
                continue;
            }
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&to, bytes).with_context(|| format!("writing {}", to.display()))?;
        }
        remove_others(&copy.root, &copied)?;
        Ok(copy)
    }

    /// Runs the tests without a change, which must pass.
    pub(super) fn patience(&self) -> anyhow::Result<Patience> {
        // Built before, so that the time is that of the tests.
        ensure!(self.is_built()?, "the sources do not compile without a change");
        #[expect(clippy::disallowed_methods, reason = "a tool that people run measures how long it waits")]
        let began = Instant::now();
        let end = self.test(UNCHANGED_MAX)?;
        ensure!(end == TestEnd::Passed, "the tests do not pass without a change");
        let unchanged = began.elapsed();
        Ok(Patience { unchanged, limit: unchanged.saturating_mul(PATIENCE).max(LIMIT_MIN) })
    }

    /// Does something with one file changed, and puts the file back.
    pub(super) fn with_change<Found>(
        &self,
        file: &Path,
        text: &str,
        act: impl FnOnce(&Self) -> anyhow::Result<Found>,
    ) -> anyhow::Result<Found> {
        let path = self.root.join(file);
        let before = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        let found = act(self);
        std::fs::write(&path, before).with_context(|| format!("writing {}", path.display()))?;
        found
    }

    /// Builds and runs the tests, package by package, until one fails.
    pub(super) fn test(&self, limit: Duration) -> anyhow::Result<TestEnd> {
        if !self.is_built()? {
            return Ok(TestEnd::NotBuilt);
        }
        for package in TESTED {
            let mut tests = self.program("timeout");
            tests.arg(limit.as_secs().to_string()).arg(cargo_program());
            let arguments = ["test", "--package", package, "--lib", "--tests"];
            let status = tests.args(arguments).args(QUIETLY).status().context("starting timeout")?;
            if !status.success() {
                return Ok(TestEnd::Failed);
            }
        }
        Ok(TestEnd::Passed)
    }

    /// A test that no longer compiles is no reason to call a mutant caught, so the tests are built too.
    fn is_built(&self) -> anyhow::Result<bool> {
        let mut build = self.program(cargo_program());
        build.args(["test", "--no-run", "--lib", "--tests"]).args(QUIETLY);
        build.args(TESTED.iter().flat_map(|package| ["--package", package]));
        Ok(build.status().context("starting cargo")?.success())
    }

    fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut program = Command::new(name);
        program.current_dir(&self.root);
        // A mutant that was green once stays so: each draws the same worlds and inputs. A failure of one is
        // no input that others have to try.
        program.env("CARGO_TARGET_DIR", &self.target).env("PROPTEST_RNG_SEED", "1");
        program.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("INSTA_UPDATE", "no");
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program
    }
}

/// Removes each file below a folder that is none of these, and each folder that is empty then.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let listed = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in listed {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_others(&path, kept)?;
            if std::fs::read_dir(&path)?.next().is_none() {
                std::fs::remove_dir(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

/// The cargo that runs this program, with its toolchain.
fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_from_the_sources_goes_from_the_copy_with_its_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = |name: &str| folder.path().join(name);
        for name in ["crates/one/src/lib.rs", "crates/one/tests/old.rs", "crates/two/src/lib.rs", "old.toml"]
        {
            let path = place(name);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the disk has room");
            std::fs::write(&path, name).expect("the disk has room");
        }
        let kept = BTreeSet::from([place("crates/one/src/lib.rs")]);
        remove_others(folder.path(), &kept).expect("all can be removed");
        assert!(place("crates/one/src/lib.rs").is_file());
        for gone in ["crates/one/tests", "crates/two", "old.toml"] {
            assert!(!place(gone).exists(), "{gone} is there still");
        }
    }
}
