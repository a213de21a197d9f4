//! How are executables made that need nothing of the machine they run on? Linked with musl, which is linked
//! into them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The folder in which cargo builds (`$CARGO_TARGET_DIR`, else `target`).
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Rust's name of what static executables for this machine are built for.
pub(crate) fn this_machine() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// How executables are built, and where they are put.
pub(crate) struct Build<'p> {
    /// The folder of the workspace.
    pub(crate) root: &'p Path,
    /// The folder in which cargo builds.
    pub(crate) target: &'p Path,
    /// The machine to build for, by Rust's name (`x86_64-unknown-linux-musl`).
    pub(crate) triple: &'p str,
    /// The profile of cargo that the executables are built with.
    pub(crate) profile: &'p str,
    /// Where the executables are put.
    pub(crate) output: &'p Path,
}

impl Build<'_> {
    /// Builds these packages without symbols, and copies their executables.
    pub(crate) fn run(&self, packages: &[&str], executables: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
        let triple = self.triple;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["build", "--locked", "--profile", self.profile, "--target", triple, "--bins"])
            .args(packages.iter().flat_map(|package| ["--package", package]))
            // A third of the size, and nothing that a person at night could use without the sources.
            .env(format!("CARGO_PROFILE_{}_STRIP", self.profile.to_uppercase()), "symbols")
            .current_dir(self.root)
            .status()
            .context("starting cargo")?;
        ensure!(
            status.success(),
            "nothing was built for {triple}; it needs `rustup target add {triple}` and a C compiler for musl (here `apt-get install musl-tools`; docs/operate/install.md for other machines)"
        );
        let folder = if self.profile == "dev" { "debug" } else { self.profile };
        let copied = executables.iter().map(|name| {
            let (from, to) = (self.target.join(triple).join(folder).join(name), self.output.join(name));
            std::fs::copy(&from, &to)
                .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
            Ok(to)
        });
        copied.collect()
    }
}
