//! `ebb restart`: asks a running `ebb up` to rebuild one of its parts.

use std::process::ExitCode;

use http::Method;

use crate::cli::{Part, RestartOptions};
use crate::client::UpClient;

/// Returns when the new part is at work.
pub(crate) fn run(options: &RestartOptions) -> anyhow::Result<ExitCode> {
    let part = name(options.part);
    let api = UpClient::new(&options.api);
    crate::up::runtime()?.block_on(api.ask(Method::POST, &format!("/v1/restart/{part}")))?;
    anstream::println!("the {part} was rebuilt");
    Ok(ExitCode::SUCCESS)
}

fn name(part: Part) -> &'static str {
    match part {
        Part::Autoscaler => "autoscaler",
        Part::Activator => "activator",
    }
}
