//! ebb on a real Kubernetes, every request accounted for: `tests/cluster/run`.
//!
//! The cluster is up, and has ebb in it, before these begin. Each has a namespace of its own, so they run
//! side by side, but for those that leave the cluster without a decider for a while (`failover`).

mod adopted_connections;
mod commands;
mod comparison;
mod crash_loop;
mod dashboard;
mod documents;
mod failover;
mod faults;
mod handover;
mod health_checks;
mod hooks;
mod hpa;
mod idle_first;
mod kinds;
mod metrics_adapter;
mod metrics_apis;
mod metrics_server;
mod newcomers;
mod one_count;
mod owners;
mod plain_ports;
mod pod_monitors;
mod ports;
mod probes;
mod protocols;
mod refusals;
mod rollouts;
mod story;
mod trust;
mod webhook;
