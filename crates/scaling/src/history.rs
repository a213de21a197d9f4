//! What was measured of a revision and decided about it, for seconds, minutes and hours: the one series that
//! people, the ledger of costs and forecasts read.
//!
//! ```text
//! running second ─► pending (3 s: late reports) ─► second ─┬─► 15 minutes of seconds
//!                                                          ├─► open minute ─► 26 hours of minutes ─► 15 days
//!                                                          └─► open hour ───► 35 days of hours     of demand
//! ```
//!
//! *Each level is counted from the seconds themselves.* A minute and an hour add up exact values and are
//! rounded once, when they are written ([`amount`] says by how much); no error of one level reaches another.
//! *Rows are numbers and are written as differences* ([`packed`]): a number that did not change costs
//! nothing, and a row that did not change costs nothing either, so a revision that sleeps for a month costs a
//! few bytes. *Blocks of rows that have ended are shared* ([`packed`]): a reader holds the history as it was
//! ([`PublishedHistory`]) while the next seconds are written, and the past is in memory once. *No data is not
//! zero*: a span without a row was not observed, a row says of how many of its seconds the capacity and the
//! demand are known. *Time is the wall clock's*, in whole seconds since 1970, so that an hour of the day
//! means the same after a restart; the edge says how it lies beside the monotonic axis ([`WallClock`]).
//!
//! The ledger of costs ([`ledger`]) is sums of these hours; no other series is kept for it.
//!
//! Left out on purpose: files and compression of the record, prices, and any rule that decides.

mod amount;
mod clock;
mod demand_days;
mod facts;
mod ledger;
mod long_array;
mod packed;
mod published;
mod record;
mod revision;
mod series;
mod span;
mod tally;
mod totals;
mod varint;

pub use self::clock::WallClock;
pub use self::demand_days::DemandDays;
pub use self::ledger::{COLD_START_WORTH, LeastCountAdvice, LedgerWaits, RevisionLedger, WhatIf};
pub use self::published::PublishedHistory;
pub use self::record::{HistoryFault, HistoryRecord};
pub use self::revision::RevisionHistory;
pub use self::series::{Series, SeriesRange};
pub use self::span::HistorySpan;
pub use self::totals::{ColdStarts, LifeTotals, PodSeconds};

pub(crate) use self::demand_days::DemandBin;
pub(crate) use self::facts::{CapacityCounts, DemandSeconds, ReplacementCause, RevisionCondition};

#[cfg(test)]
mod tests;
