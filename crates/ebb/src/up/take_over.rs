//! How does one `ebb up` take the place of another, so that no client notices?
//!
//! ```text
//! the new one                      the running one
//! ── Ask ───────────────────────►  its pods' watches stand still
//! ◄─ Offer, and all descriptors ─
//! reads it, all of it
//! ── Prepared ──────────────────►  its autoscaler ends
//! ◄─ Yours ──────────────────────  closes its copies; from here on it only serves what its activators hold
//! ```
//!
//! Until the last message the running one owns everything: if the new one ends, or does not understand what
//! it reads, the old one goes on. The connection stays open for as long as the old one serves, which its
//! activators are told to the new autoscaler for.

mod messages;
mod predecessor_side;
mod socket;
mod successor_side;
mod wire;

pub(super) use messages::Offer;
pub(super) use predecessor_side::{HandOverOffer, HandOverOrder, listen};
pub(super) use socket::{TakeOverSocket, failure_file, has_left_a_socket, private_folder};
pub(super) use successor_side::{Predecessor, TakenParts, take};
