//! `ebb lint`: says what `ebb up` would say of these files, without running them.

use std::process::ExitCode;

use crate::cli::LintOptions;
use crate::output;

/// Exit code 0 if the files can be used (warnings allowed), 2 if not.
pub(crate) fn run(options: &LintOptions) -> ExitCode {
    match platform_local::load(&options.files, &options.domain) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                output::print_warning(&warning.to_string());
            }
            anstream::println!(
                "{} can be used",
                if options.files.len() == 1 { "the file" } else { "the files" }
            );
            ExitCode::SUCCESS
        }
        Err(troubles) => refuse(&troubles),
    }
}

/// Prints every trouble; the exit code for input that cannot be used.
pub(crate) fn refuse(troubles: &[platform_local::Trouble]) -> ExitCode {
    for trouble in troubles {
        output::print_problem(&trouble.to_string());
    }
    ExitCode::from(2)
}
