//! What comes at the end of a cluster of tests: `tests/cluster/run`, after all other suites and one after the
//! other, for the last of them takes ebb away.

mod rights;
mod uninstall;
