//! `ebb`: everything a person does.
//!
//! One executable plays every part on one machine: `ebb up` supervises, and re-executes itself as `ebb pod`
//! and `ebb queue-proxy` for the processes of a pod. The other commands ask a running autoscaler, or only
//! read files.

mod adopt;
mod annotate_command;
mod api_token;
mod autoscale;
mod autoscaler_api;
mod check;
mod cli;
mod client;
mod cluster;
mod cluster_install;
mod dashboard_command;
mod delete;
mod explain;
mod forecast;
mod get;
mod import;
mod inject;
mod input_files;
mod install;
mod ledger;
mod lint;
mod logs;
mod manual;
mod names;
mod output;
mod record;
mod release;
mod replay;
mod restart;
mod rollback;
mod run;
mod sample_app;
mod schema;
mod shadow;
mod simulate;
mod token;
mod up;
mod utc_time;

use std::ffi::OsString;
use std::process::ExitCode;

use cli::{Cli, CliCommand, RecordCommand, ShadowCommand};
pub use up::StartAutoscaler;

/// Runs the program with these arguments (the first is its own name) and says how it ended: 0 if all went
/// well, 1 if something failed, 2 if what was written (arguments, files) cannot be used, 130 if a second
/// Ctrl-C cut the end short.
pub fn main(arguments: impl Iterator<Item = OsString>, start_autoscaler: StartAutoscaler) -> ExitCode {
    let done = match Cli::read(arguments).command {
        // These three start with every pod, so they come before anything that costs time.
        CliCommand::Pod(_) => return platform_local::pod_main(),
        CliCommand::QueueProxy(_) => return queue_proxy::main_from_env(),
        CliCommand::SampleApp => sample_app::run().map(|()| ExitCode::SUCCESS),
        CliCommand::Up(options) => up::run(*options, start_autoscaler),
        CliCommand::Run(options) => run::run(&options, start_autoscaler),
        CliCommand::Lint(options) => lint::run(&options),
        CliCommand::Get(options) => get::run(&options),
        CliCommand::Explain(options) => explain::run(&options),
        CliCommand::Forecast(options) => forecast::run(&options),
        CliCommand::Ledger(options) => ledger::run(&options),
        CliCommand::Dashboard(options) => dashboard_command::run(*options),
        CliCommand::Adopt(options) => adopt::run(&options),
        CliCommand::Release(options) => release::run(&options),
        CliCommand::Check(options) => check::run(&options),
        CliCommand::Logs(options) => logs::run(&options),
        CliCommand::Names(options) => names::run(&options),
        CliCommand::Delete(options) => delete::run(&options),
        CliCommand::Restart(options) => restart::run(&options),
        CliCommand::Rollback(options) => rollback::run(&options),
        CliCommand::Token(options) => token::run(&options),
        CliCommand::Autoscale(options) => autoscale::run(&options),
        CliCommand::Import(options) => import::run(&options),
        CliCommand::Inject(options) => inject::run(&options),
        CliCommand::Simulate(arguments) => simulate::run(*arguments),
        CliCommand::Replay(options) => replay::run(&options),
        CliCommand::Record(RecordCommand::Save(options)) => record::save(&options),
        CliCommand::Install(options) => install::run(&options),
        CliCommand::ClusterInstall(options) => cluster_install::run(&options),
        CliCommand::Completion(options) => manual::complete(&options),
        CliCommand::Man(options) => manual::run(&options),
        CliCommand::Schema => schema::run(),
        CliCommand::Shadow(ShadowCommand::Report(options)) => shadow::report(&options),
    };
    done.unwrap_or_else(|error| {
        if output::is_reader_gone(&error) {
            return ExitCode::SUCCESS;
        }
        output::print_error(&error);
        ExitCode::FAILURE
    })
}
