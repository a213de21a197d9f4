//! ebb on a real Kubernetes, every request accounted for: `tests/cluster/run`.
//!
//! The cluster is up, and has ebb in it, before these begin. Each has a namespace of its own, so they run side by side.

mod comparison;
mod owners;
mod ports;
mod story;
