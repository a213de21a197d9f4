//! `ebb shadow report`: how often, since when and why what is decided in shadow differs from the count that
//! there is.

use std::process::ExitCode;
use std::time::Duration;

use autoscaler::api_types::{RevisionSummary, ShadowView};
use vocabulary::format_duration;

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{OutputFormat, ShadowReportOptions};
use crate::output;

/// One line for each revision in shadow.
pub(crate) fn report(options: &ShadowReportOptions) -> anyhow::Result<ExitCode> {
    let mut list = crate::up::runtime()?
        .block_on(async { AutoscalerApi::find(&options.target).await?.revisions().await })?;
    list.revisions.retain(|revision| revision.shadow.is_some());
    match options.target.output {
        OutputFormat::Json => output::print_json(&list)?,
        OutputFormat::Table | OutputFormat::Wide => output::print_shown(&text(&list.revisions))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(revisions: &[RevisionSummary]) -> String {
    if revisions.is_empty() {
        return "nothing is in shadow; ebb.dev/shadow: \"true\" or `ebb up --shadow` puts it there"
            .to_owned();
    }
    let mut table =
        output::table(&["NAME", "PODS", "DIFFERED", "DIFFERS", "LAST DIFFERENCE", "OTHER AUTOSCALER"]);
    for revision in revisions {
        let Some(shadow) = &revision.shadow else { continue };
        table.add_row(vec![
            revision.name.to_string(),
            revision.wanted.to_string(),
            share(shadow),
            shadow.differs_ms.map_or_else(|| "no".to_owned(), |time| format!("for {}", span(time))),
            last_difference(shadow),
            other(revision),
        ]);
    }
    table.to_string()
}

/// "3 of 40 (7.5%) in 10m".
fn share(shadow: &ShadowView) -> String {
    let ShadowView { compared, differed, .. } = shadow;
    let permille = if *compared == 0 { 0 } else { differed * 1000 / compared };
    format!("{differed} of {compared} ({}.{}%) in {}", permille / 10, permille % 10, span(shadow.compared_ms))
}

fn last_difference(shadow: &ShadowView) -> String {
    let Some(last) = &shadow.last_difference else { return "none".to_owned() };
    format!("{} ago: {} instead of {}: {}", span(last.age_ms), last.ours, last.theirs, last.why)
}

/// `hello-hpa wants 3: ScalingLimited: TooManyReplicas`.
fn other(revision: &RevisionSummary) -> String {
    let Some(other) = &revision.other_autoscaler else { return "none".to_owned() };
    format!("{} wants {}: {}", other.name, other.desired, other.why)
}

fn span(milliseconds: u64) -> String {
    format_duration(Duration::from_secs(milliseconds / 1000))
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::{OtherAutoscalerView, ShadowDifferenceView};
    use vocabulary::PodCount;

    use super::*;
    use crate::get::summary_for_tests;

    #[test]
    fn the_report_says_how_often_since_when_and_why() {
        let mut revision = summary_for_tests("default/service/hello");
        let difference = ShadowDifferenceView {
            age_ms: 5400,
            ours: PodCount::new(3),
            theirs: PodCount::new(8),
            why: "cpu".to_owned(),
        };
        revision.shadow = Some(ShadowView {
            compared_ms: 600_000,
            compared: 40,
            differed: 3,
            differs_ms: Some(20_000),
            last_difference: Some(difference),
        });
        revision.other_autoscaler = Some(OtherAutoscalerView {
            name: "hello-hpa".to_owned(),
            desired: PodCount::new(8),
            current: PodCount::new(8),
            metrics: String::new(),
            why: "ScalingLimited: TooManyReplicas".to_owned(),
        });
        let text = text(&[revision]);
        for expected in [
            "hello-hpa wants 8: ScalingLimited: TooManyReplicas",
            "3 of 40 (7.5%) in 10m",
            "for 20s",
            "5s ago: 3 instead of 8: cpu",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
        assert!(super::text(&[]).starts_with("nothing is in shadow"));
    }
}
