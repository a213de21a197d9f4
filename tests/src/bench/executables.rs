//! The programs under test, built as this benchmark was.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// `ebb`: `$EBB_EXECUTABLE`, else what cargo builds now, in the profile of this benchmark, so that it is
/// never an old one.
pub fn ebb() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("EBB_EXECUTABLE") {
        return Ok(path.into());
    }
    let (folder, target) = (profile_folder()?, target_folder()?);
    let mut command = cargo();
    command.args(["build", "--quiet", "-p", "ebb"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.arg("--target-dir").arg(&target);
    // Cargo puts the profile `bench` into the folder `release`. What is measured then is what is given out.
    let is_optimised = folder.ends_with("release");
    if is_optimised {
        command.args(["--profile", "dist"]);
    }
    super::guard::protect(&mut command)?;
    if !command.status().context("running cargo")?.success() {
        bail!("`ebb` does not build");
    }
    Ok(if is_optimised { target.join("dist/ebb") } else { folder.join("ebb") })
}

/// `ebb` of the version before, `$EBB_FORMER_EXECUTABLE`: where it is named, it takes part in the same
/// rounds.
pub fn former_ebb() -> Option<PathBuf> {
    std::env::var_os("EBB_FORMER_EXECUTABLE").map(PathBuf::from)
}

/// Cargo, as a shell would start it. What the cargo that runs this said of its package would look like a
/// change to the build scripts that ask for it (ring's does), and all that stands on them be compiled again,
/// here and by the next build.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_the_package = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|start| name.starts_with(start))
        });
        if is_of_the_package {
            command.env_remove(name);
        }
    }
    command
}

/// The app behind the proxies, which cargo builds with the benchmarks.
pub fn bench_app() -> anyhow::Result<PathBuf> {
    built("bench-app")
}

/// The benchmark's proxy of hyper, which cargo builds with the benchmarks too.
pub fn hyper_proxy() -> anyhow::Result<PathBuf> {
    built("hyper-proxy")
}

fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = profile_folder()?.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        bail!("{} is missing; run this through `cargo bench`", path.display())
    }
}

/// The suites' app, which cargo builds with the benchmarks too.
pub fn test_app() -> anyhow::Result<PathBuf> {
    built("test-app")
}

/// Cargo's folder for everything that it makes, in which this program lies.
pub fn target_folder() -> anyhow::Result<PathBuf> {
    profile_folder()?.parent().map(Path::to_owned).context("cargo's folder holds one for each profile")
}

fn profile_folder() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("finding this executable")?;
    this.ancestors().nth(2).map(Path::to_owned).context("benchmarks lie in target/PROFILE/deps")
}
