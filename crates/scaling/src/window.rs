//! What was measured lately, second by second.
//!
//! A [`Window`] is a ring of one sum per second and can be read two ways: as a plain average or with recent seconds weighing more
//! ([`crate::Aggregation`]). How it is read is the reader's choice, so a change of the algorithm keeps the history. [`RecentMaximum`] remembers
//! the largest recent count for the scale-down delay.
//!
//! Seconds are signed: the history that a reporter brings may reach back before the origin of our own time axis.

mod average;
mod maximum;
mod ring;

pub(crate) use maximum::RecentMaximum;
pub(crate) use ring::Window;

#[cfg(test)]
mod tests;

/// A whole second of our own axis.
pub(crate) type Second = i64;
