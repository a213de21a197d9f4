//! The harness of the suites that run the real executable: starting `ebb up` on made-up manifests, asking it
//! questions, an open-loop client that accounts for every request, and patience with a deadline instead of
//! sleeps.

mod api;
pub mod bench;
pub mod browser;
pub mod client;
pub mod cluster;
pub mod ebb;
pub mod grip;
pub mod hop_by_hop;
pub mod http2;
pub mod knative;
pub mod manifest;
pub mod podman;
pub mod ports;
pub mod prometheus;
mod queue_proxy;
pub mod relay;
pub mod slots;
pub mod strict;
pub mod traces;
pub mod wait;
pub mod world;

pub use client::{BackgroundLoad, Load, Tally};
pub use ebb::{Ebb, Revision};
pub use manifest::{ConfigMap, Service};
pub use wait::{asked_until, eventually};
