//! The file in which `ebb up` keeps its API's token: one for each address, in the state directory, so that it
//! is the same after a restart.
//!
//! A reader of the file may do what the user of `ebb up` may. So it lies in a folder that this user alone can
//! write to, and is looked at and written through that open folder: no name on the way can be made to mean
//! another place. It is never written in place. A reader sees the former token or the new one, and what lies
//! there already, such as another user's link, is replaced and not followed.

use std::fs::{DirBuilder, File, Permissions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use tracing::{info, warn};

use super::{state_folder, take_over};
use crate::api_token::{ApiToken, read_text};
use crate::cli::TokenGroup;

/// Of a folder that is made here.
const FOLDER_MODE: u32 = 0o700;
/// What a group that may read the file has to do with the folder. It cannot see what else is in there.
const PASSED_BY_OTHERS: u32 = 0o011;
/// The mode of a file that its user alone reads.
const MODE: u32 = 0o600;
const MODE_WITH_GROUP: u32 = 0o640;
/// The rights of others that are taken away from the folder.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// How long the file is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenLife {
    /// The next `ebb up` at this address has the same token.
    OverRestarts,
    /// The kernel chose the port, so no later `ebb up` has the same address.
    OneRun,
}

/// The file, by the folder that it lies in.
#[derive(Debug)]
pub(super) struct TokenFile {
    folder: File,
    name: String,
    path: PathBuf,
    group: Option<TokenGroup>,
    life: TokenLife,
}

impl TokenFile {
    /// The one for the API at this address, in the first folder that will do.
    pub(super) fn of(
        api: SocketAddr,
        group: Option<TokenGroup>,
        life: TokenLife,
        named: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let name = format!("api-{}-{}.token", api.ip(), api.port());
        let state = state_folder::named_or_found(named);
        let error = match state.map(|folder| Self::in_folder(&folder, &name, group.clone(), life)) {
            Some(Ok(file)) => return Ok(file),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let folder = take_over::private_folder().context("no folder will do")?;
        if let Some(error) = error {
            let error = format!("{error:#}");
            warn!(error, folder = %folder.display(), "the API's token is kept elsewhere, and is another one once that is cleared");
        }
        Self::in_folder(&folder, &name, group, life)
    }

    fn in_folder(
        path: &Path,
        name: &str,
        group: Option<TokenGroup>,
        life: TokenLife,
    ) -> anyhow::Result<Self> {
        let described = || path.display().to_string();
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path).with_context(described)?;
        let folder = File::open(path).with_context(described)?;
        let found = folder.metadata().with_context(described)?;
        ensure!(
            found.is_dir() && found.uid() == geteuid().as_raw(),
            "{} is not a folder of this user's",
            path.display()
        );
        let mode = found.mode() & 0o7777;
        // Where the umask lets a user's own group write, a folder of an older ebb is open to it.
        let wanted = mode & !WRITABLE_BY_OTHERS | group.as_ref().map_or(0, |_| PASSED_BY_OTHERS);
        if wanted != mode {
            folder.set_permissions(Permissions::from_mode(wanted)).with_context(described)?;
        }
        Ok(Self { folder, name: name.to_owned(), path: path.join(name), group, life })
    }

    /// The path under which people and commands find the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The token that this `ebb up` has: the one that it was handed, else the one in the file, else another
    /// one. Afterwards the file holds it.
    pub(super) fn establish(&self, handed: Option<ApiToken>) -> anyhow::Result<ApiToken> {
        let stored = self.stored();
        if let Err(why) = &stored {
            warn!(file = %self.path.display(), why, "the API has another token from now on");
        }
        let known = stored.ok().flatten();
        let token = handed.or(known).unwrap_or_else(ApiToken::random);
        self.write(token)?;
        info!(file = %self.path.display(), "readers of this file may give orders to the API and read logs");
        Ok(token)
    }

    /// The token in the file, if no other user can know it; else why it cannot be used.
    fn stored(&self) -> Result<Option<ApiToken>, &'static str> {
        // Opening a pipe must not wait for a writer.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.folder, self.name.as_str(), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP) => return Err("it was a link"),
            Err(_) => return Err("it could not be read"),
        };
        let Ok(found) = file.metadata() else { return Err("it could not be read") };
        if !found.is_file() || found.uid() != geteuid().as_raw() || found.nlink() != 1 {
            return Err("it was not a file of this user's alone");
        }
        let others_may = found.mode() & 0o077;
        let is_for_group = others_may == MODE_WITH_GROUP & 0o077
            && self.group.as_ref().is_some_and(|group| group.number == found.gid());
        if others_may != 0 && !is_for_group {
            return Err("others could read it");
        }
        let text = read_text(file).map_err(|_| "it could not be read")?;
        ApiToken::read(&text).map(Some).ok_or("it held no token")
    }

    /// Writes the token to the file, for the user and the group that may read it.
    pub(super) fn write(&self, token: ApiToken) -> anyhow::Result<()> {
        let new = format!(".{}.{}", self.name, std::process::id());
        let written = self
            .write_new(&new, token)
            .and_then(|()| Ok(renameat(&self.folder, new.as_str(), &self.folder, self.name.as_str())?));
        if written.is_err() {
            let _ = unlinkat(&self.folder, new.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        written.with_context(|| format!("writing {}", self.path.display()))
    }

    fn write_new(&self, name: &str, token: ApiToken) -> anyhow::Result<()> {
        // A former process of the same number may have left it.
        let _ = unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file: OwnedFd = openat(&self.folder, name, flags, Mode::from_bits_truncate(MODE))?;
        let mut file = File::from(file);
        let mode = match &self.group {
            Some(group) => {
                fchown(&file, None, Some(group.number)).with_context(|| {
                    format!("giving it to the group {}, in which this user has to be", group.name)
                })?;
                MODE_WITH_GROUP
            }
            None => MODE,
        };
        // Whatever the umask takes away.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(format!("{}\n", token.expose()).as_bytes())?;
        // Without this a machine that loses its power could come back with an empty file.
        file.sync_all()?;
        Ok(())
    }

    /// To be called at the end of `ebb up`, when no other one has taken over.
    pub(super) fn leave(&self) {
        if self.life == TokenLife::OneRun {
            let _ = unlinkat(&self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

#[cfg(test)]
mod tests;
