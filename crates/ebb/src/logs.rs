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
    let end = api.lines(&path, |line| show(line, options)).await?;
    if let Some(words) = last_words(options.follow, end)? {
        output::print_warning(words);
    }
    Ok(ExitCode::SUCCESS)
}

/// The words after the last line, if there are any. Fails where lines are missing.
fn last_words(is_followed: bool, end: StreamEnd) -> anyhow::Result<Option<&'static str>> {
    match (is_followed, end) {
        (true, StreamEnd::Whole | StreamEnd::CutShort) => Ok(Some(FOLLOW_ENDED)),
        (false, StreamEnd::Whole) => Ok(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_followed_end_in_plain_words_and_others_with_the_last_line() {
        for end in [StreamEnd::Whole, StreamEnd::CutShort] {
            let words = last_words(true, end).expect("it is no failure");
            assert!(words.is_some_and(|words| words.starts_with("`ebb up` has ended")), "{words:?}");
        }
        assert_eq!(last_words(false, StreamEnd::Whole).expect("it is no failure"), None);
        let failure = last_words(false, StreamEnd::CutShort).expect_err("lines are missing");
        assert!(failure.to_string().contains("ask again"), "{failure}");
    }
}
