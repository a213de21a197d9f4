//! The files of one record: one segment each, by their numbers.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The names of segments end so; other files of the folder are left alone.
const EXTENSION: &str = "ebbrec";

/// A file with a segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The segments of a folder, oldest first. A folder that is not there has none.
pub(crate) fn segments_of(folder: &Path) -> io::Result<Vec<SegmentFile>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(number) = number_of(&entry.path(), EXTENSION) {
            segments.push(SegmentFile { number, path: entry.path(), bytes: entry.metadata()?.len() });
        }
    }
    segments.sort();
    Ok(segments)
}

/// The number that a file with this extension has as its name; `None` for other files.
pub(crate) fn number_of(path: &Path, extension: &str) -> Option<u64> {
    if path.extension() != Some(OsStr::new(extension)) {
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}

/// Where the segment of a number is in the folder of its record.
pub(crate) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.{EXTENSION}"))
}

/// Makes the folder of a record, which only the user of the program may read.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes the next segment behind all that are there. Names of Services and addresses stand in it, so that
/// only the user of the program may read it.
pub(crate) fn create_segment(folder: &Path) -> io::Result<(SegmentFile, File)> {
    create_folder(folder)?;
    let mut number = segments_of(folder)?.last().map_or(1, |last| last.number + 1);
    loop {
        let path = segment_path(folder, number);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((SegmentFile { number, path, bytes: 0 }, file)),
            // The autoscaler before this one was just writing its last.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Removes the oldest segments until those that stay and one of `room` bytes are no more than `bytes_max`.
pub(crate) fn make_room(folder: &Path, room: u64, bytes_max: u64) -> io::Result<()> {
    let segments = segments_of(folder)?;
    let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    for segment in segments {
        if bytes.saturating_add(room) <= bytes_max {
            break;
        }
        fs::remove_file(&segment.path)?;
        bytes -= segment.bytes;
    }
    Ok(())
}
