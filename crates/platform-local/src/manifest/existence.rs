//! Does this machine have what a manifest wants to run?
//!
//! A manifest may be written before its command is built, or for another machine, so an absence is no reason
//! to refuse it; but the author of a mistyped path should learn of it before the first request does.

use std::ffi::OsString;
use std::path::Path;

use crate::executable::is_executable;
use crate::manifest::fields::Report;
use crate::manifest::yaml::TextPlace;
use crate::pod::{Container, EnvValue};

/// Notes a command that cannot be started.
pub(crate) fn look_for_command(container: &Container, place: TextPlace, report: &mut Report) {
    let Some(program) = container.command.first() else { return };
    // `ebb` means this executable, and what a variable holds is known only when the pod starts.
    if program == "ebb" || program.contains("$(") {
        return;
    }
    let directory = container.directory.as_deref().unwrap_or(Path::new("."));
    if program.contains('/') {
        let path = directory.join(program);
        if !path.exists() {
            report.note_absence(
                place,
                format!("the command {program:?} does not exist: there is no {}", path.display()),
            );
        } else if !is_executable(&path) {
            report.note_absence(
                place,
                format!("the command {program:?} is not executable ({})", path.display()),
            );
        }
        return;
    }
    let searched = search_path(container);
    if !std::env::split_paths(&searched).any(|folder| is_executable(&directory.join(folder).join(program))) {
        let advice = format!("write ./{program} for one beside the manifest");
        report.note_absence(place, format!("the command {program:?} is not in PATH; {advice}"));
    }
}

fn search_path(container: &Container) -> OsString {
    let own =
        container.env.iter().rev().find(|(name, _)| name == "PATH").and_then(|(_, value)| match value {
            EnvValue::Written(path) | EnvValue::Literal { literal: path } => Some(OsString::from(path)),
            EnvValue::Fact { .. } => None,
        });
    own.or_else(|| std::env::var_os("PATH")).unwrap_or_default()
}
