//! How is a `tar` written that is the same for the same files? Everything belongs to root, nothing has a
//! time.

use std::collections::BTreeSet;

use anyhow::Context;
use tar::{Builder, EntryType, Header};

/// Debian's and Go's name of the architecture that one of Rust's names begins with.
pub(crate) fn architecture(triple: &str) -> &str {
    match triple.split('-').next().unwrap_or(triple) {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A `tar` of root's files, with the folders that they are in.
pub(crate) struct Archive {
    tar: Builder<Vec<u8>>,
    folders: BTreeSet<String>,
}

impl Archive {
    pub(crate) fn new() -> Self {
        Self { tar: Builder::new(Vec::new()), folders: BTreeSet::new() }
    }

    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder)?;
        }
        let mut head = head(EntryType::Regular, mode);
        head.set_size(u64::try_from(bytes.len()).context("a file of the package is too large")?);
        self.tar.append_data(&mut head, format!("./{path}"), bytes)?;
        Ok(())
    }

    /// Adds a second name of a file that was added before.
    pub(crate) fn hard_link(&mut self, path: &str, to: &str) -> anyhow::Result<()> {
        let mut head = head(EntryType::Link, 0o755);
        self.tar.append_link(&mut head, format!("./{path}"), format!("./{to}"))?;
        Ok(())
    }

    /// Adds a folder, after the folders around it, unless it was added before.
    pub(crate) fn folder(&mut self, path: &str) -> anyhow::Result<()> {
        if !self.folders.insert(path.to_owned()) {
            return Ok(());
        }
        if let Some((outer, _)) = path.rsplit_once('/') {
            self.folder(outer)?;
        }
        let mut head = head(EntryType::Directory, 0o755);
        self.tar.append_data(&mut head, format!("./{path}/"), std::io::empty())?;
        Ok(())
    }

    pub(crate) fn finish(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.tar.into_inner()?)
    }
}

fn head(kind: EntryType, mode: u32) -> Header {
    let mut head = Header::new_gnu();
    head.set_entry_type(kind);
    head.set_mode(mode);
    head.set_size(0);
    head.set_mtime(0);
    for set in [Header::set_username, Header::set_groupname] {
        set(&mut head, "root").expect("the name is short");
    }
    head
}

#[cfg(test)]
mod tests {
    use super::architecture;

    #[test]
    fn the_architecture_follows_the_target() {
        assert_eq!(architecture("x86_64-unknown-linux-musl"), "amd64");
        assert_eq!(architecture("aarch64-unknown-linux-musl"), "arm64");
        assert_eq!(architecture("riscv64"), "riscv64");
    }
}
