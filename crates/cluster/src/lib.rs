//! What should the objects of a cluster be?
//!
//! A Service that names a workload (`ebb.dev/revision`) and has no selector is *adopted*: the workload's
//! count is written through its `scale` subresource, and the route through `EndpointSlice`s of the Service.
//! In an installed Knative a revision comes by its `PodAutoscaler` ([`knative`]), and the route goes through
//! its `ServerlessService`. A Lease for each bucket says which autoscaler may write.
//!
//! ```text
//!   what watches show ──┐                      ┌──► facts for the autoscaler
//!   orders, seats ──────┼──► [`ClusterState`] ──┼──► writes for the API server
//!   answers ────────────┘                      └──► kinds to watch, lines for the log
//! ```
//!
//! No I/O, no clock, no log: a [`Moment`] comes with each event, and the shell (`platform-kubernetes`)
//! watches, performs and logs.

mod buckets;
mod count_writer;
mod custody;
mod deletion_hint;
mod drained_pods;
pub mod endpoints;
mod event_book;
mod fact_feed;
mod hop_keys;
mod incident;
mod index;
mod installation;
pub mod knative;
mod lease;
mod lease_names;
mod moment;
mod news;
mod notice;
mod port_book;
pub mod resources;
mod routes;
pub mod scale;
mod seat;
mod slice_key;
pub mod slices;
mod state;
mod target;
mod write;
mod write_pace;
mod write_queue;
mod write_turns;

pub use buckets::Rights;
pub use count_writer::CountWrite;
pub use custody::Custody;
pub use deletion_hint::DeletionHint;
pub use event_book::{EventNote, EventObject, EventText, EventWrite};
pub use hop_keys::ClusterKeys;
pub use incident::ClusterIncident;
pub use index::Takeover;
pub use installation::Installation;
pub use lease::{LEASE, LeaseRecord, LeaseWrite, RENEW_EVERY, Right, read_lease};
pub use lease_names::{AutoscalerLease, LeaseNames};
pub use moment::Moment;
pub use news::{Change, KnativeNews, News, ShownPod};
pub use notice::{NOT_SCALABLE, Notice, Tone};
pub use port_book::{LeaseNotes, WallSeconds};
pub use seat::SeatNumber;
pub use state::{ClusterEvent, ClusterState, ClusterStateConfig, KindWatch};
pub use target::{NamedSample, TargetRecord};
pub use write::{ClusterWrite, Failure, ScaleAnswer, WriteAnswer};
pub use write_pace::{BURST, WRITE_EVERY};
