//! The types through which threads meet, in a module of their own, so that `tests/loom` can put loom's in
//! their place.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
