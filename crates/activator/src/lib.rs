//! The proxy before the pods: which pod takes this request, or how long does it wait.
//!
//! An activator knows what its owners assigned to it over their links (`assignments`), finds the revision of
//! a request by its Host or by the port on which it came, in the place of Knative's activators also by what
//! an ingress says (`place`), holds the request until a pod has a free slot (`shared_revision`), and forwards
//! it (`dataplane`). It knows no platform, and serves on with what it knows when a link is gone. What is
//! decided about requests, assignments and owners is decided by the values of `throttling`; the sockets,
//! locks, wakers and metrics are here.

mod activator;
mod agenda;
mod assignments;
mod backends;
mod caller_log;
mod config;
mod context;
mod forward;
mod forwarders;
mod held;
mod host_search;
mod internal_tls;
mod link;
mod link_certificates;
mod metering;
mod metrics;
mod outgoing;
mod pages;
mod place;
mod program;
mod quota;
mod recent_hosts;
mod replay;
mod reporting;
mod revision_ports;
mod shared_revision;
mod stack;
mod stream_refusals;
mod sync;
#[cfg(test)]
mod vectors;
mod waiting_page;
mod worker_listeners;
mod workers;

pub use activator::Activator;
pub use config::{ActivatorConfig, Limits, Listeners, TlsListener};
pub use forwarders::{Network, NetworkError, TrustedForwarders};
pub use held::{HeldRequests, Holdings};
pub use metrics::ActivatorMetrics;
pub use place::ActivatorPlace;
pub use program::main_from_env;
pub use workers::ThreadHeartbeats;
