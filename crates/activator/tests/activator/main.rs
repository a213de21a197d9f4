//! The activator as its neighbours see it: real sockets, autoscalers' ends of its links, pods that do as they
//! are told, and clients.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up ends it")]

mod health_checks;
mod hops;
mod knative;
mod link;
mod owners;
mod ports;
mod requests;
mod retiring;
mod retries;
mod streams;
mod waiting_page;
mod world;
