//! What do pods before demand bring, and what do they cost, on the demand of real systems?
//!
//! ```text
//! EBB_TRACES=FOLDER cargo bench -p simulator --bench foresight     # every series; stops and goes on row by row
//! cargo bench -p simulator --bench foresight -- --quick            # three series of eleven days
//! ```
//!
//! *Warm*: a revision that never rests. Class kpa and class ahpa run in the simulator by whole seconds, with
//! the real control loop; what other ways to foresee would have asked for is added to the count of class kpa,
//! as class ahpa does it, so that all differ in nothing but their floors. *Sparse*: one that rests. *Late* is
//! demand beyond the total of the ready pods, in request-seconds; a pod is ready once it was asked for
//! throughout its start-up.
//!
//! Without `EBB_TRACES` series of the same shapes are generated, and the tables say so. The rows that were
//! found are kept in a file beside the program, and hold until the program changes.

mod contestant;
#[path = "../shared/figures.rs"]
mod figures;
mod foreseen;
mod generated;
mod goals;
mod quantile;
mod ready_pods;
mod rows;
mod rule_choice;
mod series;
mod simulated;
mod sparse;
mod sparse_load;
#[path = "../shared/split_mix.rs"]
mod split_mix;
mod traces;
mod warm;
mod warm_table;

use std::process::ExitCode;

use rows::RowFile;
use traces::TraceFolder;

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let traces = TraceFolder::of_environment();
    println!("{}", traces.origin());
    let mut rows = RowFile::beside_program(&traces.origin(), is_quick);
    let length = if is_quick { warm::Length::Quick } else { warm::Length::Whole };
    let mut are_met = warm::run(&traces, length, &mut rows);
    if !is_quick {
        are_met &= sparse::run(&traces, &mut rows);
    }
    if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
