//! How events look in a record, and back: protobuf, one frame an event.
//!
//! Words of pods and activators stand as their link encodes them, and settings as the texts that people
//! wrote. Everything else has messages of its own, whose numbers are promises. What a later program wrote and
//! this one does not know is refused by name, where that changes what an event means, and passed over where
//! it only adds to it.

mod answers;
mod answers_proto;
mod facts;
pub(crate) mod facts_proto;
mod fields;
mod links;
mod pods;
pub(crate) mod proto;
mod revisions;
pub(crate) mod shared_proto;

pub(crate) use answers::{answers_in, answers_out};
pub(crate) use facts::{fact_in, fact_out};
pub(crate) use fields::revision as revision_name;
pub(crate) use links::{change_in, change_out, opened_out, peer_in};
