//! All numbers of a simulation as JSON, for programs. docs/tasks/simulate.md describes them.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use simulator::ServiceReport;

use super::objective::ObjectiveVerdict;
use super::outcome::VariantOutcome;
use crate::cli::SimulateOptions;

/// What is written. Times are seconds.
#[derive(Debug, Serialize)]
pub(super) struct SimulationDocument<'o> {
    seed: u64,
    length: f64,
    variants: Vec<VariantDocument<'o>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<ObjectiveDocument<'o>>,
}

#[derive(Debug, Serialize)]
struct VariantDocument<'o> {
    title: &'o str,
    services: Vec<ServiceDocument<'o>>,
}

#[derive(Debug, Serialize)]
struct ServiceDocument<'o> {
    name: &'o str,
    requests: u64,
    answered: u64,
    refused: u64,
    waited_from_zero: u64,
    waited_for_growth: u64,
    wait: WaitDocument,
    pod_hours: f64,
    share_idle: f64,
    changes_per_hour: f64,
    counts: Vec<CountDocument<'o>>,
}

#[derive(Debug, Serialize)]
struct WaitDocument {
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
    mean: f64,
}

#[derive(Debug, Serialize)]
struct CountDocument<'o> {
    at: f64,
    pods: u32,
    why: &'o str,
}

#[derive(Debug, Serialize)]
struct ObjectiveDocument<'o> {
    text: &'o str,
    cheapest: Option<&'o str>,
    answer: &'o str,
}

impl<'o> SimulationDocument<'o> {
    pub(super) fn new(
        options: &'o SimulateOptions,
        outcomes: &'o [VariantOutcome],
        length: Duration,
        verdict: Option<&'o ObjectiveVerdict>,
    ) -> Self {
        let objective =
            options.objective.as_ref().zip(verdict).map(|(objective, verdict)| ObjectiveDocument {
                text: &objective.text,
                cheapest: verdict.cheapest.as_deref(),
                answer: &verdict.text,
            });
        let length = length.as_secs_f64();
        Self { seed: options.seed, length, variants: outcomes.iter().map(variant).collect(), objective }
    }

    /// Writes a file that takes the place of one of that name.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
    }
}

fn variant(outcome: &VariantOutcome) -> VariantDocument<'_> {
    let services = outcome.report.services.iter().map(service).collect();
    VariantDocument { title: &outcome.title, services }
}

fn service(report: &ServiceReport) -> ServiceDocument<'_> {
    let seconds = |span: Duration| span.as_secs_f64();
    let counts = report.counts.iter().map(|recorded| CountDocument {
        at: seconds(recorded.at),
        pods: recorded.count.value(),
        why: &recorded.why,
    });
    ServiceDocument {
        name: report.name.as_str(),
        requests: report.requests,
        answered: report.answered,
        refused: report.refused,
        waited_from_zero: report.waited_from_zero,
        waited_for_growth: report.waited_for_growth,
        wait: WaitDocument {
            p50: seconds(report.wait.p50),
            p95: seconds(report.wait.p95),
            p99: seconds(report.wait.p99),
            max: seconds(report.wait.longest),
            mean: seconds(report.wait.mean),
        },
        pod_hours: report.pod_hours(),
        share_idle: report.share_idle(),
        changes_per_hour: report.changes_per_hour,
        counts: counts.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;

    #[test]
    fn a_variant_has_every_number_by_its_name() {
        let outcome = outcome("as written", &[(0, 1), (60, 8)]);
        let document = serde_json::to_value(variant(&outcome)).expect("numbers and texts");
        assert_eq!(document["title"], "as written");
        let service = &document["services"][0];
        assert_eq!(service["name"], "default/service/hello");
        assert_eq!(service["requests"], 30_000);
        assert_eq!(service["refused"], 4);
        assert_eq!(service["wait"]["p99"], 0.82);
        assert_eq!(service["wait"]["max"], 2.0);
        assert_eq!(service["pod_hours"], 1.5);
        assert_eq!(service["share_idle"], 0.25);
        assert_eq!(service["counts"][1]["pods"], 8);
        assert_eq!(service["counts"][1]["at"], 60.0);
        assert_eq!(service["counts"][1]["why"], "as written needs 8");
    }
}
