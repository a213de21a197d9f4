//! What every process needs, whatever it does: a clock, random numbers, logs, metrics, trusted hosts,
//! signals, listening sockets, the cluster's domain, places for pages' connections, and waits between
//! attempts. It speaks no HTTP: the proxies have a stack of their own, which counts microseconds, and the
//! others `hyper` and `axum`.
//!
//! Pure crates take time and random numbers as parameters; this crate is where those parameters come from.

mod browsers;
mod clock;
mod cluster_domain;
mod descriptors;
mod environment;
mod error_chain;
mod hangups;
mod histogram;
mod listen;
mod logs;
mod memory;
mod metrics;
mod mounted_certificates;
mod mounted_settings;
mod observability;
mod pages;
mod percent;
mod program;
mod random;
mod request_log;
mod signals;
mod socket_table;
mod traces;
mod vital;

pub use browsers::{ForeignRequest, TrustedHost, TrustedHosts};
pub use clock::{Clock, wall_time};
pub use cluster_domain::cluster_domain;
pub use descriptors::{DescriptorLimit, descriptor_limit, raise_descriptor_limit, set_descriptor_limit};
pub use environment::{Environment, EnvironmentReader};
pub use error_chain::ErrorChain;
pub use hangups::{Hangup, Hangups};
pub use histogram::{DurationHistogram, REQUEST_DURATION_BOUNDS};
pub use listen::{is_of_one_connection, listen};
pub use logs::{
    Colours, LogFormat, check_log_filter, error_format, print_error, print_errors_as, print_warning,
    start_logs, timestamp,
};
pub use memory::{memory_headroom, memory_limit};
pub use metrics::{MetricsFormat, MetricsListing, MetricsRegistry, RevisionLabels, reference_faults};
pub use mounted_certificates::MountedCertificates;
pub use mounted_settings::MountedSettings;
pub use observability::config_map::{
    OBSERVABILITY_CONFIG_MAP, OLDER_TRACING_CONFIG_MAP, instead_of_older_tracing,
};
pub use observability::{Observability, ObservabilityProblem, RequestReporting};
pub use pages::{
    PageConnection, PageKind, PageLimits, PageListener, PagePlaces, PageSeat, PageStream, PageTurn, PagesBusy,
};
pub use percent::percent_encoded;
pub use program::{EXIT_BAD_CONFIG, run_program};
pub use random::{new_link_token, new_seed};
pub use request_log::{LoggedRequest, LoggedRevision, RequestLog, RequestLogLine, RequestLogTemplate};
pub use signals::{StopRequest, StopRequests};
pub use socket_table::{TcpTableRow, tcp_table};
pub use traces::{SampleRate, TraceEndpoint, TracePlan, TracingProblem, TracingSettings};
pub use vital::{record_fatal_errors_in, relied_on, vital, vital_thread};
pub use vocabulary::{Backoff, EXIT_PART_FAILED};
