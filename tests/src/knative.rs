//! Stand-ins of Knative's programs, for the suite in which ebb's autoscaler takes the place of Knative's.
//!
//! They are written from the contract of an installed Knative Serving, whose sentences the table in
//! `tests/cluster/knative/README.md` names, and share no code with the product: the two are held against each
//! other. One program, `knative-stand-in`, plays each of them by its first argument.
//!
//! ```text
//!   objects of the cluster ─► [`controller`] ─► objects, as Knative's controller makes them
//!                              decisions are a function of the objects; the shell watches and writes
//!   requests ─► [`ingress`] ─► [`activator`] ─► [`queue_proxy`] ─► app        loads ─► ebb's autoscaler
//! ```

pub mod activator;
pub mod controller;
mod forwarding;
mod h2c_connections;
pub mod ingress;
mod keys;
mod kind_watch;
mod load_meter;
#[cfg(test)]
mod manifests;
mod objects;
pub mod queue_proxy;
mod request_gate;
mod revision_spec;
mod revision_throttler;
mod stat_bytes;
mod subset;
mod upgrades;

pub use objects::PlayedKind;
