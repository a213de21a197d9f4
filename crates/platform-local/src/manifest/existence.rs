//! Does this machine have what a manifest wants to run?
//!
//! A manifest may be written before its command is built, or for another machine, so this is no reason to refuse it; but whoever mistyped a path wants
//! to hear of it before the first request does.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::manifest::fields::Report;
use crate::manifest::yaml::Place;
use crate::pod::Template;

/// Notes a command that cannot be started.
pub(crate) fn look_for_command(template: &Template, place: Place, report: &mut Report) {
    let Some(program) = template.command.first() else { return };
    // `ebb` means this executable, and what a variable holds is known only when the pod starts.
    if program == "ebb" || program.contains("$(") {
        return;
    }
    let directory = template.directory.as_deref().unwrap_or(Path::new("."));
    if program.contains('/') {
        let path = directory.join(program);
        if !path.exists() {
            report.miss(
                place,
                format!("the command {program:?} does not exist: there is no {}", path.display()),
            );
        } else if !is_executable(&path) {
            report.miss(place, format!("the command {program:?} is not executable ({})", path.display()));
        }
        return;
    }
    let searched = search_path(template);
    if !std::env::split_paths(&searched).any(|folder| is_executable(&directory.join(folder).join(program))) {
        let advice = format!("write ./{program} for one beside the manifest");
        report.miss(place, format!("the command {program:?} is not in PATH; {advice}"));
    }
}

fn search_path(template: &Template) -> OsString {
    let own = template
        .env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| OsStr::new(value).to_owned());
    own.or_else(|| std::env::var_os("PATH")).unwrap_or_default()
}

fn is_executable(path: &Path) -> bool {
    const ANYBODY: u32 = 0o111;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & ANYBODY != 0)
}
