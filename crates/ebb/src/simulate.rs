//! `ebb simulate`: what settings, and others in their place, would do under a load.

mod chart;
mod differences;
mod document;
mod inputs;
mod load_files;
mod objective;
mod outcome;
mod page;
mod progress;
mod recorded_run;
mod scenario_file;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use simulator::{FOLLOWED_REQUESTS_MAX, ServiceReport, SimulationPace, count_range, simulate_watched};

use crate::cli::{SimulateArguments, SimulateOptions, SimulationOrder};
use crate::{lint, output};
use document::SimulationDocument;
use inputs::VariantScenario;
use outcome::{VariantOutcome, wait_text};
use page::ReportPage;
use progress::SimulationProgress;

/// Lets a load or a made-up world run, and prints what came of it.
pub(crate) fn run(arguments: SimulateArguments) -> anyhow::Result<ExitCode> {
    match arguments.order() {
        SimulationOrder::World { seed } => world::run(seed),
        SimulationOrder::Loads(options) => run_loads(&options),
        SimulationOrder::Scenario(scenario) => match scenario_file::read(&scenario) {
            Ok(options) => run_loads(&options),
            Err(problems) => Ok(refuse(&problems)),
        },
    }
}

/// Prints a table with one row for each variant. Exit code 1 if an objective is missed, 2 if something that
/// was written cannot be used.
fn run_loads(options: &SimulateOptions) -> anyhow::Result<ExitCode> {
    let source = options.manifests.source()?;
    let loaded = match platform_local::load(&source) {
        Ok(loaded) => loaded,
        Err(findings) => return Ok(lint::refuse(&findings)),
    };
    for warning in &loaded.warnings {
        output::print_warning(&warning.to_string());
    }
    let record = match options.record.as_deref().map(recorded_run::read).transpose() {
        Ok(record) => record,
        Err(problem) => return Ok(refuse(&[problem])),
    };
    if let Some(record) = &record {
        for warning in recorded_run::warnings(record, &inputs::facts_of(&loaded)) {
            output::print_warning(&warning);
        }
    }
    let mut variants = match inputs::variants(options, &source, &loaded, record.as_ref()) {
        Ok(variants) => variants,
        Err(problems) => return Ok(refuse(&problems)),
    };
    if let Some(notice) = by_seconds_if_many(&mut variants) {
        output::print_shown(&notice)?;
    }
    let length = variants.first().map(|variant| variant.scenario.length).unwrap_or_default();
    let outcomes = match outcomes(&variants) {
        Ok(outcomes) => outcomes,
        Err(problems) => return Ok(refuse(&problems)),
    };
    show(options, &outcomes, length)
}

fn refuse(problems: &[String]) -> ExitCode {
    for problem in problems {
        output::print_problem(problem);
    }
    ExitCode::from(2)
}

/// Takes whole seconds for a load that has too many requests to follow each, and says so.
fn by_seconds_if_many(variants: &mut [VariantScenario]) -> Option<String> {
    let is_followed = |variant: &&VariantScenario| variant.scenario.pace == SimulationPace::EveryRequest;
    let expected = variants.iter().filter(is_followed).map(|variant| variant.scenario.expected_requests());
    let most = expected.fold(0.0, f64::max);
    if most <= FOLLOWED_REQUESTS_MAX {
        return None;
    }
    for variant in variants {
        variant.scenario.pace = SimulationPace::WholeSeconds;
    }
    Some(format!(
        "about {most:.1e} requests are too many to follow each: simulated by whole seconds, as with --fast"
    ))
}

