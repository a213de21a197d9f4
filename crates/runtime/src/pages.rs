//! How are the small pages of a program served, so that no reader takes them from another one?
//!
//! Every program has some: health, metrics, the API of an autoscaler. Kubelet and Prometheus need them most
//! when something is wrong, and every client that reaches the port may connect. So a program has
//! [`PagePlaces`], which all its listeners for pages share, and each connection has a [`PageSeat`] there:
//!
//! ```text
//!             connects              asks                  is answered
//!   (kernel) ──────────► resting ──────────► working ───┐
//!                         ▲  │     a probe   probing  ──┤   each with places of its own
//!                         │  │     a stream  reading  ──┘
//!                         │  ▼                          │
//!                         │  closed: for another one, or after 60 s
//!                         └─────────────────────────────┘
//! ```
//!
//! *Resting* connections make room for new ones, the oldest first, so they take nothing from other clients.
//! Requests are of three kinds ([`PageKind`]), and none of them takes the places of another kind. What does
//! not get a place is answered 503 at once.
//!
//! HTTP is not spoken here. The proxies serve their pages over their own stack, and the others over `hyper`;
//! both take connections from a [`PageListener`], ask [`PageSeat::begin`] before they answer, and close what
//! [`PageSeat::must_go`] names.

mod limits;
mod listener;
mod places;
mod seat;
mod seat_book;
mod stream;

pub use limits::{PageKind, PageLimits};
pub use listener::{PageConnection, PageListener};
pub use places::PagePlaces;
pub use seat::{PageSeat, PageTurn, PagesBusy};
pub use stream::PageStream;

#[cfg(test)]
mod tests;
