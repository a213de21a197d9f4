//! What ebb's programs tell each other.
//!
//! The autoscaler calls; nobody calls the autoscaler. It opens one long-lived link to each queue-proxy and each activator: one TCP connection
//! with length-delimited protobuf frames both ways. Every message says what *is*, so a repeat or a reconnect does no harm.

mod messages;

pub use messages::{
    ActivatorHello, ActivatorOrder, ActivatorReport, PodHello, PodOrder, PodReport, RevisionLoad,
};
