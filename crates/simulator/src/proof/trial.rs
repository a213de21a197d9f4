//! One world and its twin, from their plan to what came of them.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use vocabulary::PodCount;

use super::plan::WorldPlan;
use super::planted_defect::PlantedDefect;
use super::reached_state::ReachedStates;
use super::trial_world::{BEGAN, EventTrace, OwnerLife, TrialSetup, TrialWorld};
use crate::call_log::CallLog;

/// What came of one world.
#[derive(Clone, Debug)]
pub struct WorldOutcome {
    /// The time that has passed in the world and its twin.
    pub simulated: Duration,
    /// The requests that came in the world.
    pub requests: u64,
    /// The time of all pods of the world together.
    pub pod_time: Duration,
    /// A hash of everything that happened in the world.
    pub hash: u64,
    /// The states that the world has reached.
    pub reached: ReachedStates,
    /// The first check that failed, if one did.
    pub failure: Option<WorldFailure>,
}

/// A check that failed, and what happened before.
#[derive(Clone, Debug)]
pub struct WorldFailure {
    /// The seed of the world.
    pub seed: u64,
    /// The sentence that does not hold.
    pub check: &'static str,
    /// What was found instead of it.
    pub found: String,
    /// The time since the world began.
    pub at: Duration,
    /// Whether it failed in the twin, in which nothing goes wrong.
    pub is_of_twin: bool,
    /// The faults of the world, one line each.
    pub faults: Vec<String>,
    /// The last events, oldest first, one line each.
    pub last_events: Vec<String>,
}

/// Lets a world run, with a defect around the core if one is planted.
pub fn try_world(plan: &WorldPlan, defect: Option<PlantedDefect>) -> WorldOutcome {
    let twin = plan.twin();
    let calm = run(&twin, None, None);
    if calm.failure.is_some() {
        let failure = calm.failure.map(|failure| WorldFailure { is_of_twin: true, ..failure });
        return WorldOutcome { failure, ..calm.outcome };
    }
    let troubled = run(plan, defect, Some(calm.counts));
    WorldOutcome {
        simulated: troubled.outcome.simulated + calm.outcome.simulated,
        failure: troubled.failure,
        ..troubled.outcome
    }
}

/// Lets a world run and gives what each owner was told in each of its lives, for records of them: those of an
/// owner in the order in which they were. All calls are in memory.
pub fn lives_of_owners(plan: &WorldPlan) -> Vec<OwnerLife> {
    let (trace, calls) = (EventTrace::Off, CallLog::Kept(Vec::new()));
    let mut world = TrialWorld::new(TrialSetup { plan, defect: None, expected: None, trace, calls });
    world.run();
    world.take_lives()
}

/// A world that has run, with the counts of its end.
struct RunWorld {
    outcome: WorldOutcome,
    failure: Option<WorldFailure>,
    counts: Vec<PodCount>,
}

fn run(plan: &WorldPlan, defect: Option<PlantedDefect>, expected: Option<Vec<PodCount>>) -> RunWorld {
    let setup = TrialSetup { plan, defect, expected, trace: EventTrace::Off, calls: CallLog::Forgotten };
    let mut world = TrialWorld::new(setup.clone());
    world.run();
    let failure = world.checks.failure().is_some().then(|| failure_of(setup));
    let outcome = WorldOutcome {
        simulated: world.now().saturating_since(BEGAN),
        requests: world.tally.requests,
        pod_time: Duration::from_secs(world.tally.pod_seconds),
        hash: world.hash,
        reached: world.checks.reached.clone(),
        failure: None,
    };
    RunWorld { outcome, failure, counts: world.counts() }
}

/// The same world once more, with its last events written down: writing costs more than happening.
fn failure_of(setup: TrialSetup<'_>) -> WorldFailure {
    let plan = setup.plan;
    let mut world = TrialWorld::new(TrialSetup { trace: EventTrace::On(VecDeque::new()), ..setup });
    world.run();
    let last_events = match &world.trace {
        EventTrace::On(lines) => lines.iter().cloned().collect(),
        EventTrace::Off => Vec::new(),
    };
    let failure = world.checks.failure().cloned();
    let failure = failure.expect("a world fails whenever it has failed once");
    WorldFailure {
        seed: plan.seed,
        check: failure.check,
        found: failure.text,
        at: world.now().saturating_since(BEGAN),
        is_of_twin: false,
        faults: plan.faults.iter().map(|planned| format!("{planned:?}")).collect(),
        last_events,
    }
}

/// All that a person needs to look for the error; the caller names the commit.
impl fmt::Display for WorldFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_of_twin { "the twin without faults" } else { "the world" };
        writeln!(to, "seed {}, {:.6} s after {place} began", self.seed, self.at.as_secs_f64())?;
        writeln!(to, "does not hold: {}", self.check)?;
        writeln!(to, "found: {}", self.found)?;
        writeln!(to, "repeat: ebb simulate --world random --seed {}", self.seed)?;
        writeln!(to, "faults:")?;
        for fault in &self.faults {
            writeln!(to, "  {fault}")?;
        }
        writeln!(to, "last events:")?;
        for event in &self.last_events {
            writeln!(to, "  {event}")?;
        }
        Ok(())
    }
}
