//! What disturbs a whole cluster, every request accounted for: `tests/cluster/run`, after the other suites.
//!
//! One after the other (`RUST_TEST_THREADS=1`), and beside nothing else. They end and start parts of the
//! cluster of tests, so they run on no other one.

mod buckets;
mod certificates;
mod check;
mod control_plane;
mod forgeries;
mod histories;
mod narrow_rights;
mod programs;
