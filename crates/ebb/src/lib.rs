//! `ebb`: everything a person does.
//!
//! One executable plays every part on one machine: `ebb up` supervises, and re-executes itself as `ebb pod` and `ebb queue-proxy` for the
//! processes of a pod. The other commands ask a running autoscaler, or only read files.

mod autoscale;
mod cli;
mod client;
mod delete;
mod explain;
mod get;
mod import;
mod inject;
mod install;
mod lint;
mod logs;
mod manual;
mod output;
mod restart;
mod sample_app;
mod shadow;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use autoscaler::{Autoscaler, AutoscalerConfig};
use clap::Parser as _;
use platform::Platform;

use cli::{Cli, Command, ShadowCommand};

/// How `ebb up` starts an autoscaler: by [`Autoscaler::start`], unless a harness puts something around it.
pub type StartAutoscaler = fn(AutoscalerConfig, Arc<dyn Platform>) -> Autoscaler;

/// Runs the program with these arguments (the first is its own name) and says how it ended: 0 if all went well, 1 if something failed, 2 if what
/// was written (arguments, files) cannot be used, 130 if a second Ctrl-C cut the end short.
pub fn main(arguments: impl Iterator<Item = OsString>, start_autoscaler: StartAutoscaler) -> ExitCode {
    let done = match Cli::parse_from(arguments).command {
        // These three start with every pod, so they come before anything that costs time.
        Command::Pod(_) => return platform_local::pod_main(),
        Command::QueueProxy(_) => return queue_proxy::main_from_env(),
        Command::SampleApp => sample_app::run().map(|()| ExitCode::SUCCESS),
        Command::Up(options) => up::run(*options, start_autoscaler),
        Command::Lint(options) => lint::run(&options),
        Command::Get(options) => get::run(&options),
        Command::Explain(options) => explain::run(&options),
        Command::Logs(options) => logs::run(&options),
        Command::Delete(options) => delete::run(&options),
        Command::Restart(options) => restart::run(&options),
        Command::Autoscale(options) => autoscale::run(&options),
        Command::Import(options) => import::run(&options),
        Command::Inject(options) => inject::run(&options),
        Command::Install(options) => install::run(&options),
        Command::Completion(options) => manual::complete(&options),
        Command::Man(options) => manual::run(&options),
        Command::Shadow(ShadowCommand::Report(options)) => shadow::report(&options),
    };
    done.unwrap_or_else(|error| {
        if output::is_reader_gone(&error) {
            return ExitCode::SUCCESS;
        }
        output::print_error(&error);
        ExitCode::FAILURE
    })
}
