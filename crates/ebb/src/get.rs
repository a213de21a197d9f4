//! `ebb get`: where every revision stands, one line each.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use autoscaler::api_types::{RevisionList, RevisionSummary};
use vocabulary::Routing;

use crate::cli::{Asking, GetOptions, OutputFormat};
use crate::{client, output};

/// How often `--watch` asks.
const WATCH_EVERY: Duration = Duration::from_secs(1);

const HEADINGS: &[&str] = &[
    "REVISION", "WANTED", "DESIRED", "READY", "MODE", "STABLE", "PANIC", "TARGET", "SERVES", "WAITING",
    "REASON",
];

/// Shows once, or until interrupted.
pub(crate) fn run(options: &GetOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        loop {
            let list = ask(&options.asking, options.revision.as_deref()).await?;
            if options.watch && options.asking.output == OutputFormat::Table && is_terminal() {
                // Home, and clear what is below: the table stands still instead of scrolling.
                anstream::print!("\x1b[H\x1b[J");
            }
            show(&list, options.asking.output)?;
            if !options.watch {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::time::sleep(WATCH_EVERY).await;
        }
    })
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout())
}

async fn ask(asking: &Asking, wanted: Option<&str>) -> anyhow::Result<RevisionList> {
    let mut list: RevisionList = client::get(&asking.api.url, "/v1/revisions").await?;
    if let Some(wanted) = wanted {
        let chosen = choose(&list, wanted)?.name.clone();
        list.revisions.retain(|revision| revision.name == chosen);
    }
    Ok(list)
}

/// The one revision whose name is, or ends in, `/wanted`.
pub(crate) fn choose<'a>(list: &'a RevisionList, wanted: &str) -> anyhow::Result<&'a RevisionSummary> {
    let suffix = format!("/{wanted}");
    let fits = |revision: &&RevisionSummary| {
        revision.name.as_str() == wanted || revision.name.as_str().ends_with(&suffix)
    };
    let mut found = list.revisions.iter().filter(fits);
    let names = |revisions: &mut dyn Iterator<Item = &RevisionSummary>| {
        revisions.map(|revision| revision.name.as_str().to_owned()).collect::<Vec<_>>().join(", ")
    };
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => {
            bail!(
                "{wanted:?} could be any of {}; write more of the name",
                names(&mut list.revisions.iter().filter(fits))
            )
        }
        (None, _) if list.revisions.is_empty() => {
            bail!("there is no revision {wanted:?}; there is none at all")
        }
        (None, _) => {
            bail!("there is no revision {wanted:?}; there are {}", names(&mut list.revisions.iter()))
        }
    }
}

fn show(list: &RevisionList, format: OutputFormat) -> anyhow::Result<()> {
    if format == OutputFormat::Json {
        return output::print_json(list);
    }
    let mut table = output::table(HEADINGS);
    for revision in &list.revisions {
        table.add_row(row(revision));
    }
    output::print_line(&table.to_string())?;
    for problem in &list.problems {
        output::print_warning(&format!("{problem} (the last good configuration stays in force)"));
    }
    Ok(())
}

fn row(revision: &RevisionSummary) -> Vec<String> {
    vec![
        revision.name.to_string(),
        revision.wanted.to_string(),
        revision.desired.map_or_else(|| "-".to_owned(), |desired| desired.to_string()),
        revision.ready_pods.to_string(),
        revision.mode.clone(),
        number(revision.stable_value),
        number(revision.panic_value),
        number(Some(revision.target_per_pod)),
        serves(revision.routing).to_owned(),
        revision.waiting.to_string(),
        revision.why_not_ready.clone().unwrap_or_else(|| revision.last_reason.clone()),
    ]
}

/// Who takes requests first.
pub(crate) fn serves(routing: Routing) -> &'static str {
    match routing {
        Routing::Direct => "pods",
        Routing::ThroughActivator => "activator",
    }
}

/// At most two decimals, or a dash for "no data".
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(
        || "-".to_owned(),
        |value| format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lose_what_nobody_reads() {
        for (value, text) in [(7.0, "7"), (0.0, "0"), (1.5, "1.5"), (333.333_333, "333.33"), (100.0, "100")] {
            assert_eq!(number(Some(value)), text);
        }
        assert_eq!(number(None), "-");
    }
}
