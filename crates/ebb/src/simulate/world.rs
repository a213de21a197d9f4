//! `ebb simulate --world random`: a world in which things go wrong, once more.

use std::process::ExitCode;

use simulator::{WorldOutcome, WorldPlan, shrink, try_world};

use crate::output;

/// Prints what came of the world of a seed. Exit code 1 if a check failed in it.
pub(super) fn run(seed: u64) -> anyhow::Result<ExitCode> {
    let plan = WorldPlan::of_seed(seed);
    let outcome = try_world(&plan, None);
    output::print_shown(&summary(&plan, &outcome))?;
    let Some(failure) = &outcome.failure else { return Ok(ExitCode::SUCCESS) };
    output::print_shown(&format!("ebb {}\n{failure}", env!("CARGO_PKG_VERSION")))?;
    let smaller = shrink(&plan, None);
    if let Some(failure) = try_world(&smaller, None).failure {
        let services = smaller.services();
        output::print_shown(&format!("a smaller world with {services} Services fails alike:\n{failure}"))?;
    }
    Ok(ExitCode::from(1))
}

fn summary(plan: &WorldPlan, outcome: &WorldOutcome) -> String {
    let verdict = if outcome.failure.is_some() { "a check failed" } else { "every check held" };
    let minutes = plan.length().as_secs() / 60;
    format!(
        "seed {}: {} Services, {} faults, {minutes} minutes, {} requests, {:.1} pods on average; {verdict}",
        plan.seed(),
        plan.services(),
        plan.faults(),
        outcome.requests,
        outcome.pod_time.as_secs_f64() / plan.length().as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_a_world_has_its_seed_and_its_numbers() {
        let plan = WorldPlan::of_seed(5);
        let outcome = try_world(&plan, None);
        let text = summary(&plan, &outcome);
        assert!(text.starts_with(&format!("seed 5: {} Services, ", plan.services())), "{text}");
        assert!(text.ends_with("every check held"), "{text}");
    }
}
