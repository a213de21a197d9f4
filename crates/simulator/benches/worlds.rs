//! Made-up worlds until so many hours have passed in them:
//!
//! ```text
//! cargo bench -p simulator --bench worlds -- --hours 1000000 --from 1
//! ```
//!
//! Each seed from the first on makes one world. A check that fails ends the run with the seed, the commit,
//! the time, the last events, and a smaller world that fails alike. So does a state that no world has
//! reached, if the run was long enough to reach it.

#[path = "shared/arguments.rs"]
mod arguments;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use arguments::number_after;
use simulator::{ReachedStates, WorldFailure, WorldPlan, shrink, try_world};

/// A shorter run need not reach every state.
const HOURS_FOR_EVERY_STATE: f64 = 1_000.0;
/// After so many worlds the run says how far it is.
const WORLDS_PER_LINE: u64 = 1_000;

fn main() -> ExitCode {
    let hours: f64 = number_after("--hours").unwrap_or(100.0);
    let mut seed: u64 = number_after("--from").unwrap_or(1);
    let mut run = WorldRun::default();
    while run.hours() < hours {
        if let Some(failure) = run.try_seed(seed) {
            tell(&failure, seed);
            return ExitCode::FAILURE;
        }
        seed += 1;
        if run.worlds.is_multiple_of(WORLDS_PER_LINE) {
            println!("{}", run.line());
        }
    }
    println!("{}\n{}", run.line(), run.reached);
    let missing = run.reached.missing();
    if hours >= HOURS_FOR_EVERY_STATE && !missing.is_empty() {
        println!("no world has reached {missing:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn tell(failure: &WorldFailure, seed: u64) {
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("commit {}", commit.unwrap_or_else(|_| "unknown".to_owned()));
    println!("{failure}");
    let smaller = shrink(&WorldPlan::of_seed(seed), None);
    if let Some(failure) = try_world(&smaller, None).failure {
        println!("a smaller world, with {} Services:\n{failure}", smaller.services());
    }
}

/// Worlds that have run, and what happened in them.
struct WorldRun {
    began: Instant,
    worlds: u64,
    simulated: Duration,
    pod_time: Duration,
    requests: u64,
    faults: u64,
    /// A hash over all worlds, the same for the same seeds.
    hash: u64,
    reached: ReachedStates,
}

impl Default for WorldRun {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures how long worlds take")]
    fn default() -> Self {
        Self {
            began: Instant::now(),
            worlds: 0,
            simulated: Duration::ZERO,
            pod_time: Duration::ZERO,
            requests: 0,
            faults: 0,
            hash: 0,
            reached: ReachedStates::default(),
        }
    }
}

impl WorldRun {
    fn try_seed(&mut self, seed: u64) -> Option<WorldFailure> {
        let plan = WorldPlan::of_seed(seed);
        let outcome = try_world(&plan, None);
        self.worlds += 1;
        self.simulated += outcome.simulated;
        self.pod_time += outcome.pod_time;
        self.requests += outcome.requests;
        self.faults += u64::try_from(plan.faults()).unwrap_or(u64::MAX);
        self.hash = self.hash.rotate_left(7) ^ outcome.hash;
        self.reached.add(&outcome.reached);
        outcome.failure
    }

    fn hours(&self) -> f64 {
        self.simulated.as_secs_f64() / 3_600.0
    }

    fn line(&self) -> String {
        let (hours, took) = (self.hours(), self.began.elapsed().as_secs_f64());
        format!(
            "{} worlds, {hours:.0} hours in {took:.0} s ({:.0} hours per CPU hour); in an hour {:.1} pods, \
             {:.0} requests, {:.1} faults; hash {:016x}",
            self.worlds,
            hours / took * 3_600.0,
            self.pod_time.as_secs_f64() / self.simulated.as_secs_f64(),
            real(self.requests) / hours,
            real(self.faults) / hours,
            self.hash,
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is printed with three digits")]
fn real(count: u64) -> f64 {
    count as f64
}
