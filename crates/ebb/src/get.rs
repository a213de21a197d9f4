//! `ebb get`: where every revision stands, one line each.

mod columns;
mod reason;
mod values;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use autoscaler::api_types::{RevisionList, RevisionSummary};
use runtime::EXIT_PART_FAILED;
use vocabulary::RevisionName;

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{GetOptions, OutputFormat};
use crate::cluster::problem::ProblemSubject;
use crate::output;
use columns::{ColumnChoice, RevisionPlace};
pub(crate) use values::{first_hop, number};

/// How often `--watch` asks the API.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Shows once, or until interrupted.
pub(crate) fn run(options: &GetOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let api = AutoscalerApi::find(&options.target).await?;
        let place = match &api {
            AutoscalerApi::At(_) => RevisionPlace::Machine,
            AutoscalerApi::Of(_) => RevisionPlace::Cluster,
        };
        let mut choice = ColumnChoice::at(place);
        show(&ask(&api, options.revision.as_deref()).await?, options, &mut choice)?;
        if options.watch {
            return watch(&api, options, choice).await;
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn watch(
    api: &AutoscalerApi,
    options: &GetOptions,
    mut choice: ColumnChoice,
) -> anyhow::Result<ExitCode> {
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        match ask(api, options.revision.as_deref()).await {
            Ok(list) => show(&list, options, &mut choice)?,
            // It answered before: it is being restarted, or will be.
            Err(error) => output::print_warning(&format!("{error:#}; asking again")),
        }
    }
}

async fn ask(api: &AutoscalerApi, wanted: Option<&str>) -> anyhow::Result<RevisionList> {
    let mut list = api.revisions().await?;
    if let Some(wanted) = wanted {
        let chosen = choose(&list, wanted)?.name.clone();
        list.revisions.retain(|revision| revision.name == chosen);
    }
    Ok(list)
}

/// The one revision whose name is, or ends in, `/wanted`.
pub(crate) fn choose<'a>(list: &'a RevisionList, wanted: &str) -> anyhow::Result<&'a RevisionSummary> {
    let names: Vec<&RevisionName> = list.revisions.iter().map(|revision| &revision.name).collect();
    let chosen = choose_name(&names, wanted)?;
    Ok(list.revisions.iter().find(|revision| revision.name == *chosen).expect("the name is one of these"))
}

/// The one name that is, or ends in, `/wanted`.
pub(crate) fn choose_name<'n>(names: &[&'n RevisionName], wanted: &str) -> anyhow::Result<&'n RevisionName> {
    let suffix = format!("/{wanted}");
    let fits = |name: &&&RevisionName| name.as_str() == wanted || name.as_str().ends_with(&suffix);
    let found: Vec<&RevisionName> = names.iter().filter(fits).copied().collect();
    let listed = |names: &[&RevisionName]| {
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().join(", ")
    };
    match (&found[..], names) {
        ([], []) => bail!("there is no revision {wanted:?}; there is none at all"),
        ([], [only]) => bail!("there is no revision {wanted:?}; there is {only}"),
        ([], several) => bail!("there is no revision {wanted:?}; there are {}", listed(several)),
        ([_, _, ..], _) => bail!("{wanted:?} could be any of {}; write more of the name", listed(&found)),
        ([only], _) => Ok(*only),
    }
}

fn show(list: &RevisionList, options: &GetOptions, choice: &mut ColumnChoice) -> anyhow::Result<()> {
    let width = match options.target.output {
        OutputFormat::Json => return output::print_json(list),
        OutputFormat::Wide => usize::MAX,
        OutputFormat::Table => output::width(),
    };
    if options.watch && output::is_terminal() {
        // Home, and clear what is below: the table stands still instead of scrolling.
        anstream::print!("\x1b[H\x1b[J");
    }
    output::print_shown(&columns::table(&list.revisions, width, choice))?;
    for name in &list.unanswered {
        output::print_warning(&format!(
            "{name} does not answer; what it decides about may be missing here until another takes over"
        ));
    }
    for problem in &list.problems {
        output::print_warning(&explained(problem));
    }
    Ok(())
}

/// What is wrong with an object says itself what follows from it, and so does a part of ebb that failed.
fn explained(problem: &str) -> String {
    let is_part_failed = problem.contains(&format!("exit code {EXIT_PART_FAILED}"));
    match ProblemSubject::of(problem) {
        Some(_) => problem.to_owned(),
        None if is_part_failed => problem.to_owned(),
        None => format!("{problem} (the last good configuration stays in force)"),
    }
}

#[cfg(test)]
pub(crate) use columns::tests::summary as summary_for_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wrong_with_the_configuration_leaves_the_last_one_in_force() {
        let paused = "deployment shop/hello: annotation ebb.dev/paused is \"true\"";
        assert_eq!(explained(paused), paused);
        let failed = "the `ebb up` before this one ended with exit code 70: no more";
        assert_eq!(explained(failed), failed);
        let window = "key stable-window of ConfigMap config-autoscaler is \"soon\"";
        assert!(explained(window).ends_with("(the last good configuration stays in force)"));
    }
}
