//! Does the product keep its promises in worlds in which things go wrong?
//!
//! [`WorldPlan::of_seed`] makes a world from a number: Services, loads, and faults of processes, links, the
//! platform and clocks. [`try_world`] lets it run, with the control loop and the activator's end as they are,
//! and looks at every request and every command. What a world must keep is written in `checks`, apart from
//! the world. The same number makes the same world, event for event, on every machine.
//!
//! Each world is quiet at its end. It must come to rest there as its twin does, a short world with the same
//! Services and the same steady load in which nothing goes wrong.
//!
//! ```text
//!   seed ──► plan ──► world ──► checks ──► failure ──► smaller plan
//!                      ▲  │
//!          defect ─────┘  └──► states that were reached
//! ```
//!
//! That the checks see errors is shown by defects that are planted around the core ([`PlantedDefect`]).

mod activator_core;
mod bucket_leases;
mod check_failure;
mod checks;
mod command_defect;
mod drifting_clock;
mod fault;
mod fault_drawing;
mod hearing_defect;
mod owner_core;
mod plan;
mod planted_defect;
mod reached_state;
mod revision_plan;
mod shrinking;
#[cfg(test)]
mod tests;
mod trial;
mod trial_event;
mod trial_parts;
mod trial_traffic;
mod trial_world;
mod world_tally;

pub use plan::WorldPlan;
pub use planted_defect::{ActivatorDefect, CommandDefect, HearingDefect, PlantedDefect};
pub use reached_state::{ReachedState, ReachedStates};
pub use shrinking::shrink;
pub use trial::{WorldFailure, WorldOutcome, lives_of_owners, try_world};
pub use trial_world::OwnerLife;
pub use world_tally::{WorldTally, WorldTallyProblem};
