//! What would another setting have done?
//!
//! [`simulate`] lets a load run through a made-up world and reports waits, pods and changes. The control loop
//! and the activator's end in it are the values that the programs run (`orchestration`, `scaling`,
//! `throttling`), driven by the same events; nothing of them is copied or replaced. Made up is what surrounds
//! them: clients, apps, starts of pods, and how long a message takes.
//!
//! A scenario and its seed decide everything. Time is a parameter, chance comes from streams that are the
//! same on every machine, and no file is read here: the caller reads manifests and loads.
//!
//! Left out: failures but those of pods that a scenario names ([`ScenarioFault`]), several activators and
//! owners, class hpa, and the cores that the pods of one machine share.
//!
//! In other made-up worlds there are failures, and two activators and two owners ([`WorldPlan`]): they prove
//! what the product promises, and measure nothing.

mod arrival_regularity;
mod arrivals;
mod azure_trace;
mod call_log;
mod comparison;
mod event_queue;
mod expected_requests;
mod file_arrivals;
mod fleet_load;
mod fluid;
mod link_disturbance;
mod load_file;
mod load_shape;
mod look_plan;
mod measured_load;
mod option_text;
mod ordered_way;
mod proof;
mod random;
mod rate_curve;
mod report;
mod rounding;
mod scenario;
mod scenario_fault;
mod shared_cores;
mod simulated_pod;
mod start_slowness;
mod tally;
#[cfg(test)]
mod tests;
mod time_distribution;
mod traffic;
mod wait_histogram;
mod world;
mod world_activator;
mod world_event;
mod world_owner;
mod world_platform;

use std::time::Duration;

pub use call_log::OwnerCall;
pub use comparison::{CountDifference, count_range, greatest_differences};
pub use expected_requests::FOLLOWED_REQUESTS_MAX;
pub use load_file::{ListedRequest, LoadFile, LoadFileReader, LoadLineProblem};
pub use load_shape::{LoadShape, LoadSource, ServiceLoad, ServiceLoadProblem};
pub use measured_load::MeasuredLoad;
pub use option_text::OptionProblem;
pub use proof::{
    ActivatorDefect, CommandDefect, HearingDefect, OwnerLife, PlantedDefect, ReachedState, ReachedStates,
    WorldFailure, WorldOutcome, WorldPlan, WorldTally, WorldTallyProblem, lives_of_owners, shrink, try_world,
};
pub use rate_curve::RateCurve;
pub use report::{ServiceReport, SimulationReport, WaitPercentiles};
pub use scenario::{
    LoadBeginning, Scenario, ScenarioProblem, ServiceScenario, SimulationPace, WorldDelays, new_service,
};
pub use scenario_fault::{FaultEffect, FaultyLinks, ScenarioFault};
pub use shared_cores::CoreCount;
pub use tally::RecordedCount;
pub use time_distribution::{PercentileTable, TimeDistribution};

use call_log::CallLog;
use world::World;

/// Lets the load of a scenario run to its end.
pub fn simulate(scenario: &Scenario) -> Result<SimulationReport, ScenarioProblem> {
    simulate_watched(scenario, &mut |_| {})
}

/// The same, and tells again and again how much of the load's time has passed.
pub fn simulate_watched(
    scenario: &Scenario,
    watch: &mut dyn FnMut(Duration),
) -> Result<SimulationReport, ScenarioProblem> {
    scenario.check()?;
    let mut world = World::new(scenario, CallLog::Forgotten);
    world.run(watch);
    Ok(world.report())
}

/// The same, with every call of the control loop: for records of made-up runs. All calls are in memory.
pub fn simulate_with_calls(
    scenario: &Scenario,
) -> Result<(SimulationReport, Vec<OwnerCall>), ScenarioProblem> {
    scenario.check()?;
    let mut world = World::new(scenario, CallLog::Kept(Vec::new()));
    world.run(&mut |_| {});
    let report = world.report();
    Ok((report, world.take_calls()))
}
