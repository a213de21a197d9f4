//! An `ebb up` in which the same app is served in both routings.

pub(crate) use tests::world::{ROUTINGS, Routing, cold, warm, within};
