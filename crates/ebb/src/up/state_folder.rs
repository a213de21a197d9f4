//! Where does `ebb up` keep what is to outlive it?

use std::env;
use std::path::PathBuf;

/// Where systemd has made a folder for a service (`StateDirectory=`).
const OF_SERVICE: &str = "STATE_DIRECTORY";

/// Where programs of this user keep what they made (XDG Base Directory); `None` if nothing says where.
pub(super) fn of_user() -> Option<PathBuf> {
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("ebb"))
}

/// The folder of this service, if it is one; else that of its user.
fn of_service_or_user() -> Option<PathBuf> {
    // A service may have several, separated by colons.
    let given = env::var(OF_SERVICE).ok();
    let first = given.as_deref().and_then(|folders| folders.split(':').next()).map(PathBuf::from);
    first.filter(|folder| folder.is_absolute()).or_else(of_user)
}

/// The folder that a person names, else that of this service or its user.
pub(super) fn named_or_found(named: Option<PathBuf>) -> Option<PathBuf> {
    named.or_else(of_service_or_user)
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
