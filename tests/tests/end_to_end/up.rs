//! `ebb up` as its users see it: real processes, real requests, every one of them accounted for.

mod bad_input;
mod busy_machine;
mod containers;
mod descriptors;
mod faults;
mod files;
mod head_sizes;
mod health_checks;
mod hpa;
mod lifecycle;
mod logs;
mod main_job;
mod metrics;
mod no_lost_request;
mod one_count;
mod open_streams;
mod owners;
mod request_log;
mod resources;
mod service;
mod slots;
mod system_vectors;
mod take_over;
mod takers;
mod tls;
mod traces;
