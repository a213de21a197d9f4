//! `ebb lint`: says what `ebb up` would say of these files, without running them, and whether this machine
//! has what they want to run. `kubectl ebb lint` says of manifests of a cluster what its webhook would say.

mod of_cluster;

use std::process::ExitCode;

use platform_local::Trouble;
use vocabulary::Findings;

use crate::cli::LintOptions;
use crate::output;

/// Exit code 0 if the files can be used (warnings allowed), 2 if not.
pub(crate) fn run(options: &LintOptions) -> anyhow::Result<ExitCode> {
    let files = &options.manifests.files;
    if options.is_of_cluster {
        return of_cluster::run(files);
    }
    let loaded = match platform_local::load(&options.manifests.source()?) {
        Ok(loaded) => loaded,
        Err(findings) => return Ok(refuse(&findings)),
    };
    if !loaded.absences.is_empty() {
        return Ok(refuse(&Findings { problems: loaded.absences, warnings: loaded.warnings }));
    }
    for warning in &loaded.warnings {
        output::print_warning(&warning.to_string());
    }
    let is_one = files.len() == 1 && !files[0].is_dir();
    output::print_line(if is_one { "the file can be used" } else { "the files can be used" })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints everything there is to say; the exit code for input that cannot be used.
pub(crate) fn refuse(findings: &Findings<Trouble>) -> ExitCode {
    for problem in &findings.problems {
        output::print_problem(&problem.to_string());
    }
    for warning in &findings.warnings {
        output::print_warning(&warning.to_string());
    }
    ExitCode::from(2)
}
