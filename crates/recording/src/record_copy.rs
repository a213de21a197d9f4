//! How is a record copied to another machine, also while it is written?
//!
//! Segment by segment, and each in parts: neither side needs room for a whole segment. A segment only grows,
//! and the oldest ones go, so a copy is a record as good as one whose program was killed when the copy was
//! made.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::segment_files::{SegmentFile, create_folder, segment_path, segments_of};

/// A segment of a record, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSegment {
    /// Its number; later segments have greater ones.
    pub number: u64,
    /// How many bytes are in it so far.
    pub bytes: u64,
}

/// The segments of a record, oldest first. A folder that is not there has none.
pub fn stored_segments(folder: &Path) -> io::Result<Vec<StoredSegment>> {
    let segments = segments_of(folder)?;
    let stored = |SegmentFile { number, bytes, .. }: SegmentFile| StoredSegment { number, bytes };
    Ok(segments.into_iter().map(stored).collect())
}

/// At most `bytes_max` bytes of a segment, from the byte `from` on; fewer at its present end, and none behind
/// it. `None` if there is no such segment, as when it was removed because the record was full.
pub fn segment_part(folder: &Path, number: u64, from: u64, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(segment_path(folder, number)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if i64::try_from(from).is_err() {
        // No file is so long, and the system refuses to look there.
        return Ok(Some(Vec::new()));
    }
    file.seek(SeekFrom::Start(from))?;
    let mut part = Vec::new();
    file.take(bytes_max).read_to_end(&mut part)?;
    Ok(Some(part))
}

/// A record that is being copied into a folder of this machine.
#[derive(Debug)]
pub struct RecordCopy {
    folder: PathBuf,
}

impl RecordCopy {
    /// Makes the folder. It may be there, but hold no record.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`] if it holds a record: segments of two records would be mixed up.
    pub fn begin(folder: PathBuf) -> io::Result<Self> {
        create_folder(&folder)?;
        if !segments_of(&folder)?.is_empty() {
            let problem = "it holds a record already; name another folder, or remove this one";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        Ok(Self { folder })
    }

    /// Adds the next bytes of a segment.
    pub fn append(&self, number: u64, part: &[u8]) -> io::Result<()> {
        let path = segment_path(&self.folder, number);
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)?.write_all(part)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_copy_in_parts_is_the_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        assert_eq!(stored_segments(&from).expect("it is not there"), []);
        create_folder(&from).expect("the disk has room");
        let contents = [(3, vec![7; 10]), (4, (0..=255).collect::<Vec<u8>>())];
        for (number, bytes) in &contents {
            fs::write(segment_path(&from, *number), bytes).expect("the disk has room");
        }
        fs::write(from.join("notes.txt"), "no segment").expect("the disk has room");
        let copy = RecordCopy::begin(to.clone()).expect("it is empty");
        for StoredSegment { number, bytes } in stored_segments(&from).expect("it is there") {
            let mut copied = 0;
            while copied < bytes {
                let part = segment_part(&from, number, copied, 100).expect("it is there").expect("a segment");
                assert!((1..=100).contains(&part.len()));
                copy.append(number, &part).expect("the disk has room");
                copied += u64::try_from(part.len()).expect("at most 100");
            }
        }
        for (number, bytes) in contents {
            assert_eq!(fs::read(segment_path(&to, number)).expect("it was copied"), bytes);
        }
        assert_eq!(stored_segments(&to).expect("it is there"), stored_segments(&from).expect("it is there"));
        // Behind the end of a segment there is nothing yet; a segment that was removed is none.
        assert_eq!(segment_part(&from, 3, 10, 100).expect("it is there"), Some(Vec::new()));
        for far in [1 << 40, u64::MAX] {
            assert_eq!(segment_part(&from, 3, far, 100).expect("it is there"), Some(Vec::new()), "{far}");
        }
        assert_eq!(segment_part(&from, 2, 0, 100).expect("the folder is there"), None);
    }

    #[test]
    fn a_record_is_not_mixed_up_with_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = RecordCopy::begin(folder.path().to_owned()).expect("it is empty");
        first.append(1, b"a segment").expect("the disk has room");
        let error = RecordCopy::begin(folder.path().to_owned()).expect_err("it has a record");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("name another folder"), "{error}");
    }
}
