//! Where are the records below a folder?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::segment_files::segments_of;

/// The folders with segments: this one, or those in it, in the order of their names. Each autoscaler has a
/// folder of its own.
pub fn record_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !segments_of(folder)?.is_empty() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !segments_of(&path)?.is_empty() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
