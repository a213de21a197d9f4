//! Where is the running one asked? At a socket of the same user's, named after the address of its API, of
//! which a machine has one each.

use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// Where a service manager, or the login, made a folder for this user's sockets.
const FOLDERS: [&str; 2] = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];
/// The user alone may enter the folder.
const FOLDER_MODE: u32 = 0o700;
const SOCKET_MODE: u32 = 0o600;

/// The socket of this process; dropped, it is gone.
#[derive(Debug)]
pub(in crate::up) struct TakeOverSocket(PathBuf);

impl TakeOverSocket {
    /// Leaves the file in its place, for a successor that listens under the same name.
    pub(in crate::up) fn leave(self) {
        // The successor may listen under this name already, and is found by the file alone.
        std::mem::forget(self);
    }
}

impl Drop for TakeOverSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens there, in place of a former `ebb up` that has ended or has handed everything over.
pub(super) fn listen(api: SocketAddr) -> anyhow::Result<(UnixListener, TakeOverSocket)> {
    let folder = private_folder()?;
    let path = path(&folder, api);
    // Made under another name first, so that it is there whole or not at all.
    let begun = path.with_extension(std::process::id().to_string());
    // A former process of the same number may have left it, and a name that exists cannot be bound.
    let _ = std::fs::remove_file(&begun);
    let listener = UnixListener::bind(&begun).with_context(|| begun.display().to_string())?;
    std::fs::set_permissions(&begun, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    std::fs::rename(&begun, &path).with_context(|| path.display().to_string())?;
    Ok((listener, TakeOverSocket(path)))
}

/// A folder that only this user can write to, made if need be.
pub(in crate::up) fn private_folder() -> anyhow::Result<PathBuf> {
    let folder = folder();
    make(&folder)?;
    Ok(folder)
}

/// The file in which an `ebb up` with its API there says why it failed. `None` where it has no folder of its
/// own.
pub(in crate::up) fn failure_file(api: SocketAddr) -> Option<PathBuf> {
    let folder = private_folder().ok()?;
    Some(path(&folder, api).with_extension("failed"))
}

/// A connection to the `ebb up` that has its API there; `None` if there is none.
pub(super) fn connect(api: SocketAddr) -> anyhow::Result<Option<UnixStream>> {
    let path = path(&folder(), api);
    match UnixStream::connect(&path) {
        Ok(stream) => Ok(Some(stream)),
        // A killed `ebb up` leaves its file, at which no process listens.
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Whether an `ebb up` of this user has its API there, or had it when it was killed. It is not asked: it
/// would take the question for a successor's.
pub(in crate::up) fn has_left_a_socket(api: SocketAddr) -> bool {
    path(&folder(), api).exists()
}

/// Fails unless the other end is this user's.
pub(super) fn check_peer(stream: &UnixStream) -> anyhow::Result<()> {
    let peer = socket_peercred(stream)?;
    let (theirs, ours) = (peer.uid, geteuid());
    ensure!(
        theirs == ours,
        "it belongs to user {theirs}, and this is user {ours}",
        theirs = theirs.as_raw(),
        ours = ours.as_raw()
    );
    Ok(())
}

fn folder() -> PathBuf {
    // A service may have several, separated by colons.
    let given = FOLDERS.iter().find_map(|name| std::env::var(name).ok().filter(|folder| !folder.is_empty()));
    let given = given.and_then(|folders| folders.split(':').next().map(PathBuf::from));
    given.unwrap_or_else(|| std::env::temp_dir().join(format!("ebb-{}", geteuid().as_raw())))
}

/// Makes the folder if need be. In a folder that all users may write to, another user may have made one of
/// that name.
fn make(folder: &Path) -> anyhow::Result<()> {
    match std::fs::DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| folder.display().to_string());
        }
        Ok(()) | Err(_) => {}
    }
    // A link is not followed: it may be another user's, who can change where it leads after this look.
    let found = std::fs::symlink_metadata(folder).with_context(|| folder.display().to_string())?;
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw();
    ensure!(is_ours, "{} is not a folder of this user's", folder.display());
    ensure!(found.mode() & 0o022 == 0, "{} can be written to by others; chmod 700 it", folder.display());
    Ok(())
}

fn path(folder: &Path, api: SocketAddr) -> PathBuf {
    folder.join(format!("ebb-{}-{}.sock", api.ip(), api.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_somebody_elses_making_is_refused() {
        let outer = tempfile::tempdir().expect("a folder");
        let ours = outer.path().join("ours");
        make(&ours).expect("it is made");
        make(&ours).expect("it is there");
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
        assert!(make(&ours).is_err_and(|error| error.to_string().contains("by others")));
        let link = outer.path().join("link");
        std::os::unix::fs::symlink(outer.path(), &link).expect("a link");
        assert!(make(&link).is_err_and(|error| error.to_string().contains("not a folder of this user's")));
    }
}
