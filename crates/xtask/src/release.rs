//! What does a release give out, and how does a person check it? Files whose names tell version and
//! architecture, their checksums, a statement of where they come from, and both images in a registry. Each is
//! a step of its own that runs on any machine; `.github/workflows/release.yml` runs them in this order, the
//! first ones on a machine of each architecture.

mod checksums;
mod files;
mod provenance;
mod push;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Subcommand;

use self::files::ReleaseFileOptions;
use self::provenance::ProvenanceOptions;
use self::push::PushOptions;

/// One step of a release.
#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseStep {
    /// Check that a tag is that of the workspace's version.
    Tag {
        /// The tag, such as v0.1.0.
        #[arg(value_name = "TAG")]
        tag: String,
    },
    /// Copy the files of `cargo xtask dist` and `cargo xtask images`, under names with version and
    /// architecture.
    Files(ReleaseFileOptions),
    /// Write SHA256SUMS of all files in a folder.
    Sums {
        /// The folder with the files of the release.
        #[arg(value_name = "DIRECTORY")]
        folder: PathBuf,
    },
    /// Write provenance.json, which says of which commit the files in SHA256SUMS were made, and by what.
    Provenance(ProvenanceOptions),
    /// Push both images, each for amd64 and arm64 below one tag. It needs skopeo and podman.
    Push(PushOptions),
}

/// Carries a step out, and prints what it made.
pub(crate) fn run(step: &ReleaseStep, root: &Path, target: &Path) -> anyhow::Result<()> {
    match step {
        ReleaseStep::Tag { tag } => check_tag(tag),
        ReleaseStep::Files(options) => files::gather(options, &target.join("packages")),
        ReleaseStep::Sums { folder } => checksums::write(folder),
        ReleaseStep::Provenance(options) => provenance::write(options, root),
        ReleaseStep::Push(options) => push::run(options),
    }
}

fn check_tag(tag: &str) -> anyhow::Result<()> {
    let expected = concat!("v", env!("CARGO_PKG_VERSION"));
    ensure!(
        tag == expected,
        "the tag is {tag}, and the version in Cargo.toml asks for {expected}: change one of them"
    );
    println!("{tag}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_of_another_version_is_refused() {
        assert!(check_tag(concat!("v", env!("CARGO_PKG_VERSION"))).is_ok());
        for tag in ["v0.0.0", env!("CARGO_PKG_VERSION"), ""] {
            let error = check_tag(tag).expect_err("it is another tag").to_string();
            assert!(error.contains("Cargo.toml"), "{error}");
        }
    }
}
