//! How many pods does a revision need, and why?
//!
//! A question about numbers and time. [`Multiscaler`] takes facts in ([`Event`]) and gives orders out ([`Command`]); it opens no
//! socket, reads no clock and draws no random number, so the autoscaler, the simulator and the tests all drive the same value.

pub mod config;
mod decision;
mod multiscaler;
#[cfg(test)]
mod vectors;

pub use config::{Aggregation, Checked, ClusterConfig, Metric, Problem, RevisionSettings, ScalingSpec};
pub use decision::{Decision, Inputs, Mode, Reason, Stage, Trigger};
pub use multiscaler::{Command, Event, Multiscaler, PodFact, PodPhase, Reporter, RevisionStatus};
