//! The words ebb's crates share: ids, quantities, points in time, measurements and assignments.
//!
//! Every other crate speaks in these types, so they carry the checks that no caller should have to repeat (a
//! [`units::Concurrency`] is never NaN) and nothing else: no I/O, no clocks, no behaviour of a particular
//! program.

mod adopted_connections;
mod announcement;
mod app_protocol;
mod assignment;
mod backoff;
mod caller;
mod cluster_names;
mod count_schedule;
mod demand_code;
mod draining;
mod duration;
mod exit_code;
pub mod exposed_hop_keys;
mod findings;
mod hash;
mod head_size;
mod hop_key;
mod injection;
mod intern;
mod knative_names;
mod late_bytes;
mod late_timeout;
mod likeness;
mod link;
mod load;
mod milli;
mod ownership;
mod prediction_words;
mod probe;
mod revision;
mod shared_map;
mod subset;
mod time;
mod units;
mod usage;
mod user_agents;
mod waiting_page;
mod words;

pub use adopted_connections::{AdoptedConnections, AdoptionId, ConnectionTally, PeerList};
pub use announcement::{FIRST_ANSWER, QueueProxyAnnouncement};
pub use app_protocol::{AppProtocol, AppProtocolError};
pub use assignment::{
    Assignment, PodAssignment, PodExits, PodState, RequestTimeouts, Routing, Slice, Standing, Version,
};
pub use backoff::Backoff;
pub use caller::Caller;
pub use cluster_names::{
    AUTHORITY_SECRET, BUCKETS_ANNOTATION, MIRROR_SLICE_WRITER, OWNER_LEASE, REVISION_ANNOTATION,
    SELECTOR_SLICE_WRITER, SLICE_WRITER, SLICE_WRITER_LABEL, TLS_CHAIN, TLS_KEY, TLS_REVOKED, TLS_ROOTS,
    WAITING_LEASE, bucket_of_lease, owner_lease,
};
pub use count_schedule::{
    CountSchedule, ScheduleContradiction, ScheduleLine, ScheduledBounds, WeekMinute, Weekdays,
};
pub use demand_code::DemandCode;
pub use draining::{DRAIN_ACCEPTS_MAX, DRAIN_LIMIT_DEFAULT, DRAIN_RESERVE, drain_limit_within};
pub use duration::{DurationError, format_duration, parse_duration};
pub use exit_code::EXIT_PART_FAILED;
pub use findings::{CheckedValue, Findings, Problem, did_you_mean, printable, shown};
pub use hash::fnv1a;
pub use head_size::HeadSizeLimit;
pub use hop_key::HopKey;
pub use injection::{
    DRAIN_HOOK_PATH, DeclaredPort, INJECT_LABEL, INJECTED_ANNOTATION, INJECTION_ANNOTATIONS,
    PLAIN_PORTS_ANNOTATION, PORTS_ANNOTATION, PortAnnotations, QUEUE_PROXY,
};
pub use intern::Interner;
pub use knative_names::{KNATIVE_BUCKETS_MAX, KNATIVE_REVISION_KIND, knative_lease};
pub use late_bytes::LateBytes;
pub use late_timeout::LateTimeout;
pub use likeness::{LikelyName, likeness, nearest};
pub use link::{LinkAddress, LinkChannel, LinkRole, LinkToken, LinkTokenError};
pub use load::{BootId, Load, PresentCount, Reporter, Sample};
pub use milli::{MilliValue, QuantityTextError, parse_quantity, parse_quantity_as_f64};
pub use ownership::{Bucket, Epoch, Ownership};
pub use prediction_words::{PredictionSwitch, ScaleUpForward, TimeZoneName};
pub use probe::{
    HttpQuestion, ProbeProblem, ProbeQuestion, ProbeScheme, ProbeSpec, ProbeTiming, is_own_host,
};
pub use revision::{NameError, PodId, PodName, ReplicaId, ReplicaName, RevisionId, RevisionName};
pub use shared_map::SharedMap;
pub use subset::choose_subset;
pub use time::Timestamp;
pub use units::{
    BurstCapacity, Concurrency, ExcessBurstCapacity, Percentage, PodCount, QuantityError, RequestRate,
};
pub use usage::{AppEndLine, ResourceUsage, ResourceUsageLine};
pub use user_agents::{IgnoredUserAgents, UserAgentsError};
pub use waiting_page::WaitingPage;
pub use words::{
    ActivatorHello, ActivatorWord, Departure, LinkVersion, PodHello, PodSettings, PodWord, RevisionLoad,
};
