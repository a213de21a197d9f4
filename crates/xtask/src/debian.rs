//! How is a Debian package written? Format 2.0 of deb(5): an `ar` archive of a version, a `tar` of what dpkg is told, and a `tar` of what is unpacked.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tar::{Builder, EntryType, Header};

use crate::contents::{PackagedFile, compressed};

/// Where the units look for manifests: there, and empty.
const MANIFESTS: &str = "etc/ebb";

/// What dpkg runs. Nothing is started by installing it: there is nothing to run yet.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "postinst",
        "if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi\n",
    ),
    (
        "prerm",
        "if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then systemctl stop ebb.socket ebb.service >/dev/null || true; fi\n",
    ),
    (
        "postrm",
        "if [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || true; fi\n",
    ),
];

/// Writes `ebb_VERSION_ARCHITECTURE.deb` to `folder`.
pub(crate) fn package(files: &[PackagedFile], folder: &Path) -> anyhow::Result<PathBuf> {
    let (version, architecture) = (env!("CARGO_PKG_VERSION"), architecture());
    let mut control = Archive::new();
    control.file("control", 0o644, said_of(files, version, architecture).as_bytes())?;
    for (name, script) in SCRIPTS {
        control.file(name, 0o755, format!("#!/bin/sh\nset -e\n{script}").as_bytes())?;
    }
    let mut data = Archive::new();
    data.folder(MANIFESTS)?;
    for file in files {
        data.file(&file.path, file.mode, &file.bytes)?;
    }
    let mut package = b"!<arch>\n".to_vec();
    add(&mut package, "debian-binary", b"2.0\n");
    add(&mut package, "control.tar.gz", &control.finish()?);
    add(&mut package, "data.tar.gz", &data.finish()?);
    let file = folder.join(format!("ebb_{version}_{architecture}.deb"));
    std::fs::write(&file, package).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// Debian's name of this machine's.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn said_of(files: &[PackagedFile], version: &str, architecture: &str) -> String {
    let kilobytes: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    format!(
        "Package: ebb\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: ebb's maintainers <ebb@localhost>\nInstalled-Size: {kilobytes}\nSection: \
         net\nPriority: optional\nHomepage: {}\nDescription: scales web services with their traffic, down to zero and back\n ebb runs Services described by Knative's \
         manifests as processes of this machine.\n It holds requests while pods start, and starts and ends pods with the load.\n",
        env!("CARGO_PKG_REPOSITORY")
    )
}

/// A member of an `ar` archive: a head of 60 characters, and an even number of bytes.
fn add(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut head = String::new();
    // A string takes whatever is written to it. Time, user and group are 0, so that the same sources make the same package.
    let _ = writeln!(head, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, 100_644, bytes.len());
    archive.extend(head.as_bytes());
    archive.extend(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}

/// A `tar` of root's files, with the folders that they are in.
struct Archive {
    tar: Builder<Vec<u8>>,
    folders: BTreeSet<String>,
}

impl Archive {
    fn new() -> Self {
        Self { tar: Builder::new(Vec::new()), folders: BTreeSet::new() }
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder)?;
        }
        let mut head = head(EntryType::Regular, mode);
        head.set_size(u64::try_from(bytes.len()).context("a file of the package is too large")?);
        self.tar.append_data(&mut head, format!("./{path}"), bytes)?;
        Ok(())
    }

    /// The outer ones first, each once.
    fn folder(&mut self, path: &str) -> anyhow::Result<()> {
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

    fn finish(self) -> anyhow::Result<Vec<u8>> {
        compressed(&self.tar.into_inner()?)
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
