//! Whether systemd runs the service for the machine or for one user.

use std::path::PathBuf;

use anyhow::Context;

/// The manager of systemd that runs the service: the machine's or one user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceScope {
    User,
    System,
}

impl ServiceScope {
    /// The command by which a person speaks to that manager.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::User => "systemctl --user",
            Self::System => "systemctl",
        }
    }
}

/// A folder of this user: as a variable says, or at its usual place at home.
pub(super) fn folder_of_user(variable: &str, usual: &str, option: &str) -> anyhow::Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)));
    folder.with_context(|| {
        format!("neither {variable} nor HOME says where this user's files are; say it with {option}")
    })
}
