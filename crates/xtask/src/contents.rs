//! What does the package hold? The executable, and what it says of itself: manual pages, completions and
//! units come from its own commands, so they never tell of another version.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

/// One file of the package.
pub(crate) struct PackagedFile {
    /// The path of the file, below the root of the machine.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;

/// All files of the package, in a fixed order.
pub(crate) fn of_package(root: &Path, ebb: &Path) -> anyhow::Result<Vec<PackagedFile>> {
    let mut files =
        vec![PackagedFile { path: "usr/bin/ebb".to_owned(), mode: EXECUTABLE, bytes: read(ebb)? }];
    let mut plain = |path: String, bytes| files.push(PackagedFile { path, mode: PLAIN, bytes });
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let (pages, units) = (folder.path().join("man"), folder.path().join("units"));
    output_of(ebb, &["man", "--directory", path(&pages)?])?;
    for page in files_in(&pages)? {
        plain(format!("usr/share/man/man1/{}.gz", name(&page)), compressed(&read(&page)?)?);
    }
    output_of(ebb, &["install", "--system", "--for-package", "--unit-directory", path(&units)?])?;
    for unit in files_in(&units)? {
        plain(format!("usr/lib/systemd/system/{}", name(&unit)), read(&unit)?);
    }
    for (shell, place) in [
        ("bash", "usr/share/bash-completion/completions/ebb"),
        ("fish", "usr/share/fish/vendor_completions.d/ebb.fish"),
        ("zsh", "usr/share/zsh/vendor-completions/_ebb"),
    ] {
        plain(place.to_owned(), output_of(ebb, &["completion", shell])?);
    }
    plain("usr/share/doc/ebb/copyright".to_owned(), read(&root.join("LICENSE"))?);
    for sample in files_in(&root.join("config/samples"))? {
        plain(format!("usr/share/doc/ebb/examples/{}", name(&sample)), read(&sample)?);
    }
    // Beside the folder, in which every file is a manifest; there the samples look for it.
    plain("usr/share/doc/ebb/ebb.schema.json".to_owned(), output_of(ebb, &["schema"])?);
    let board = read(&root.join("deploy/components/grafana-board/ebb.json"))?;
    plain("usr/share/doc/ebb/grafana/ebb.json".to_owned(), board);
    Ok(files)
}

/// What a command of the executable that was built prints.
fn output_of(ebb: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(ebb).args(arguments).output().context("starting the ebb that was built")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`ebb {}` failed: {said}", arguments.join(" "));
    Ok(output.stdout)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("reading {}", file.display()))
}

/// The files of a folder, in the order of their names.
fn files_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the temporary folder's name is not UTF-8")
}

/// The bytes as gzip without a time in it: the same sources make the same package.
pub(crate) fn compressed(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
