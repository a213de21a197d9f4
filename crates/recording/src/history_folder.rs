//! The folder in which histories outlive the process: a file for each day, to which each minute is appended.
//!
//! ```text
//! FOLDER/lock              held by the process that writes
//! FOLDER/20784.history     of that day since 1970: magic, then blocks (`block.rs`)
//!          first blocks    everything that was known when the file was begun, a revision in each
//!          later blocks    what has come since, once a minute
//! ```
//!
//! A file of a day is made under another name and renamed, so that it is there whole. A block that was cut
//! off or damaged ends what is read of a file: what stands before it counts. Nothing is appended behind such
//! a block: a process begins with a file of its own, and begins another where it could not cut off what it
//! had begun to write. The file of the day before stays, and is read for revisions of which the present one
//! has nothing that can be read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use scaling::{HistoryRecord, RevisionHistory};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use vocabulary::RevisionName;

use crate::block::{BlockFault, block_of, next_block};
use crate::segment_files::number_of;

/// The first bytes of each file; the digit is the version of this form of a file.
const MAGIC: [u8; 8] = *b"ebbhis1\n";
const EXTENSION: &str = "history";
const LOCK: &str = "lock";
/// The name under which a file of a day is written until it is whole.
const UNFINISHED: &str = "unfinished";
/// The permissions of the folder and of its files: nobody but the user of the program reads the names there.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const DAY_SECONDS: u64 = 86_400;
/// A revision that no process wrote for so long is forgotten.
const FORGOTTEN_AFTER: u64 = 15 * DAY_SECONDS;
/// The file of the present day, and that of the day before.
const FILES_KEPT: usize = 2;
/// A file is written anew when it has grown to so many times what it began with, and by so many bytes.
const GROWTH_TIMES: u64 = 4;
const GROWTH_BYTES: u64 = 16 << 20;

/// The history of a revision, or what has come of it since it was written last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredHistory {
    /// The revision, by which the next process knows it.
    pub revision: RevisionName,
    /// The history; one that was written later goes on from it.
    pub record: HistoryRecord,
}

/// All histories that a folder holds.
#[derive(Debug, Default)]
pub struct PastHistories {
    /// The history of each revision.
    pub histories: BTreeMap<RevisionName, RevisionHistory>,
    /// What could not be read, one line each.
    pub faults: Vec<String>,
}

/// Why a file was not read to its end.
#[derive(Debug, Error)]
enum FileFault {
    #[error("it is no file of histories, or one of another version")]
    Foreign,
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    Block(#[from] BlockFault),
    #[error(transparent)]
    Form(#[from] serde_json::Error),
}

/// Why a block was not appended.
#[derive(Debug)]
enum AppendFault {
    /// Nothing of the block is in the file.
    CutOff(io::Error),
    /// The file may end with a part of the block, which would hide all that comes behind it.
    Uncut(io::Error),
}

/// The folder, which no other process writes to.
#[derive(Debug)]
pub struct HistoryFolder {
    path: PathBuf,
    present: Option<DayFile>,
    /// Lines of what is lost, until a call that succeeds has told them.
    untold: Vec<String>,
    /// Held as long as this value lives.
    _lock: File,
}

/// The file to which minutes are appended.
#[derive(Debug)]
struct DayFile {
    file: File,
    day: u64,
    /// The bytes with which it began.
    first_bytes: u64,
    bytes: u64,
}

impl HistoryFolder {
    /// Opens a folder of this user's, which is made if need be. Fails with `WouldBlock` while another process
    /// writes there.
    pub fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path.join(LOCK))?;
        lock.try_lock()?;
        Ok(Self { path: path.to_owned(), present: None, untold: Vec::new(), _lock: lock })
    }

    /// Reads what stands here. What cannot be read of a file is told, and an older file counts for revisions
    /// of which nothing was read.
    pub fn read(&self) -> io::Result<PastHistories> {
        let mut past = PastHistories::default();
        for (_, path) in self.files()? {
            if past.take_in_file(&path) {
                break;
            }
        }
        Ok(past)
    }

    /// Writes what has come; `second` is the present one, counted since 1970. Of what could not be written
    /// whole nothing remains. The first time, at the beginning of a day, when the file has grown large, and
    /// after a block that could not be cut off, it is written anew with all that stands here, without
    /// revisions that were removed long ago. Returns what of that could not be read and is lost, one line
    /// each, also of a call before that failed.
    pub fn append(&mut self, histories: &[StoredHistory], second: u64) -> io::Result<Vec<String>> {
        let is_due = self.present.as_ref().is_none_or(|file| file.is_to_be_renewed(second));
        if is_due {
            self.renew(second)?;
        }
        if let Some(file) = self.present.as_mut().filter(|_| !histories.is_empty()) {
            match file.append(&block_of(&json(histories)?)) {
                Ok(()) => {}
                Err(AppendFault::CutOff(error)) => return Err(error),
                Err(AppendFault::Uncut(error)) => {
                    self.present = None;
                    return Err(error);
                }
            }
        }
        Ok(std::mem::take(&mut self.untold))
    }

