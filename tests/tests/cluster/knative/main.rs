//! ebb's autoscaler in the place of Knative's, in a cluster in which stand-ins play the rest of Knative:
//! `tests/cluster/install-knative`, then this suite, one test after the other.
//!
//! The autoscaler stands beside Knative's activators and queue-proxies, which is step 1 of the roll-over; two
//! modules go on to further steps, and back.
//! What the stand-ins play says `tests/cluster/knative/README.md`.

mod app;
mod check;
mod installing;
mod life;
mod new_revisions;
mod path;
mod rows;
mod status_watch;
mod step_three;
mod step_two;
mod way_back;
mod writes;
