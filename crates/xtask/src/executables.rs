//! How are executables made that need nothing of the machine they run on? Linked with musl, which is linked into them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// What is given out, `ebb` first.
const EXECUTABLES: [&str; 2] = ["ebb", "ebb-queue-proxy"];

/// Where cargo builds.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Builds them, without symbols, and copies them to `output`.
pub(crate) fn build(
    root: &Path,
    target: &Path,
    profile: &str,
    output: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "--profile", profile, "--target", &triple])
        .args(["--package", "ebb", "--package", "queue-proxy", "--bins"])
        // A third of the size, and nothing that a person at night could use without the sources.
        .env(format!("CARGO_PROFILE_{}_STRIP", profile.to_uppercase()), "symbols")
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    ensure!(
        status.success(),
        "nothing was built for {triple}; it needs `rustup target add {triple}` and a C compiler for musl (`apt-get install musl-tools`)"
    );
    let folder = if profile == "dev" { "debug" } else { profile };
    let copied = EXECUTABLES.map(|name| {
        let (from, to) = (target.join(&triple).join(folder).join(name), output.join(name));
        std::fs::copy(&from, &to)
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        Ok(to)
    });
    copied.into_iter().collect()
}
