//! May the user of a machine's service run the executable and read the manifests?
//!
//! What `ebb up` would not be allowed to do is told here, and not by a service that does not start. An
//! executable that the user cannot run, or that is in a place from which files go away, is copied.

use std::ffi::CString;
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use nix::unistd::{Gid, User, getgrouplist};

/// The right to read a file, or to list a directory.
const READ: u32 = 0o4;
/// The right to run a file, or to enter a directory.
const RUN: u32 = 0o1;
/// The name of the copy.
const NAME: &str = "ebb";
/// Below these folders files are a person's, or go away.
const PASSING: [&str; 4] = ["/home", "/root", "/tmp", "/var/tmp"];

/// The user as whom the service runs, as far as rights are concerned.
pub(super) struct ServiceUser {
    /// As messages call the user.
    name: String,
    /// `None` for a user that systemd makes up.
    uid: Option<u32>,
    groups: Vec<u32>,
}

impl ServiceUser {
    /// The user with this name, or the one that systemd makes up.
    pub(super) fn of(run_as: Option<&str>) -> anyhow::Result<Self> {
        let Some(name) = run_as else {
            let name = "a user that systemd makes up".to_owned();
            return Ok(Self { name, uid: None, groups: Vec::new() });
        };
        let found = User::from_name(name).ok().flatten();
        let user = found.with_context(|| {
            format!(
                "--run-as: there is no user {name:?} on this machine; `useradd --system {name}` makes one"
            )
        })?;
        let groups = getgrouplist(&CString::new(name)?, user.gid)?.into_iter().map(Gid::as_raw).collect();
        Ok(Self { name: format!("user {name}"), uid: Some(user.uid.as_raw()), groups })
    }

    fn may(&self, found: &Metadata, right: u32) -> bool {
        // Root may read every file, and runs what anybody may run.
        if self.uid == Some(0) {
            return right == READ || found.is_dir() || found.mode() & 0o111 != 0;
        }
        let place = if self.uid == Some(found.uid()) {
            6
        } else if self.groups.contains(&found.gid()) {
            3
        } else {
            0
        };
        (found.mode() >> place) & right == right
    }

    /// The first thing for which this user lacks the right: a folder above a file, to enter, or the file.
    fn obstacle(&self, file: &Path, right: u32) -> anyhow::Result<Option<PathBuf>> {
        let real = fs::canonicalize(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let folders = real.ancestors().skip(1).map(|folder| (folder, RUN));
        for (path, right) in folders.chain([(real.as_path(), right)]) {
            let found = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
            let right = if found.is_dir() && right == READ { READ | RUN } else { right };
            if !self.may(&found, right) {
                return Ok(Some(path.to_owned()));
            }
        }
        Ok(None)
    }

    /// The problem of each of these files or directories that this user may not read.
    pub(super) fn problems_of_files(&self, files: &[PathBuf]) -> Vec<anyhow::Error> {
        let problem = |file: &PathBuf| match self.obstacle(file, READ) {
            Ok(None) => None,
            Ok(Some(obstacle)) => Some(anyhow!(
                "{} cannot be read by the service, which runs as {}: {} does not let that user in; move the manifests (to /etc/ebb, say), give \
                 the right (chmod o+rX {2}), or say with --run-as who runs the service",
                file.display(),
                self.name,
                obstacle.display()
            )),
            Err(error) => Some(error),
        };
        files.iter().filter_map(problem).collect()
    }

    /// Where the service finds its executable: where it is, or as a copy in `directory`.
    pub(super) fn place_of(&self, executable: &Path, directory: &Path) -> anyhow::Result<ExecutablePlace> {
        let copy = directory.join(NAME);
        if executable == copy {
            return Ok(ExecutablePlace::AsItIs);
        }
        let is_passing = PASSING.iter().any(|folder| executable.starts_with(folder));
        let is_kept = !is_passing && self.obstacle(executable, RUN)?.is_none();
        Ok(if is_kept { ExecutablePlace::AsItIs } else { ExecutablePlace::Copy(copy) })
    }
}

/// Where the service finds its executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExecutablePlace {
    /// It stays where it is, and the service's user may run it there.
    AsItIs,
    /// It is to be copied to this file.
    Copy(PathBuf),
}

/// Copies an executable for all users to run. A service that runs the former one goes on with it.
pub(super) fn copy_executable(executable: &Path, copy: &Path) -> anyhow::Result<()> {
    let begun = copy.with_extension("new");
    let copied = copy.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        fs::copy(executable, &begun)?;
        fs::set_permissions(&begun, fs::Permissions::from_mode(0o755))?;
        // A file that is run cannot be written to, but its name can be given to another one.
        fs::rename(&begun, copy)
    });
    copied.with_context(|| format!("copying {} to {}", executable.display(), copy.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> ServiceUser {
        ServiceUser::of(None).expect("systemd makes it up")
    }

    fn allow(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn a_file_that_is_for_its_owner_alone_is_told_with_what_stands_in_the_way() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let manifests = folder.path().join("manifests");
        fs::create_dir(&manifests).expect("a folder");
        allow(folder.path(), 0o755);
        allow(&manifests, 0o755);
        let files = [manifests.clone()];
        let problems = |user: &ServiceUser| {
            user.problems_of_files(&files).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(problems(&made_up()), [""; 0]);
        // It can be entered, and not listed.
        for mode in [0o751, 0o750, 0o700] {
            allow(&manifests, mode);
            let [problem] = &problems(&made_up())[..] else { panic!("mode {mode:o} is a problem") };
            assert!(
                problem.contains("a user that systemd makes up") && problem.contains("chmod o+rX"),
                "{problem}"
            );
        }
        assert_eq!(problems(&ServiceUser::of(Some("root")).expect("there is root")), [""; 0]);
        let unknown = ServiceUser::of(Some("no-such-user")).err().map(|error| error.to_string());
        assert!(unknown.is_some_and(|text| text.contains("useradd --system no-such-user")));
    }

    #[test]
    fn an_executable_that_may_go_away_or_cannot_be_run_is_copied() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let executable = folder.path().join("built");
        fs::write(&executable, "#!/bin/sh\n").expect("a file");
        allow(&executable, 0o700);
        let directory = folder.path().join("bin");
        let copy = directory.join("ebb");
        let place = |executable: &Path| made_up().place_of(executable, &directory).expect("it can be read");
        assert_eq!(place(&executable), ExecutablePlace::Copy(copy.clone()));
        assert_eq!(place(&copy), ExecutablePlace::AsItIs);
        assert_eq!(place(Path::new("/bin/sh")), ExecutablePlace::AsItIs);
        copy_executable(&executable, &copy).expect("there is room");
        copy_executable(&executable, &copy).expect("the former one is replaced");
        let found = fs::metadata(&copy).expect("it was copied");
        assert_eq!((found.mode() & 0o777, found.len()), (0o755, 10));
    }
}
