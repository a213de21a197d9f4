//! The queue-proxy over real sockets: a small app behind it, clients and an autoscaler's link before it, all
//! on loopback. Tests name the vectors of the data-plane specification that they prove.

mod adopted;
mod breaker;
mod drain;
#[path = "../../../../tests/src/queue_proxy.rs"]
mod environment;
mod frames;
mod headers;
mod health_checks;
mod knative;
mod large_heads;
mod late_timeouts;
mod linked;
mod page_places;
mod pages;
mod program;
mod protocols;
mod strict;
mod timeouts;
mod world;
