//! The past as rules read it: the demand of a minute, or none where that is not known.

use std::fmt;
use std::time::Duration;

use vocabulary::DemandCode;

/// The demand of one minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinuteDemand {
    /// The average over the minute.
    pub mean: f64,
    /// The greatest of its seconds.
    pub maximum: f64,
}

/// The demand of the past, minute by minute. The history of a revision is one, and is read in its place.
pub trait PastDemand: fmt::Debug {
    /// The demand of a minute since 1970, in the values of [`DemandCode`]; `None` if that is not known.
    fn minute(&self, minute: u64) -> Option<MinuteDemand>;
}

/// The mean number of requests in flight when so many come within a minute and each lasts so long (Little's
/// law). For records that tell invocations and their durations.
pub fn concurrency_of(requests_per_minute: f64, duration: Duration) -> f64 {
    requests_per_minute / 60.0 * duration.as_secs_f64()
}

/// The demand of minutes that follow one another, as a file or a made-up world has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandMinutes {
    first: u64,
    codes: Vec<[DemandCode; 2]>,
}

impl DemandMinutes {
    /// A record without minutes, which begins with this one since 1970.
    pub const fn beginning_at(first: u64) -> Self {
        Self { first, codes: Vec::new() }
    }

    /// Adds the next minute; `None` for one that was not observed.
    pub fn push(&mut self, demand: Option<MinuteDemand>) {
        self.codes.push(demand.map_or([DemandCode::MISSING; 2], |demand| {
            [DemandCode::of(demand.mean), DemandCode::of(demand.maximum)]
        }));
    }

    /// Each minute since 1970 that was observed, with its demand.
    pub fn observed(&self) -> impl Iterator<Item = (u64, MinuteDemand)> {
        (self.first..).zip(&self.codes).filter_map(|(minute, codes)| {
            let [mean, maximum] = codes.map(DemandCode::demand);
            Some((minute, MinuteDemand { mean: mean?, maximum: maximum? }))
        })
    }

    /// The minute since 1970 that is added next.
    pub fn next_minute(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.codes.len()).unwrap_or(u64::MAX))
    }
}

impl PastDemand for DemandMinutes {
    fn minute(&self, minute: u64) -> Option<MinuteDemand> {
        let place = usize::try_from(minute.checked_sub(self.first)?).ok()?;
        let [mean, maximum] = self.codes.get(place)?.map(DemandCode::demand);
        Some(MinuteDemand { mean: mean?, maximum: maximum? })
    }
}
