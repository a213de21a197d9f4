//! How many pods does a revision need, and why?
//!
//! A question about numbers and time. [`Multiscaler`] takes facts in ([`Event`]) and gives orders out
//! ([`Command`]); it opens no socket, reads no clock and draws no random number, so the autoscaler, the
//! simulator and the tests all drive the same value.

mod bounds;
mod burst;
mod collector;
mod decider;
mod decision;
mod history;
pub mod hpa;
mod multiscaler;
mod panic;
mod reasons;
mod scale_to_zero;
mod surge;
#[cfg(test)]
mod vectors;
mod window;

pub use collector::{Averages, Collector};
pub use decider::{Decider, Observation, Verdict};
pub use decision::{Decision, Inputs, Mode, Reason, Sentence, Stage, Trigger};
pub use history::{
    COLD_START_WORTH, ColdStarts, DemandDays, HistoryFault, HistoryRecord, HistorySpan, LeastCountAdvice,
    LedgerWaits, LifeTotals, PodSeconds, PublishedHistory, RevisionHistory, RevisionLedger, Series,
    SeriesRange, WallClock, WhatIf,
};
pub use multiscaler::{
    Command, DecisionJournal, Event, ForecastReport, Multiscaler, PodFact, PodPhase, PublishedForecast,
    RevisionOrigin, RevisionStatus, ScaleEnding, ShadowDifference, ShadowStatus,
};
