//! When programs are executed, seen from outside: the kernel says when an executable is opened, to the
//! microsecond, where `/proc` knows only hundredths of a second.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

use super::{api, clock};

/// How long the end of a watch may take.
const CHECK_EVERY: u16 = 100;
/// How late a note may be on a busy machine.
const LATE: Duration = Duration::from_secs(5);

/// One start of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Which of the watched executables, by its place in their list.
    pub program: usize,
    /// The time of the start, by the benchmarks' clock.
    pub at: Duration,
}

/// Notes each start of some executables until it is dropped. Of one executable, starts of which none has
/// ended may count as one: the kernel keeps like events that follow one another once, until they are read.
#[derive(Debug)]
pub struct Executions {
    seen: Arc<Mutex<Vec<Execution>>>,
    is_over: Arc<AtomicBool>,
    watching: Option<JoinHandle<()>>,
}

impl Executions {
    /// Copies these executables into `folder`, so that no other program starts them, and watches the copies.
    /// Returns where they are.
    pub fn watch(originals: &[&Path], folder: &Path) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let (watcher, copies) = Watcher::begin(originals, folder)?;
        let seen = Arc::clone(&watcher.seen);
        let is_over = Arc::clone(&watcher.is_over);
        let watching = thread::Builder::new().name("executions".to_owned()).spawn(move || watcher.run())?;
        Ok((Self { seen, is_over, watching: Some(watching) }, copies))
    }

    /// The same, once a program is among it: the watcher of executions may be late.
    pub fn take_with(&self, program: usize) -> anyhow::Result<Vec<Execution>> {
        let mut taken = Vec::new();
        api::until(LATE, || {
            taken.extend(self.take());
            ensure!(
                taken.iter().any(|execution| execution.program == program),
                "the program was not executed"
            );
            Ok(())
        })?;
        Ok(taken)
    }

    /// What was started since the last call, in order.
    pub fn take(&self) -> Vec<Execution> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Copies a file in a process of its own. Were it open for writing here, a process that another thread
/// starts at that moment would inherit it for a while, and the kernel executes nothing that is open for
/// writing (`ETXTBSY`).
fn duplicate(original: &Path, copy: &Path) -> anyhow::Result<()> {
    let ended = Command::new("cp").arg("--").args([original, copy]).status().context("starting cp")?;
    ensure!(ended.success(), "cp ended with {ended}");
    Ok(())
}

impl Drop for Executions {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(watching) = self.watching.take() {
            // If it panicked, whatever was missing has been noticed already.
            let _ = watching.join();
        }
    }
}

struct Watcher {
    inotify: Inotify,
    watches: Vec<WatchDescriptor>,
    seen: Arc<Mutex<Vec<Execution>>>,
    is_over: Arc<AtomicBool>,
}

impl Watcher {
    fn begin(originals: &[&Path], folder: &Path) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let mut copies = Vec::new();
        let mut watches = Vec::new();
        for original in originals {
            let copy = folder.join(original.file_name().context("an executable has a name")?);
            duplicate(original, &copy).with_context(|| format!("copying {}", original.display()))?;
            // An end in between keeps the kernel from taking two starts for one event.
            let told = AddWatchFlags::IN_OPEN | AddWatchFlags::IN_CLOSE_NOWRITE;
            watches.push(inotify.add_watch(&copy, told)?);
            copies.push(copy);
        }
        Ok((Self { inotify, watches, seen: Arc::default(), is_over: Arc::default() }, copies))
    }

    fn run(self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let mut sources = [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)];
            // A timeout or a signal only means another look.
            let _ = poll(&mut sources, PollTimeout::from(CHECK_EVERY));
            self.look();
        }
    }

    fn look(&self) {
        let at = clock::now();
        // Nothing to read, or a signal: the next look tells.
        let Ok(events) = self.inotify.read_events() else { return };
        let programs = events
            .iter()
            .filter(|event| event.mask.contains(AddWatchFlags::IN_OPEN))
            .filter_map(|event| self.watches.iter().position(|watch| *watch == event.wd));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extend(programs.map(|program| Execution { program, at }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (executions, copies) = Executions::watch(&[Path::new("/bin/true")], folder.path()).unwrap();
        let before = clock::now();
        assert!(Command::new(&copies[0]).status().unwrap().success());
        let seen = executions.take_with(0).unwrap();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].at > before, "{seen:?}");
    }

    #[test]
    fn two_starts_that_are_read_late_are_two() {
        let folder = tempfile::tempdir().unwrap();
        let (watcher, copies) = Watcher::begin(&[Path::new("/bin/true")], folder.path()).unwrap();
        for _ in 0..2 {
            assert!(Command::new(&copies[0]).status().unwrap().success());
        }
        watcher.look();
        assert_eq!(watcher.seen.lock().unwrap().len(), 2);
    }
}
