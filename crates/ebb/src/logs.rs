//! `ebb logs`: what the pods of a revision printed, on this machine or on a cluster.

mod of_cluster;

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;
use vocabulary::RevisionName;

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{LogsOptions, OutputFormat};
use crate::client::{StreamEnd, UpClient};
use crate::get::choose;
use crate::output;

/// Shows what was kept, and then, if asked to, what comes.
pub(crate) fn run(options: &LogsOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let api = AutoscalerApi::find(&options.target).await?;
        let name = choose(&api.revisions().await?, &options.revision)?.name.clone();
        match api {
            AutoscalerApi::At(up) => of_this_machine(&up, &name, options).await,
            AutoscalerApi::Of(view) => {
                let cluster = view.into_cluster();
                of_cluster::show(&cluster, &name, options, &|line| show(line, options)).await?;
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

async fn of_this_machine(
    api: &UpClient,
    name: &RevisionName,
    options: &LogsOptions,
) -> anyhow::Result<ExitCode> {
    let path = format!("/v1/logs/{name}{}", query(options));
    match (options.follow, api.lines(&path, |line| show(line, options)).await?) {
        (true, StreamEnd::Whole | StreamEnd::CutShort) => {
            output::print_warning(FOLLOW_ENDED);
            Ok(ExitCode::SUCCESS)
        }
        (false, StreamEnd::Whole) => Ok(ExitCode::SUCCESS),
        (false, StreamEnd::CutShort) => bail!("the connection ended before the last line; ask again"),
    }
}

/// The last words of `--follow`, which has no other end than that and Ctrl-C.
const FOLLOW_ENDED: &str =
    "`ebb up` has ended or was replaced, so no further lines come; ask again once it runs";

fn query(options: &LogsOptions) -> String {
    let since = options.since.map_or_else(String::new, |since| format!("&since_ms={}", since.as_millis()));
    format!("?follow={}&previous={}{since}", options.follow, options.previous)
}

fn show(line: &str, options: &LogsOptions) -> anyhow::Result<()> {
    let print = if options.raw { output::print_raw } else { output::print_shown };
    print(&shown(line, options)?)
}

fn shown(line: &str, options: &LogsOptions) -> anyhow::Result<String> {
    let format = options.target.output;
    if format == OutputFormat::Json {
        return Ok(line.to_owned());
    }
    let line: Value = serde_json::from_str(line).context("the API answered something else than a line")?;
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    // Of several containers the line says which.
    let printer =
        line["container"].as_str().map_or_else(|| text("pod"), |name| format!("{}/{name}", text("pod")));
    Ok(match format {
        // A cluster does not tell the two streams apart.
        OutputFormat::Wide if line["stream"].is_null() => {
            format!("{} [{printer}] {}", text("timestamp"), text("line"))
        }
        OutputFormat::Wide => {
            format!("{} [{printer}] {}: {}", text("timestamp"), text("stream"), text("line"))
        }
        OutputFormat::Table | OutputFormat::Json => format!("[{printer}] {}", text("line")),
    })
}
