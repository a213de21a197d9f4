//! Under which names are files given out? Those of both architectures lie in one folder, so each name tells
//! the version and the architecture.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::archive::architecture;

#[derive(Debug, Args)]
pub(crate) struct ReleaseFileOptions {
    /// The folder that `cargo xtask dist` and `cargo xtask images` wrote. By default target/packages.
    #[arg(long, value_name = "DIRECTORY")]
    from: Option<PathBuf>,
    /// The folder that gets the files of the release.
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
}

/// A file as it was built, and as it is given out.
struct ReleaseFile {
    built: String,
    given: String,
}

/// Copies the files that were built on this machine.
pub(super) fn gather(options: &ReleaseFileOptions, packages: &Path) -> anyhow::Result<()> {
    let from = options.from.as_deref().unwrap_or(packages);
    let to = &options.to;
    std::fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for file in release_files(env!("CARGO_PKG_VERSION"), architecture(std::env::consts::ARCH)) {
        let (built, given) = (from.join(&file.built), to.join(&file.given));
        std::fs::copy(&built, &given).with_context(|| {
            format!("copying {}; `cargo xtask dist` and `cargo xtask images` make it", built.display())
        })?;
        println!("{}", given.display());
    }
    Ok(())
}

fn release_files(version: &str, architecture: &str) -> Vec<ReleaseFile> {
    let suffix = format!("{version}-linux-{architecture}");
    let package = format!("ebb_{version}_{architecture}.deb");
    let mut files = vec![ReleaseFile { built: package.clone(), given: package }];
    for name in ["ebb", "ebb-queue-proxy"] {
        files.push(ReleaseFile { built: name.to_owned(), given: format!("{name}-{suffix}") });
        files.push(ReleaseFile {
            built: format!("{name}-image.tar"),
            given: image(name, version, architecture),
        });
    }
    files
}

/// The name by which the archive of an image is given out.
pub(super) fn image(name: &str, version: &str, architecture: &str) -> String {
    format!("{name}-image-{version}-linux-{architecture}.tar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_version_and_architecture() {
        let given: Vec<String> = release_files("1.2.3", "arm64").into_iter().map(|file| file.given).collect();
        let expected = [
            "ebb_1.2.3_arm64.deb",
            "ebb-1.2.3-linux-arm64",
            "ebb-image-1.2.3-linux-arm64.tar",
            "ebb-queue-proxy-1.2.3-linux-arm64",
            "ebb-queue-proxy-image-1.2.3-linux-arm64.tar",
        ];
        assert_eq!(given, expected);
    }

    #[test]
    fn a_file_that_was_not_built_is_named_with_its_command() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let options = ReleaseFileOptions { from: None, to: folder.path().join("dist") };
        let error = gather(&options, folder.path()).expect_err("there is nothing to copy");
        assert!(format!("{error:#}").contains("`cargo xtask dist`"), "{error:#}");
    }
}
