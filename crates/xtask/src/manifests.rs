//! How is the one file made that installs ebb in a cluster? By `kubectl ebb install` itself, so that the file
//! and the command never differ.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::output_file;

/// By this name the executable is the plugin of `kubectl`.
const PLUGIN: &str = "kubectl-ebb";

#[derive(Debug, Args)]
pub(crate) struct ManifestFileOptions {
    /// The image of ebb's programs, as `kubectl ebb install` takes it. Without this, the name and the tag
    /// that the archives of `cargo xtask images` carry.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The file that is written. By default target/packages/ebb.yaml.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Builds `ebb`, and writes what it would install.
pub(crate) fn run(options: &ManifestFileOptions, root: &Path, target: &Path) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--quiet", "--locked", "--package", "ebb", "--bin", "ebb"];
    let status = Command::new(cargo).args(build).current_dir(root).status().context("starting cargo")?;
    ensure!(status.success(), "ebb was not built");
    let mut plugin = Command::new(target.join("debug/ebb"));
    plugin.arg0(PLUGIN).args(["install", "--print"]);
    if let Some(image) = &options.image {
        plugin.args(["--image", image.as_str()]);
    }
    let output = plugin.output().context("starting the ebb that was built")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`kubectl ebb install --print` failed: {said}");
    let file = options.output.clone().unwrap_or_else(|| target.join("packages/ebb.yaml"));
    output_file::write(&file, output.stdout)?;
    println!("{}", file.display());
    Ok(())
}
