//! What the benchmark programs share: taking turns in rounds, reading clocks and memory of processes, load
//! generators, and a report that says how much of a difference is noise.
//!
//! Machines are noisy, so nothing is measured alone. In each round every contestant has its turn, in another
//! order each time; what is compared is the ratio (or difference) within a round, and what is reported is the
//! median over the rounds with its extremes. One contestant takes part twice: how far it differs from itself
//! is what a difference to another must exceed to mean anything.
//!
//! These programs read clocks (`clock.rs`), as no other part of the project does: time is what they measure.

pub mod api;
pub mod callgrind;
pub mod clock;
pub mod closed_loop;
pub mod executables;
pub mod executions;
pub mod guard;
pub mod h2load;
pub mod machine;
pub mod memory_group;
pub mod options;
pub mod plot;
pub mod process;
pub mod promises;
pub mod proxies;
pub mod report;
pub mod statistics;
pub mod up;
pub mod wrk;

pub use options::Options;
pub use report::{Goal, Report, Table, no_dearer_than_before};
pub use statistics::{Samples, rotated};
