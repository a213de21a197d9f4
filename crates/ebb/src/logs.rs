//! `ebb logs`: what the pods of a revision printed.

use std::process::ExitCode;

use anyhow::Context;
use autoscaler::api_types::RevisionList;
use serde_json::Value;

use crate::cli::{LogsOptions, OutputFormat};
use crate::client::UpClient;
use crate::get::choose;
use crate::output;

/// Shows what was kept, and then, if asked to, what comes.
pub(crate) fn run(options: &LogsOptions) -> anyhow::Result<ExitCode> {
    let api = UpClient::new(&options.asking.api);
    crate::up::runtime()?.block_on(async {
        let list: RevisionList = api.get("/v1/revisions").await?;
        let name = &choose(&list, &options.revision)?.name;
        let path = format!("/v1/logs/{name}{}", query(options));
        api.lines(&path, |line| show(line, options.asking.output)).await
    })?;
    Ok(ExitCode::SUCCESS)
}

fn query(options: &LogsOptions) -> String {
    let since = options.since.map_or_else(String::new, |since| format!("&since_ms={}", since.as_millis()));
    format!("?follow={}&previous={}{since}", options.follow, options.previous)
}

fn show(line: &str, format: OutputFormat) -> anyhow::Result<()> {
    if format == OutputFormat::Json {
        return output::print_line(line);
    }
    let line: Value = serde_json::from_str(line).context("the API answered something else than a line")?;
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    // Of several containers the line says which.
    let printer =
        line["container"].as_str().map_or_else(|| text("pod"), |name| format!("{}/{name}", text("pod")));
    match format {
        OutputFormat::Wide => output::print_line(&format!(
            "{} [{}] {}: {}",
            text("timestamp"),
            printer,
            text("stream"),
            text("line")
        )),
        OutputFormat::Table | OutputFormat::Json => {
            output::print_line(&format!("[{printer}] {}", text("line")))
        }
    }
}
