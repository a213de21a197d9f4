//! Instructions in user space, counted by valgrind's tool callgrind: how a program runs under it, and where
//! the profile is found when the program has ended.
//!
//! Counts do not depend on how busy the machine is, so one run says what a change of one in a hundred costs.
//! The program runs some 50 times slower than it does alone.
//!
//! A profile is written by the program's own end: it is asked to end (SIGTERM), drains and exits. The other
//! ways were weighed. `callgrind_control` asks through valgrind's debugger server, which needs ptrace for a
//! program that sleeps in a system call, and many containers forbid that. `--dump-before=FUNCTION` and
//! `--toggle-collect=FUNCTION` need the name of a function that the compiler did not inline, which changes
//! from one release of the compiler to the next. What start and end cost is in the profile then; it is the
//! same in a short and in a long run, and goes in their difference ([`cost`]).
//!
//! Each thread has a profile of its own (`--separate-threads`), so that one part of `ebb up` can be told from
//! the others, whose work goes by the clock and not by the request.

pub mod cost;
pub mod figures;
mod functions;
pub mod profile;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::machine;
use profile::Profile;

/// The tool and the package of Debian that has it.
pub const NEEDED: (&str, &str) = ("valgrind", "valgrind");

/// `--fair-sched`: valgrind runs one thread at a time, and without it a busy thread would starve the others.
/// `--vgdb`: no debugger is wanted, and its server would leave files in `/tmp`.
const ARGUMENTS: &str = "-q --tool=callgrind --separate-threads=yes --fair-sched=try --vgdb=no";

/// An executable that is to run under callgrind.
#[derive(Debug)]
pub struct Callgrind {
    /// The program that starts it so.
    program: PathBuf,
    /// Where profiles lie: this path, a dot and the process's id, and for each thread `-NN`.
    profiles: PathBuf,
}

impl Callgrind {
    /// Writes a program into `folder` that runs `executable` under callgrind, with the arguments and in the
    /// environment that the program is given. Processes that the executable starts run by themselves. Fails,
    /// with how to get it, unless valgrind is there.
    pub fn of(executable: &Path, folder: &Path) -> anyhow::Result<Self> {
        machine::require(&[NEEDED])?;
        let program = folder.join("under-callgrind");
        let profiles = folder.join("callgrind");
        // `exec` keeps the process's id, by which it is asked to end and its profile is named. The
        // environment may be another one, without a PATH.
        let script = format!(
            "#!/bin/sh\nPATH=${{PATH:-/usr/local/bin:/usr/bin:/bin}}\nexport PATH\n\
             exec valgrind {ARGUMENTS} {} {} \"$@\"\n",
            quoted(&format!("--callgrind-out-file={}.%p", profiles.display())),
            quoted(&executable.display().to_string()),
        );
        fs::write(&program, script).with_context(|| format!("writing {}", program.display()))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(Self { program, profiles })
    }

    /// The program to start in the executable's place.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What each thread of a process did, once the process has ended by itself. A process that was killed
    /// has written nothing, or not all of it, and that is an error. The files are removed.
    pub fn threads(&self, pid: u32) -> anyhow::Result<Vec<Profile>> {
        let folder = self.profiles.parent().context("profiles lie in a folder")?;
        let start = format!("{}.{pid}-", self.profiles.file_name().unwrap_or_default().display());
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with(&start) {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let read = Profile::read(&text).with_context(|| format!("the profile {}", path.display()))?;
            found.push(read);
            fs::remove_file(&path)?;
        }
        ensure!(
            !found.is_empty(),
            "there is no profile {}/{start}*: process {pid} was killed before it wrote one, or did not run under \
             callgrind",
            folder.display()
        );
        Ok(found)
    }
}

/// A word of the shell that is this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "events: Ir\nob=(1) /bin/true\nfn=(1) main\n7 5\n\ntotals: 5\n";

    fn callgrind(folder: &Path) -> Callgrind {
        let [program, profiles] = ["under-callgrind", "callgrind"].map(|name| folder.join(name));
        Callgrind { program, profiles }
    }

    #[test]
    fn profiles_of_one_process_are_found_by_thread_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        // The first file stays empty where threads have profiles of their own, and 120 is another process.
        for (name, text) in [
            ("callgrind.12", ""),
            ("callgrind.12-01", WHOLE),
            ("callgrind.12-02", WHOLE),
            ("callgrind.120-01", WHOLE),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let callgrind = callgrind(folder.path());
        let threads = callgrind.threads(12).unwrap();
        assert_eq!(threads.iter().map(Profile::total).collect::<Vec<_>>(), [5, 5]);
        let error = callgrind.threads(12).unwrap_err().to_string();
        assert!(error.contains("callgrind.12-*: process 12 was killed before it wrote one"), "{error}");
    }

    #[test]
    fn a_profile_that_is_cut_off_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("callgrind.12-01"), &WHOLE[..WHOLE.len() - 12]).unwrap();
        let error = format!("{:#}", callgrind(folder.path()).threads(12).unwrap_err());
        assert!(error.contains("callgrind.12-01") && error.contains("is cut off"), "{error}");
    }

    #[test]
    fn any_path_is_one_word_of_the_shell() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
