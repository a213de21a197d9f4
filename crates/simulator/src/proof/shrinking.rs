//! Which part of a world that fails is needed for its failure?
//!
//! Faults are dropped in ever smaller groups, then Services, then the drift of clocks, as long as the same
//! check fails. What is left is not the least world, but one in which little happens.

use super::drifting_clock::EntityDrifts;
use super::fault::PlannedFault;
use super::plan::WorldPlan;
use super::planted_defect::PlantedDefect;
use super::trial::try_world;
use crate::world_event::ServiceNumber;

/// So many smaller worlds are tried at most.
const ATTEMPTS_MAX: u32 = 400;

/// A world as small as can be found in which the check fails that fails in the given one. A world in which
/// none fails is given back as it is.
pub fn shrink(plan: &WorldPlan, defect: Option<PlantedDefect>) -> WorldPlan {
    let Some(failure) = try_world(plan, defect).failure else { return plan.clone() };
    let mut search = Search { check: failure.check, defect, attempts: 0, smallest: plan.clone() };
    search.drop_faults();
    search.drop_services();
    search.drop_faults();
    let calm_clocks = WorldPlan { drifts: EntityDrifts::NONE, ..search.smallest.clone() };
    search.attempt(calm_clocks);
    search.smallest
}

struct Search {
    check: &'static str,
    defect: Option<PlantedDefect>,
    attempts: u32,
    smallest: WorldPlan,
}

/// Whether a smaller world fails as the greater one did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShrinkAttempt {
    Fails,
    Passes,
}

impl Search {
    fn attempt(&mut self, plan: WorldPlan) -> ShrinkAttempt {
        if self.attempts == ATTEMPTS_MAX {
            return ShrinkAttempt::Passes;
        }
        self.attempts += 1;
        let failure = try_world(&plan, self.defect).failure;
        if failure.is_none_or(|failure| failure.check != self.check) {
            return ShrinkAttempt::Passes;
        }
        self.smallest = plan;
        ShrinkAttempt::Fails
    }

    fn drop_faults(&mut self) {
        let mut size = self.smallest.faults.len();
        while size > 0 {
            let mut from = 0;
            while from < self.smallest.faults.len() {
                let faults = without_range(&self.smallest.faults, from, size);
                let smaller = WorldPlan { faults, ..self.smallest.clone() };
                if self.attempt(smaller) == ShrinkAttempt::Passes {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    fn drop_services(&mut self) {
        let mut place = self.smallest.revisions.len();
        while place > 0 {
            place -= 1;
            if self.smallest.revisions.len() > 1 {
                let smaller = self.smallest.without_service(ServiceNumber(place));
                self.attempt(smaller);
            }
        }
    }
}

fn without_range(faults: &[PlannedFault], from: usize, size: usize) -> Vec<PlannedFault> {
    let until = (from + size).min(faults.len());
    faults[..from].iter().chain(&faults[until..]).copied().collect()
}
