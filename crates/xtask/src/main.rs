//! What is given to people who build nothing. `cargo xtask dist`: static executables, which run on any Linux
//! of their architecture, and a Debian package of `ebb` with its manual pages, completions and units. `cargo
//! xtask images`: what a cluster pulls. `cargo xtask manifests`: what a cluster is told. `cargo xtask
//! release`: these files under names that tell the version, with checksums. `cargo xtask site`: the pages of
//! `docs/`. And, for people who build: `cargo xtask chart`, which makes the Helm chart of the manifests, and
//! `cargo xtask mutants`.
//!
//! It needs cargo, the target for musl and a C compiler for that, and no tool of Debian's or Docker's: a
//! package is an `ar` of two `tar`s, an image a `tar` of a `tar`. `site` and `release push` start further
//! programs, which their help names.

mod archive;
mod chart;
mod contents;
mod debian;
mod executables;
mod images;
mod manifests;
mod mutants;
mod output_file;
mod release;
mod site;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Parser};

use crate::chart::HelmChartOptions;
use crate::executables::Build;
use crate::manifests::ManifestFileOptions;
use crate::mutants::MutantOptions;
use crate::release::ReleaseStep;
use crate::site::SiteOptions;

/// Work on this workspace that cargo itself does not do.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Make the Helm chart in deploy/helm/ebb of the manifests in deploy/base.
    Chart(HelmChartOptions),
    /// Do one step of a release. The workflow of releases runs all of them.
    #[command(subcommand)]
    Release(ReleaseStep),
    /// Make a site of the pages in docs/, by mdBook.
    Site(SiteOptions),
    /// Build static executables of ebb and ebb-queue-proxy, and a Debian package of ebb.
    Dist(Options),
    /// Build the images ebb and ebb-queue-proxy for a cluster, as archives that docker, podman, containerd
    /// and skopeo take.
    Images(ImageOptions),
    /// Write the one file that installs ebb in a cluster: what `kubectl ebb install` applies.
    Manifests(ManifestFileOptions),
    /// Change the control loop in one place after the other, and name the changes that no test notices. It
    /// takes hours, and goes on where it was ended.
    Mutants(MutantOptions),
}

#[derive(Debug, Args)]
struct Options {
    /// How it is compiled; `dev` is for trying the result, not for using it.
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Where everything is put. By default target/packages.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ImageOptions {
    #[command(flatten)]
    options: Options,
    /// Rust's name of what it is built for, such as aarch64-unknown-linux-musl. By default this machine's
    /// architecture. (A package has no such option: what it says of itself comes from running it.)
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    match Task::parse() {
        Task::Chart(options) => chart::run(&options, &root),
        Task::Release(step) => release::run(&step, &root, &executables::target_directory(&root)),
        Task::Site(options) => site::run(&options, &root, &executables::target_directory(&root)),
        Task::Dist(options) => give(&options, None, &root, dist),
        Task::Images(ImageOptions { options, target: triple }) => give(&options, triple, &root, images),
        Task::Manifests(options) => manifests::run(&options, &root, &executables::target_directory(&root)),
        Task::Mutants(options) => mutants::run(&options, &root, &executables::target_directory(&root)),
    }
}

/// Builds what is given to people, and prints the name and the size of each file.
fn give(
    options: &Options,
    triple: Option<String>,
    root: &Path,
    make: fn(&Build<'_>) -> anyhow::Result<Vec<PathBuf>>,
) -> anyhow::Result<()> {
    let triple = triple.unwrap_or_else(executables::this_machine);
    let target = executables::target_directory(root);
    let output = options.output.clone().unwrap_or_else(|| target.join("packages"));
    std::fs::create_dir_all(&output).with_context(|| format!("making {}", output.display()))?;
    let build = Build { root, target: &target, triple: &triple, profile: &options.profile, output: &output };
    for file in make(&build)? {
        let bytes = std::fs::metadata(&file).with_context(|| format!("reading {}", file.display()))?.len();
        println!("{} ({}.{} MB)", file.display(), bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    }
    Ok(())
}

fn dist(build: &Build<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let mut made = build.run(&["ebb", "queue-proxy"], &["ebb", "ebb-queue-proxy"])?;
    let ebb = made.first().context("ebb is built first")?;
    let files = contents::of_package(build.root, ebb)?;
    made.push(debian::package(&files, build.output)?);
    Ok(made)
}

fn images(build: &Build<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let executables = images::IMAGES.iter().flat_map(|image| image.executables.iter().copied());
    build.run(&["control-plane", "queue-proxy"], &executables.collect::<Vec<_>>())?;
    images::IMAGES.iter().map(|image| images::write(image, build)).collect()
}
