//! `cargo xtask dist`: what is given to people who build nothing. Static executables, which run on any Linux of their architecture, and a Debian package of `ebb`
//! with its manual pages, completions and units.
//!
//! It needs cargo, the target for musl and a C compiler for that, and no tool of Debian's: a package is an `ar` of two `tar`s.

mod contents;
mod debian;
mod executables;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser};

/// Work on this workspace that cargo itself does not do.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Build static executables of ebb and ebb-queue-proxy, and a Debian package of ebb.
    Dist(DistOptions),
}

#[derive(Debug, Args)]
struct DistOptions {
    /// How it is compiled; `dev` is for trying the package, not for using it.
    #[arg(long, default_value = "release")]
    profile: String,
    /// Where everything is put. By default target/dist.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let Task::Dist(options) = Task::parse();
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let target = executables::target_directory(&root);
    let output = options.output.unwrap_or_else(|| target.join("dist"));
    std::fs::create_dir_all(&output).with_context(|| format!("making {}", output.display()))?;
    let mut made = executables::build(&root, &target, &options.profile, &output)?;
    let ebb = made.first().context("ebb is built first")?;
    let files = contents::of_package(&root, ebb)?;
    made.push(debian::package(&files, &output)?);
    for file in made {
        let bytes = std::fs::metadata(&file).with_context(|| format!("reading {}", file.display()))?.len();
        println!("{} ({}.{} MB)", file.display(), bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    }
    Ok(())
}
