//! Container images on one machine, with Debian's podman and an image that is made here.
//!
//! `RUST_TEST_THREADS=1 cargo suite images`. It needs `podman` and, where the machine has no crun that works,
//! `runc`. Each `ebb up` removes containers that no process has, so tests run one after the other: one leaves
//! such a container on purpose. Containers are in the network of the host, except where a test is about the
//! network: a machine of CI may have no other.

mod containers;
mod ends;
mod engine;
