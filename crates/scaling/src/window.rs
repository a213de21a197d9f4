//! The latest seconds of a revision's load, and the windows over them.
//!
//! A [`WindowHistory`] is a ring of one sum per second and metric, with two windows on it, which can be read
//! two ways: as a plain average or with recent seconds weighing more ([`settings::Aggregation`]). How they
//! are read is the reader's choice, so a change of the metric or the algorithm keeps the history.
//! [`RecentMaximum`] remembers the largest recent count for the scale-down delay.
//!
//! Seconds are signed: the history that a reporter brings may reach back before the origin of our own time
//! axis.

mod average;
mod history;
mod maximum;
mod ring;
mod span;
mod weight;

pub(crate) use average::View;
pub(crate) use history::WindowHistory;
pub(crate) use maximum::RecentMaximum;
pub(crate) use ring::SecondSums;

#[cfg(test)]
mod tests;

/// A whole second of our own axis.
pub(crate) type Second = i64;