    /// The files by their days, the newest first.
    fn files(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            files.extend(number_of(&path, EXTENSION).map(|day| (day, path)));
        }
        files.sort_unstable();
        files.reverse();
        Ok(files)
    }

    /// Begins the file of this day with all that stands here. What of it could not be read is to be told.
    fn renew(&mut self, second: u64) -> io::Result<()> {
        let day = second / DAY_SECONDS;
        let oldest = second.saturating_sub(FORGOTTEN_AFTER);
        let mut bytes = MAGIC.to_vec();
        let PastHistories { histories, faults } = self.read()?;
        for (revision, history) in histories {
            let record = history.export();
            if record.end() >= oldest {
                bytes.extend(block_of(&json(&[StoredHistory { revision, record }])?));
            }
        }
        let path = self.path.join(format!("{day}.{EXTENSION}"));
        let unfinished = self.path.join(UNFINISHED);
        let written = write_new(&unfinished, &bytes)
            .and_then(|file| std::fs::rename(&unfinished, &path).map(|()| file));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.present = Some(DayFile { file: written?, day, first_bytes: length, bytes: length });
        // The new file has nothing of them, so whatever fails from here on, they are not found again.
        self.untold.extend(faults);
        self.forget_old_files(day)
    }

    /// Keeps the file of this day and the newest other one. A clock that was wrong left files of days to
    /// come, which would be read first.
    fn forget_old_files(&self, day: u64) -> io::Result<()> {
        let (later, others): (Vec<_>, Vec<_>) = self.files()?.into_iter().partition(|(of, _)| *of > day);
        for (_, path) in later.into_iter().chain(others.into_iter().skip(FILES_KEPT)) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }
}

impl DayFile {
    fn is_to_be_renewed(&self, second: u64) -> bool {
        let is_large =
            self.bytes > self.first_bytes.saturating_mul(GROWTH_TIMES).saturating_add(GROWTH_BYTES);
        self.day != second / DAY_SECONDS || is_large
    }

    /// Appends a block, or leaves the file as it was where the disk lets it.
    fn append(&mut self, block: &[u8]) -> Result<(), AppendFault> {
        match self.file.write_all(block).and_then(|()| self.file.sync_data()) {
            Ok(()) => {
                self.bytes += u64::try_from(block.len()).unwrap_or(u64::MAX);
                Ok(())
            }
            // What a full disk cut off would hide all that is appended behind it.
            Err(error) => match self.file.set_len(self.bytes) {
                Ok(()) => Err(AppendFault::CutOff(error)),
                Err(_) => Err(AppendFault::Uncut(error)),
            },
        }
    }
}

impl PastHistories {
    /// Takes in what a file has of revisions of which no newer file had anything. Returns whether the file
    /// was read to its end.
    fn take_in_file(&mut self, path: &Path) -> bool {
        let mut histories = BTreeMap::new();
        let read = read_blocks(path, |parts| {
            for part in parts {
                take_in(part, &mut histories, &mut self.faults);
            }
        });
        for (revision, history) in histories {
            self.histories.entry(revision).or_insert(history);
        }
        match read {
            Ok(()) => return true,
            // A process that was killed leaves such an end, which is nothing to look after.
            Err(FileFault::Block(BlockFault::CutOff)) => {}
            Err(fault) => self.faults.push(format!(
                "{}: {fault}; what stands before that in the file counts, and an older file for other revisions",
                path.display()
            )),
        }
        false
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    // A process that was killed while it wrote may have left it. No other one writes now: the lock is held.
    let _ = std::fs::remove_file(path);
    let mut file = OpenOptions::new().append(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

pub(crate) fn json(histories: &[StoredHistory]) -> io::Result<Vec<u8>> {
    serde_json::to_vec(histories).map_err(io::Error::other)
}

/// Hands out the parts of a file, block by block, as far as its blocks are whole.
fn read_blocks(path: &Path, mut take: impl FnMut(Vec<StoredHistory>)) -> Result<(), FileFault> {
    let mut file = BufReader::new(File::open(path)?);
    let mut first = [0; MAGIC.len()];
    io::Read::read_exact(&mut file, &mut first)?;
    if first != MAGIC {
        return Err(FileFault::Foreign);
    }
    while let Some(block) = next_block(&mut file)? {
        take(serde_json::from_slice(&block)?);
    }
    Ok(())
}

/// Goes on with the history of a revision. What is damaged of one touches no other.
pub(crate) fn take_in(
    part: StoredHistory,
    histories: &mut BTreeMap<RevisionName, RevisionHistory>,
    faults: &mut Vec<String>,
) {
    let StoredHistory { revision, record } = part;
    match RevisionHistory::restore(record) {
        Ok(later) => match histories.get_mut(&revision) {
            Some(history) => history.extend(later),
            None => drop(histories.insert(revision, later)),
        },
        Err(fault) => faults.push(format!("{revision}: {fault}")),
    }
}

#[cfg(test)]
mod tests;
