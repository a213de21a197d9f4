//! Which pods should there be, and which are there?
//!
//! One task owns all state (`event_loop.rs`). It feeds a [`fleet::Fleet`], which decides, with orders, edits
//! of the files and the news of pods' processes; it carries out the actions that come back, and sends
//! autoscalers what changed. Callers leave their orders in an inbox (`order_inbox.rs`), where the latest
//! about a subject wins, so no caller ever waits for this task.

mod causes;
mod certified_hosts;
mod cores;
mod edits;
mod event_loop;
mod failure;
mod first_facts;
mod fleet;
mod handover;
mod identities;
mod image_engine;
mod image_keeper;
mod image_pulls;
mod leases;
mod limits;
mod local_platform;
mod logs;
mod order_inbox;
mod outbox;
mod pod;
mod pods_usage;
mod process;
mod process_control;
mod queue_proxy_settings;
mod restarts;
mod rolled_back;
mod start_progress;
mod start_usage;
mod starts;
mod subscribers;
mod supervised_revision;

#[cfg(test)]
mod tests;

pub use certified_hosts::CertifiedHosts;
pub use first_facts::first_facts;
pub use handover::{Handover, HandoverDecision};
pub use local_platform::{LocalConfig, LocalPlatform};
pub use logs::{LogLine, LogOptions, LogQuery, LogStore, LogStream};
pub use order_inbox::{Deletion, RolloutAnswer};