fn show(
    options: &SimulateOptions,
    outcomes: &[VariantOutcome],
    length: Duration,
) -> anyhow::Result<ExitCode> {
    output::print_shown(&table(outcomes))?;
    let mut texts = Vec::new();
    if let Some((first, others)) = outcomes.split_first() {
        texts.extend(others.iter().map(|other| differences::text(first, other, length)));
    }
    let verdict = options.objective.as_ref().map(|objective| objective::judge(objective, outcomes));
    texts.extend(verdict.iter().map(|verdict| format!("\n{}", verdict.text)));
    for text in &texts {
        output::print_shown(text)?;
    }
    if let Some(path) = &options.json {
        SimulationDocument::new(options, outcomes, length, verdict.as_ref()).write(path)?;
    }
    if let Some(path) = &options.svg {
        write(path, &chart::charts(outcomes, length))?;
    }
    if let Some(path) = &options.html {
        let charts = chart::charts(outcomes, length);
        let page = ReportPage { headings: &HEADINGS, rows: rows(outcomes), charts, texts };
        write(path, &page.markup())?;
    }
    let is_missed = verdict.is_some_and(|verdict| verdict.cheapest.is_none());
    Ok(if is_missed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Writes a file that takes the place of one of that name.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn outcomes(variants: &[VariantScenario]) -> Result<Vec<VariantOutcome>, Vec<String>> {
    let mut progress = SimulationProgress::of(variants.len());
    let outcomes = variants.iter().enumerate().map(|(place, VariantScenario { title, scenario })| {
        let report = simulate_watched(scenario, &mut |passed| progress.tell(place, passed, scenario.length));
        let report = report.map_err(|problem| vec![problem.to_string()])?;
        Ok(VariantOutcome { title: title.clone(), report })
    });
    outcomes.collect()
}

/// The columns of the table.
const HEADINGS: [&str; 14] = [
    "VARIANT",
    "SERVICE",
    "REQUESTS",
    "REFUSED",
    "WAITED FROM ZERO",
    "FOR GROWTH",
    "WAIT P50",
    "P95",
    "P99",
    "MAX",
    "PODS",
    "POD-HOURS",
    "IDLE",
    "CHANGES/H",
];

fn table(outcomes: &[VariantOutcome]) -> String {
    let mut table = output::table(&HEADINGS);
    for row in rows(outcomes) {
        table.add_row(row);
    }
    table.to_string()
}

fn rows(outcomes: &[VariantOutcome]) -> Vec<Vec<String>> {
    let of_variant = |outcome: &VariantOutcome| -> Vec<Vec<String>> {
        outcome.report.services.iter().map(|service| row(&outcome.title, service)).collect()
    };
    outcomes.iter().flat_map(of_variant).collect()
}

fn row(title: &str, service: &ServiceReport) -> Vec<String> {
    let pods =
        count_range(&service.counts).map_or_else(String::new, |(least, most)| format!("{least}-{most}"));
    vec![
        title.to_owned(),
        service.name.to_string(),
        service.requests.to_string(),
        service.refused.to_string(),
        service.waited_from_zero.to_string(),
        service.waited_for_growth.to_string(),
        wait_text(service.wait.p50),
        wait_text(service.wait.p95),
        wait_text(service.wait.p99),
        wait_text(service.wait.longest),
        pods,
        format!("{:.2}", service.pod_hours()),
        format!("{:.0}%", service.share_idle() * 100.0),
        format!("{:.1}", service.changes_per_hour),
    ]
}

#[cfg(test)]
mod tests {
    use simulator::{RecordedCount, SimulationReport, WaitPercentiles};
    use vocabulary::{PodCount, RevisionName};

    use super::*;

    pub(super) fn outcome(title: &str, counts: &[(u64, u32)]) -> VariantOutcome {
        let counts = counts.iter().map(|&(at, count)| RecordedCount {
            at: Duration::from_secs(at),
            count: PodCount::new(count),
            why: format!("{title} needs {count}"),
        });
        let service = ServiceReport {
            name: RevisionName::parse("default/service/hello").expect("a name"),
            requests: 30_000,
            answered: 29_990,
            refused: 4,
            waited_from_zero: 50,
            waited_for_growth: 7,
            wait: WaitPercentiles {
                p99: Duration::from_millis(820),
                longest: Duration::from_secs(2),
                ..WaitPercentiles::default()
            },
            pod_time: Duration::from_secs(5_400),
            idle_time: Duration::from_secs(1_350),
            changes_per_hour: 12.0,
            counts: counts.collect(),
        };
        let report = SimulationReport { services: vec![service], events: 1, fingerprint: 1 };
        VariantOutcome { title: title.to_owned(), report }
    }

    #[test]
    fn a_row_has_the_numbers_of_its_service() {
        let text = table(&[outcome("as written", &[(0, 1), (5, 8)])]);
        let row = text.lines().nth(1).expect("a row below the headings");
        let words: Vec<&str> = row.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert_eq!(
            words,
            [
                "as written",
                "default/service/hello",
                "30000",
                "4",
                "50",
                "7",
                "0 ms",
                "0 ms",
                "820 ms",
                "2.0 s",
                "1-8",
                "1.50",
                "25%",
                "12.0",
            ]
        );
    }
}
