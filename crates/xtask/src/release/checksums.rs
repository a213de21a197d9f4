//! How does a person check that a file is the one that was given out? By `sha256sum -c SHA256SUMS`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, ensure};
use ring::digest::{SHA256, digest};

use crate::images::hexadecimal;

/// The name of the file of checksums.
const SUMS: &str = "SHA256SUMS";
/// Files that are written after the checksums, and stand in no list of them.
const WITHOUT_SUM: [&str; 2] = [SUMS, PROVENANCE];
/// The name of the file that says where all others come from.
pub(super) const PROVENANCE: &str = "provenance.json";

/// A file of the release with its checksum.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileSum {
    pub(super) name: String,
    /// SHA-256 as 64 hexadecimal digits.
    pub(super) sum: String,
}

/// Writes the checksums of all files in the folder.
pub(super) fn write(folder: &Path) -> anyhow::Result<()> {
    let mut text = String::new();
    for file in sums(folder)? {
        // A string takes whatever is written to it.
        let _ = writeln!(text, "{}  {}", file.sum, file.name);
    }
    let path = folder.join(SUMS);
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// The checksums that were written for the folder.
pub(super) fn written(folder: &Path) -> anyhow::Result<Vec<FileSum>> {
    let path = folder.join(SUMS);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("reading {}; `cargo xtask release sums {}` writes it", path.display(), folder.display())
    })?;
    let sums = text.lines().map(|line| {
        let (sum, name) =
            line.split_once("  ").with_context(|| format!("{}: `{line}` is no checksum", path.display()))?;
        Ok(FileSum { name: name.to_owned(), sum: sum.to_owned() })
    });
    sums.collect()
}

fn sums(folder: &Path) -> anyhow::Result<Vec<FileSum>> {
    let mut sums = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).context("a name of a file is not UTF-8")?;
        if WITHOUT_SUM.contains(&name) {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let sum = hexadecimal(digest(&SHA256, &bytes).as_ref());
        sums.push(FileSum { name: name.to_owned(), sum });
    }
    ensure!(!sums.is_empty(), "{} holds no file of a release", folder.display());
    sums.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of "abc" is the first example of FIPS 180-2, appendix B.
    #[test]
    fn sums_are_of_every_file_but_of_their_own() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for (name, text) in [("b", "abc"), ("a", ""), (SUMS, "old"), (PROVENANCE, "{}")] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        write(folder.path()).expect("they are written");
        let text = std::fs::read_to_string(folder.path().join(SUMS)).expect("it is there");
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\nba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n";
        assert_eq!(text, expected);
        assert_eq!(written(folder.path()).expect("they are read"), sums(folder.path()).expect("and made"));
    }

    #[test]
    fn an_empty_folder_has_no_sums() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        assert!(write(folder.path()).is_err());
        let error = written(folder.path()).expect_err("nothing was written");
        assert!(format!("{error:#}").contains("cargo xtask release sums"), "{error:#}");
    }
}
