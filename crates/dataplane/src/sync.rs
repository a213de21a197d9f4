//! The types through which threads meet, in a module of their own, so that `tests/loom` can put loom's in
//! their place.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use futures_util::task::AtomicWaker;
pub(crate) use tokio::sync::Notify;
pub(crate) use tokio::sync::futures::Notified;
