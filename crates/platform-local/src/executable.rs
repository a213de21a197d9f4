//! Which file is this program, and can a file be run? `ebb` starts itself again for every pod, maybe long
//! after another build has taken its place; a pod of another version might not understand us.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The kernel's link to what runs, whatever has become of the file's name.
const LINK: &str = "/proc/self/exe";

/// A path that starts what runs now: its name while that still means the same file, for the sake of process
/// lists, else the kernel's link.
pub(crate) fn this_executable() -> PathBuf {
    match std::env::current_exe() {
        Ok(path) if is_this_executable(&path) => path,
        Ok(_) | Err(_) => LINK.into(),
    }
}

/// Whether the path leads to what runs now.
pub(crate) fn is_this_executable(path: &Path) -> bool {
    let identity = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    identity(path).is_some_and(|file| Some(file) == identity(Path::new(LINK)))
}

/// Whether there is a file that at least one user may run.
pub(crate) fn is_executable(path: &Path) -> bool {
    const ANYBODY: u32 = 0o111;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & ANYBODY != 0)
}
