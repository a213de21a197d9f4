//! Made-up worlds until so many hours have passed in them:
//!
//! ```text
//! cargo bench -p simulator --bench worlds -- --hours 1000000 --from 1 --resume FILE
//! ```
//!
//! Each seed from the first on makes one world. A check that fails ends the run with the seed, the commit,
//! the time, the last events, and a smaller world that fails alike. So does a state that no world has
//! reached, if the run was long enough to reach it.
//!
//! A million hours take about a day of one core. With `--resume` the run keeps in the file how far it is, and
//! the same command goes on there, however it was ended. The file is of one commit.

#[path = "shared/arguments.rs"]
mod arguments;
#[path = "shared/cpu_seconds.rs"]
mod cpu_seconds;
#[path = "shared/figures.rs"]
mod figures;
#[path = "worlds/progress.rs"]
mod progress;

use std::process::{Command, ExitCode};

use arguments::number_after;
use progress::WorldProgress;
use simulator::{WorldFailure, WorldPlan, shrink, try_world};

/// A shorter run need not reach every state.
const HOURS_FOR_EVERY_STATE: f64 = 1_000.0;
/// After so many worlds the run writes down how far it is: some seconds of work are lost at most.
const WORLDS_PER_NOTE: u64 = 100;
/// After so many worlds the run says how far it is.
const WORLDS_PER_LINE: u64 = 1_000;

fn main() -> ExitCode {
    let hours: f64 = number_after("--hours").unwrap_or(100.0);
    let first_seed: u64 = number_after("--from").unwrap_or(1);
    let commit = commit();
    let file: Option<String> = number_after("--resume");
    let mut progress = match WorldProgress::begin(file.map(Into::into), &commit, first_seed) {
        Ok(progress) => progress,
        Err(problem) => {
            eprintln!("--resume {problem}");
            return ExitCode::from(2);
        }
    };
    while progress.tally.hours() < hours {
        if let Some(failure) = progress.tally.try_next() {
            progress.note();
            tell(&failure, progress.tally.next_seed, &commit);
            return ExitCode::FAILURE;
        }
        if progress.tally.worlds.is_multiple_of(WORLDS_PER_NOTE) {
            progress.note();
        }
        if progress.tally.worlds.is_multiple_of(WORLDS_PER_LINE) {
            println!("{}", progress.line());
        }
    }
    progress.note();
    println!("{}\n{}", progress.line(), progress.tally.reached);
    if hours < HOURS_FOR_EVERY_STATE {
        return ExitCode::SUCCESS;
    }
    // How fast the machine is decides nothing about the laws, so a goal that is missed ends no run.
    figures::keep("simulator", "worlds", &progress.figures());
    let missing = progress.tally.reached.missing();
    if !missing.is_empty() {
        println!("no world has reached {missing:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn commit() -> String {
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().ok();
    let commit = commit.filter(|output| output.status.success());
    commit.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

fn tell(failure: &WorldFailure, seed: u64, commit: &str) {
    println!("commit {commit}\n{failure}");
    let smaller = shrink(&WorldPlan::of_seed(seed), None);
    if let Some(failure) = try_world(&smaller, None).failure {
        println!("a smaller world, with {} Services:\n{failure}", smaller.services());
    }
}
