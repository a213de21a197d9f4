//! How is a Debian package written? Format 2.0 of deb(5): an `ar` archive of a version, a `tar` of what dpkg
//! is told, and a `tar` of what is unpacked.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::archive::{Archive, architecture};
use crate::contents::{PackagedFile, compressed};

/// The folder in which the units look for manifests; the package brings it empty.
const MANIFESTS: &str = "etc/ebb";

/// The scripts that dpkg runs. Installing the package starts nothing: there is no manifest to serve yet.
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

/// Writes the package `ebb_VERSION_ARCHITECTURE.deb` to `folder`.
pub(crate) fn package(files: &[PackagedFile], folder: &Path) -> anyhow::Result<PathBuf> {
    let (version, architecture) = (env!("CARGO_PKG_VERSION"), architecture(std::env::consts::ARCH));
    let mut control = Archive::new();
    control.file("control", 0o644, control_file(files, version, architecture).as_bytes())?;
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
    add(&mut package, "control.tar.gz", &compressed(&control.finish()?)?);
    add(&mut package, "data.tar.gz", &compressed(&data.finish()?)?);
    let file = folder.join(format!("ebb_{version}_{architecture}.deb"));
    std::fs::write(&file, package).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn control_file(files: &[PackagedFile], version: &str, architecture: &str) -> String {
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
    // A string takes whatever is written to it. Time, user and group are 0, so that the same sources make the
    // same package.
    let _ = writeln!(head, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, 100_644, bytes.len());
    archive.extend(head.as_bytes());
    archive.extend(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
}
