//! ebb's autoscaler in the place of Knative's, in a cluster in which stand-ins play the rest of Knative:
//! `tests/cluster/install-knative`, then this suite, one test after the other.
//!
//! The autoscaler stands beside Knative's activators and queue-proxies, which is step 1 of the roll-over;
//! three modules go on to further steps, and back.
//! What the stand-ins play says `tests/cluster/knative/README.md`.

mod app;
mod check;
mod gateway;
mod installing;
mod life;
mod mixed_services;
mod new_revisions;
mod path;
mod queue_proxies;
mod roll_over;
mod rows;
mod sockets;
mod status_watch;
mod step_three;
mod step_two;
mod way_back;
mod writes;
