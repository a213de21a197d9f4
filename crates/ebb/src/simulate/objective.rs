//! Which of the settings that were simulated is the cheapest with short enough waits?
//!
//! A setting meets an objective if every Service does. A request that was refused had no wait that would be
//! short enough: where more are refused than an objective leaves out, it is missed.

use std::time::Duration;

use simulator::ServiceReport;

use super::outcome::{VariantOutcome, wait_text};
use crate::cli::{WaitObjective, WaitQuantile};

/// What came of an objective.
pub(super) struct ObjectiveVerdict {
    /// The answer in one sentence.
    pub(super) text: String,
    /// How tables call the cheapest variant that meets the objective, if one does.
    pub(super) cheapest: Option<String>,
}

/// The numbers of a variant that an objective goes by.
struct MeasuredVariant<'o> {
    title: &'o str,
    /// The longest wait of all Services; `None` where too many requests were refused.
    wait: Option<Duration>,
    pod_hours: f64,
}

/// Judges all variants by an objective.
pub(super) fn judge(objective: &WaitObjective, outcomes: &[VariantOutcome]) -> ObjectiveVerdict {
    let variants: Vec<MeasuredVariant<'_>> =
        outcomes.iter().map(|outcome| measured(outcome, objective.quantile)).collect();
    let met = variants.iter().filter_map(|variant| {
        let wait = variant.wait.filter(|wait| *wait < objective.limit)?;
        Some((variant, wait))
    });
    let cheapest = met.min_by(|(one, _), (other, _)| one.pod_hours.total_cmp(&other.pod_hours));
    let answer = match cheapest {
        Some((variant, wait)) => format!(
            "the cheapest setting that meets it is {}, with a wait of {} and {:.2} pod-hours",
            variant.title,
            wait_text(wait),
            variant.pod_hours
        ),
        None => missed(objective, &variants),
    };
    ObjectiveVerdict {
        text: format!("objective {}: {answer}", objective.text),
        cheapest: cheapest.map(|(variant, _)| variant.title.to_owned()),
    }
}

fn missed(objective: &WaitObjective, variants: &[MeasuredVariant<'_>]) -> String {
    let served = variants.iter().filter_map(|variant| Some((variant.wait?, variant.title)));
    match served.min_by_key(|(wait, _)| *wait) {
        Some((wait, title)) => format!(
            "no setting meets it; {title} comes nearest, with a wait of {}, which is {} too long",
            wait_text(wait),
            wait_text(wait.saturating_sub(objective.limit))
        ),
        None => "no setting meets it: each refuses too many requests".to_owned(),
    }
}

fn measured(outcome: &VariantOutcome, quantile: WaitQuantile) -> MeasuredVariant<'_> {
    let services = &outcome.report.services;
    let waits: Option<Vec<Duration>> = services.iter().map(|service| wait_of(service, quantile)).collect();
    MeasuredVariant {
        title: &outcome.title,
        wait: waits.map(|waits| waits.into_iter().max().unwrap_or_default()),
        pod_hours: services.iter().map(ServiceReport::pod_hours).sum(),
    }
}

/// The wait that the objective is about; `None` if more requests were refused than it leaves out.
fn wait_of(service: &ServiceReport, quantile: WaitQuantile) -> Option<Duration> {
    let (wait, left_out_of_thousand) = match quantile {
        WaitQuantile::P50 => (service.wait.p50, 500),
        WaitQuantile::P95 => (service.wait.p95, 50),
        WaitQuantile::P99 => (service.wait.p99, 10),
        WaitQuantile::All => (service.wait.longest, 0),
    };
    let ended = service.answered.saturating_add(service.refused);
    let is_served = service.refused.saturating_mul(1_000) <= ended.saturating_mul(left_out_of_thousand);
    is_served.then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;

    /// A variant with one Service: its wait at the 99th percentile, its pod-hours, and its refusals.
    fn variant(title: &str, p99: u64, pod_hours: u64, refused: u64) -> VariantOutcome {
        let mut variant = outcome(title, &[(0, 1)]);
        let service = &mut variant.report.services[0];
        service.wait.p99 = Duration::from_millis(p99);
        service.pod_time = Duration::from_secs(3_600 * pod_hours);
        (service.answered, service.refused) = (30_000 - refused, refused);
        variant
    }

    #[test]
    fn the_cheapest_that_meets_it_is_named_or_how_much_is_missing() {
        let objective = |text: &str, quantile| WaitObjective {
            text: text.to_owned(),
            quantile,
            limit: Duration::from_millis(200),
        };
        let p99 = objective("p99 wait < 200ms", WaitQuantile::P99);
        let (slow, dear, cheap) =
            (variant("slow", 240, 1, 0), variant("dear", 10, 9, 0), variant("cheap", 150, 4, 300));
        let verdict = judge(&p99, &[slow, dear, cheap]);
        assert_eq!(verdict.cheapest.as_deref(), Some("cheap"), "one of a hundred may be refused");
        assert_eq!(
            verdict.text,
            "objective p99 wait < 200ms: the cheapest setting that meets it is cheap, with a wait of 150 ms and 4.00 pod-hours"
        );
        let verdict = judge(&p99, &[variant("slow", 240, 1, 0), variant("refusing", 10, 1, 301)]);
        assert_eq!(verdict.cheapest, None);
        assert_eq!(
            verdict.text,
            "objective p99 wait < 200ms: no setting meets it; slow comes nearest, with a wait of 240 ms, which is 40 ms too long"
        );
        let verdict =
            judge(&objective("max wait < 200ms", WaitQuantile::All), &[variant("refusing", 10, 1, 1)]);
        assert!(
            verdict.text.ends_with("no setting meets it: each refuses too many requests"),
            "{}",
            verdict.text
        );
    }
}
