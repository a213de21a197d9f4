//! Where do manifests come from? Files, directories of files, and standard input, as a user named them.
//!
//! A directory means the manifests that lie in it at the moment it is looked at; standard input is read once,
//! when ebb starts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::images::ImageSettings;

/// How standard input is named.
const STANDARD_INPUT: &str = "-";
/// What a manifest in a directory is called.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// Far more than the manifests of one machine need: a file that was named by mistake is refused before it is
/// read.
const LARGEST_FILE: u64 = 4 << 20;

/// Where manifests come from, and how they are understood.
#[derive(Clone, Debug, Default)]
pub struct ManifestSource {
    named: Vec<PathBuf>,
    /// One of those that are named, which may be empty.
    optional: Option<PathBuf>,
    standard_input: Option<String>,
    pub(crate) domain: String,
    pub(crate) foreign: ForeignKinds,
    /// Whether every Service is in shadow that does not say otherwise.
    pub(crate) is_in_shadow: bool,
    /// Annotations on the template of every Service, in place of those of the same name in the files.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Whether and how container images run.
    pub(crate) images: ImageSettings,
}

/// How documents are treated that mean nothing on one machine, such as a `Deployment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignKinds {
    /// Such a document is a problem, and its file is refused.
    #[default]
    Refused,
    /// They are skipped with a warning.
    Skipped,
}

impl ManifestSource {
    /// Files, directories, or `-`, which is read now. `domain` is what follows `NAME.NAMESPACE.` in the
    /// hosts.
    pub fn new(named: Vec<PathBuf>, domain: &str, foreign: ForeignKinds) -> io::Result<Self> {
        let mut standard_input = None;
        if named.iter().any(|path| is_standard_input(path)) {
            let mut text = String::new();
            io::stdin().lock().take(LARGEST_FILE).read_to_string(&mut text)?;
            standard_input = Some(text);
        }
        Ok(Self { named, standard_input, domain: domain.to_owned(), foreign, ..Self::default() })
    }

    /// One manifest, which stands in no file.
    pub fn of_text(text: String, domain: &str) -> Self {
        let named = vec![PathBuf::from(STANDARD_INPUT)];
        Self { named, standard_input: Some(text), domain: domain.to_owned(), ..Self::default() }
    }

    /// The same with the manifests of a directory, which may hold none.
    #[must_use]
    pub fn with_optional_directory(mut self, directory: PathBuf) -> Self {
        self.named.push(directory.clone());
        Self { optional: Some(directory), ..self }
    }

    /// The same, but Services are decided about and not scaled, unless one says that it is not in shadow.
    #[must_use]
    pub fn in_shadow(self) -> Self {
        Self { is_in_shadow: true, ..self }
    }

    /// The same, but every Service has these annotations on its template, in place of those of the same name
    /// in its file. All are checked together, as if they stood there.
    #[must_use]
    pub fn with_annotations(self, annotations: BTreeMap<String, String>) -> Self {
        Self { annotations, ..self }
    }

    /// The same, but a container may be an image. Without this, images are refused as where no engine is
    /// found.
    #[must_use]
    pub fn with_images(self, images: ImageSettings) -> Self {
        Self { images, ..self }
    }

    /// The files that there are now, each once, in the order named; with those that cannot be looked for, and
    /// why.
    pub(crate) fn files(&self) -> (Vec<PathBuf>, Vec<(PathBuf, io::Error)>) {
        let (mut files, mut failures) = (Vec::new(), Vec::new());
        for named in &self.named {
            if named.is_dir() {
                match manifests_in(named) {
                    Ok(found) => files.extend(found),
                    Err(error) => failures.push((named.clone(), error)),
                }
            } else {
                files.push(named.clone());
            }
        }
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.clone()));
        (files, failures)
    }

    /// Directories that were named and hold no manifest.
    pub(crate) fn bare_directories(&self) -> Vec<PathBuf> {
        let is_bare = |named: &&PathBuf| {
            named.is_dir() && manifests_in(named).is_ok_and(|manifests| manifests.is_empty())
        };
        let is_expected = |named: &&PathBuf| self.optional.as_ref() != Some(*named);
        self.named.iter().filter(is_expected).filter(is_bare).cloned().collect()
    }

    /// The files and directories as the user named them.
    pub(crate) fn named(&self) -> &[PathBuf] {
        &self.named
    }

    /// The text of a file, or what standard input said.
    pub(crate) fn read(&self, file: &Path) -> io::Result<String> {
        match &self.standard_input {
            Some(text) if is_standard_input(file) => Ok(text.clone()),
            Some(_) | None => text_of(read_regular(file)?),
        }
    }
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
}

/// The manifests in a directory, in the order of their names.
pub fn manifests_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_manifest =
            path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_manifest && !is_hidden && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What is in a file that can be read again and again, as an edit needs it: a pipe would be empty the second
/// time.
pub(super) fn read_regular(file: &Path) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > LARGEST_FILE {
        return Err(io::Error::other(format!("it has more than {LARGEST_FILE} bytes")));
    }
    std::fs::read(file)
}

/// The text in a file. One in another encoding than UTF-8 is refused with what to do.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    /// How files in UTF-16 begin that say so.
    const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
    let is_utf_16 = UTF_16_MARKS.iter().any(|mark| bytes.starts_with(mark));
    String::from_utf8(bytes).map_err(|_| {
        let found = if is_utf_16 { "it is in UTF-16" } else { "it is not in UTF-8" };
        io::Error::new(io::ErrorKind::InvalidData, format!("{found}; save it as UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_another_encoding_says_what_to_do() {
        assert_eq!(text_of(b"kind: Service".to_vec()).expect("UTF-8"), "kind: Service");
        let refusal = |bytes: &[u8]| text_of(bytes.to_vec()).expect_err("no UTF-8").to_string();
        assert_eq!(refusal(b"\xff\xfek\x00\xff"), "it is in UTF-16; save it as UTF-8");
        assert_eq!(refusal(b"caf\xe9"), "it is not in UTF-8; save it as UTF-8");
    }
}
