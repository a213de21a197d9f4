//! Telling when a file changed, whatever the editor does to it.
//!
//! Editors write in place, or write beside and rename, or replace a symbolic link, so the directories are
//! watched, not the files. Some file systems report nothing, so the files' metadata are looked at now and
//! then too. Neither says that a writer is done, so a change counts once the metadata have not changed for a
//! moment. What is gone counts later still: many tools remove a file before they write it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use notify::{RecursiveMode, Watcher};
use runtime::{Clock, relied_on};
use tokio::sync::{Notify, mpsc, watch};
use vocabulary::Timestamp;

use crate::manifest::{FilesReading, Item, LoadedManifest, ManifestSource};

/// How long the files must be left alone before they are read.
const QUIET: Duration = Duration::from_millis(50);
/// How long a file must hold nothing before that is said: many writers empty a file first.
const EMPTY_QUIET: Duration = Duration::from_secs(1);
/// How long something must stand in no file before it counts as removed.
const REMOVED_AFTER: Duration = Duration::from_secs(2);
/// How often metadata are looked at, for file systems that report nothing.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The files to watch, and what reading them needs.
#[derive(Debug)]
pub(crate) struct WatchedFiles {
    /// The files and directories that are watched.
    pub(crate) source: Arc<ManifestSource>,
    pub(crate) clock: Clock,
    /// Notified when the files are to be read now.
    pub(crate) reload: Arc<Notify>,
    /// The manifests that are in force.
    pub(crate) last_good: watch::Receiver<Arc<LoadedManifest>>,
    /// The supervisor gets what the files say after each change.
    pub(crate) readings: mpsc::Sender<FilesReading>,
}

/// Items that are in no file any more, and since when.
type MissingItems = BTreeMap<Item, Timestamp>;

impl WatchedFiles {
    /// Reads the files after each change, until the supervisor is gone.
    pub(crate) async fn run(self) {
        let changed = Arc::new(Notify::new());
        let _watcher = watch_directories(self.source.named(), &changed);
        let mut seen = self.look().await;
        let mut missing = MissingItems::new();
        // What was written between the first reading and now is found by this look.
        let mut is_due = true;
        loop {
            if !is_due {
                let counts_at = missing.values().min().map(|since| *since + REMOVED_AFTER);
                // Cancel-safe: each only waits, and a notice without a waiter is kept.
                tokio::select! {
                    () = changed.notified() => {}
                    () = self.reload.notified() => is_due = true,
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = self.clock.sleep_until(counts_at.unwrap_or_default()), if counts_at.is_some() => is_due = true,
                    () = self.readings.closed() => return,
                }
                is_due = is_due || self.look().await != seen;
            }
            if is_due {
                is_due = false;
                let before = std::mem::replace(&mut seen, self.settled().await);
                let mut reading = self.read(&missing).await;
                if !reading.empty.is_empty() {
                    tokio::time::sleep(EMPTY_QUIET).await;
                    seen = self.look().await;
                    reading = self.read(&missing).await;
                    reading.refuse_empty();
                }
                reading.written = written(&before, &seen);
                self.count_removals(&mut reading, &mut missing);
                if self.readings.send(reading).await.is_err() {
                    return;
                }
            }
        }
    }

    /// An item that stands in no file for long enough counts as removed.
    fn count_removals(&self, reading: &mut FilesReading, missing: &mut MissingItems) {
        let now = self.clock.now();
        let gone = reading.missing(&self.last_good.borrow());
        missing.retain(|item, _| gone.contains(item));
        for item in gone {
            missing.entry(item).or_insert(now);
        }
        let removed = missing.iter().filter(|(_, since)| is_removed(**since, now));
        reading.removed = removed.map(|(item, _)| item.clone()).collect();
        missing.retain(|_, since| !is_removed(*since, now));
    }

    /// The files' metadata once they have not changed for a moment.
    async fn settled(&self) -> FileStamps {
        let mut last = self.look().await;
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.look().await;
            if now == last {
                return now;
            }
            last = now;
        }
    }

    async fn look(&self) -> FileStamps {
        let source = Arc::clone(&self.source);
        let look = move || {
            let (files, _) = source.files();
            files.into_iter().map(|file| (file.clone(), FileStamp::at(&file))).collect()
        };
        relied_on(tokio::task::spawn_blocking(look)).await
    }

    async fn read(&self, missing: &MissingItems) -> FilesReading {
        let source = Arc::clone(&self.source);
        let last_good = self.last_good.borrow().clone();
        let now = self.clock.now();
        let gone = missing.iter().filter(|(_, since)| is_removed(**since, now));
        let gone: BTreeSet<Item> = gone.map(|(item, _)| item.clone()).collect();
        let read = move || FilesReading::read_without(&source, &last_good, &gone);
        // A panic must not look like files in which nothing stands.
        relied_on(tokio::task::spawn_blocking(read)).await
    }
}

/// Whether what has been missing for so long counts as removed.
fn is_removed(since: Timestamp, now: Timestamp) -> bool {
    now.saturating_since(since) >= REMOVED_AFTER
}

type FileStamps = BTreeMap<PathBuf, FileStamp>;

/// The files that are there and were not so before.
fn written(before: &FileStamps, after: &FileStamps) -> BTreeSet<PathBuf> {
    let is_new = |(file, seen): &(&PathBuf, &FileStamp)| {
        **seen != FileStamp::Missing && before.get(*file) != Some(seen)
    };
    after.iter().filter(is_new).map(|(file, _)| file.clone()).collect()
}

/// By which a change of a file is noticed.
#[derive(Debug, PartialEq, Eq)]
enum FileStamp {
    Missing,
    There { length: u64, modified: Option<SystemTime>, inode: u64 },
}

impl FileStamp {
    fn at(file: &Path) -> Self {
        use std::os::unix::fs::MetadataExt;
        match std::fs::metadata(file) {
            Ok(metadata) => Self::There {
                length: metadata.len(),
                modified: metadata.modified().ok(),
                inode: metadata.ino(),
            },
            Err(_) => Self::Missing,
        }
    }
}

/// Without a watcher (the kernel has a limit on them) changes are found by looking, a little later.
fn watch_directories(files: &[PathBuf], changed: &Arc<Notify>) -> Option<impl Watcher + use<>> {
    let changed = Arc::clone(changed);
    // Reading a file is an event too; only what may have changed it counts, or reading would follow reading
    // for ever.
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            changed.notify_one();
        }
    });
    let mut watcher = watcher.inspect_err(no_watcher).ok()?;
    let mut directories: Vec<PathBuf> = files.iter().flat_map(|file| directories_of(file)).collect();
    directories.sort();
    directories.dedup();
    for directory in directories {
        if let Err(error) = watcher.watch(&directory, RecursiveMode::NonRecursive) {
            no_watcher(&error);
        }
    }
    Some(watcher)
}

fn no_watcher(error: &notify::Error) {
    tracing::debug!(%error, "files are looked at every two seconds instead of being watched");
}

/// Where the file is named, and where it is if that name is a link; of a directory, itself too.
fn directories_of(file: &Path) -> Vec<PathBuf> {
    let itself = file.is_dir().then(|| file.to_owned());
    let named =
        file.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
    let real = file.canonicalize().ok().and_then(|real| real.parent().map(Path::to_owned));
    named.map(Path::to_owned).into_iter().chain(real).chain(itself).collect()
}
