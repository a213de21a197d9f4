//! The folder in which `ebb run --join` leaves manifests for an `ebb up` of the same user.
//!
//! It stands beside the socket for take-overs and is named after the address of the API, so that both sides
//! find it. It is this user's alone, for who writes there runs commands as the user of `ebb up`.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use anyhow::Context;
use platform_local::ManifestSource;

use super::take_over;

/// The folder of the `ebb up` that has its API there.
fn folder(api: SocketAddr) -> anyhow::Result<PathBuf> {
    Ok(take_over::private_folder()?.join(format!("ebb-{}-{}.joined", api.ip(), api.port())))
}

/// The folder's life in an `ebb up`: it is removed with what is left in it.
#[derive(Debug)]
pub(super) struct JoinedFolder {
    path: PathBuf,
    /// The address of the API that the folder is named after.
    api: SocketAddr,
}

impl JoinedFolder {
    /// Makes the folder for an `ebb up` with its API there; a successor finds the one of its predecessor.
    /// `None` where the API has another port at each start, or where no folder can be made: everything but
    /// `ebb run --join` works without.
    pub(super) fn open(api: SocketAddr, start: JoinedStart) -> Option<Self> {
        // A start that is going to fail for want of the address must not touch the folder of the one that has
        // it. A socket file alone may be of one that was killed.
        let is_taken = || take_over::has_left_a_socket(api) && TcpStream::connect(api).is_ok();
        if api.port() == 0 || (start == JoinedStart::Anew && is_taken()) {
            return None;
        }
        let path = folder(api).ok()?;
        if start == JoinedStart::Anew {
            // Left by one that was killed: its apps are gone, and so are the programs that joined them.
            let _ = std::fs::remove_dir_all(&path);
        }
        std::fs::create_dir_all(&path).ok()?;
        Some(Self { path, api })
    }

    /// The same manifests with those that are left in the folder.
    pub(super) fn added_to(&self, source: ManifestSource) -> ManifestSource {
        source.with_optional_directory(self.path.clone())
    }

    /// Removes the folder, with all that is in it, unless a successor has taken this process's place.
    pub(super) fn leave_to_successor_or_remove(self) {
        if !take_over::has_left_a_socket(self.api) {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Whether an `ebb up` begins anew or takes the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinedStart {
    /// What is found was left by one that was killed.
    Anew,
    /// What is found is of the one that runs.
    Taken,
}

/// A manifest in the folder of a running `ebb up`; dropped, it is gone, and with it the Service.
#[derive(Debug)]
pub(crate) struct JoinedManifest(PathBuf);

impl JoinedManifest {
    /// Leaves a manifest under this name. Fails where no `ebb up` has made the folder, and where a manifest
    /// of that name is there.
    pub(crate) fn leave(api: SocketAddr, name: &str, text: &str) -> anyhow::Result<Self> {
        let folder = folder(api)?;
        let path = folder.join(format!("{name}.yaml"));
        let written = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = match written {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                anyhow::bail!(
                    "no `ebb up` of this user has its API at {api}, so there is none to join; start it, name it with --api, or leave --join out"
                )
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                anyhow::bail!("another `ebb run --join` has the name {name}; choose one with --name")
            }
            written => written.with_context(|| path.display().to_string())?,
        };
        let manifest = Self(path);
        io::Write::write_all(&mut file, text.as_bytes()).with_context(|| manifest.0.display().to_string())?;
        Ok(manifest)
    }

    /// Whether a problem of the running `ebb up` is one of this manifest.
    pub(crate) fn has(&self, problem: &str) -> bool {
        problem.contains(&format!("{}:", self.0.display()))
    }
}

impl Drop for JoinedManifest {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_another_manifest_whose_name_ends_alike_is_not_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let manifest = JoinedManifest(folder.path().join("app.yaml"));
        let problem = |name: &str| format!("{}:3:5: unknown field", folder.path().join(name).display());
        assert!(manifest.has(&problem("app.yaml")));
        assert!(!manifest.has(&problem("my-app.yaml")) && !manifest.has("app.yaml:3:5: unknown field"));
    }
}
