//! The activator as its neighbours see it: real sockets, an autoscaler's end of a link, pods that do as they are told, and clients.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up ends it")]

mod hops;
mod link;
mod requests;
mod retries;
mod streams;
mod world;
