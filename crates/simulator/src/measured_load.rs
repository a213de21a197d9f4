//! The load of a run that was recorded: how many requests arrived in each second, and how long one took.
//!
//! A record holds no single request. So each arrives at any time of its second with the same chance, and
//! takes the mean time of its minute.

use std::sync::Arc;
use std::time::Duration;

use crate::file_arrivals::CountedArrivals;
use crate::random::RandomStream;
use crate::rounding::whole_part;

/// The span over which the arrivals of a record are counted.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Service times are kept by the minute: the mean of a second's few requests is mostly chance.
const SECONDS_PER_MINUTE: u64 = 60;

/// The requests that one Service had, from the beginning of a record on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredLoad {
    /// How many requests arrived in each second.
    pub(crate) counts: Arc<[u32]>,
    /// The mean time of a request in each minute, where one is known.
    service_times: Arc<[Option<Duration>]>,
}

impl MeasuredLoad {
    /// The load of a Service for which so many requests arrived in each second, and took so long in each
    /// minute. A reporter's second is not quite one of the clock, so the numbers may have fractions: what one
    /// second has beyond a whole number the next ones get. A minute without a time, or beyond the last one,
    /// has the service time of its Service.
    pub fn new(arrivals: &[f32], service_times: Vec<Option<Duration>>) -> Self {
        let mut rest = 0.0;
        let whole = |arrived: &f32| {
            rest += f64::from(*arrived);
            let count = whole_part(rest + 0.5);
            rest -= f64::from(count);
            count
        };
        Self { counts: arrivals.iter().map(whole).collect(), service_times: service_times.into() }
    }

    /// How many requests arrive in all.
    pub fn requests(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The same arrivals, each with the service time of its Service.
    #[must_use]
    pub fn without_service_times(self) -> Self {
        Self { service_times: Arc::new([]), ..self }
    }

    fn service_time_at(&self, at: Duration) -> Option<Duration> {
        let minute = usize::try_from(at.as_secs() / SECONDS_PER_MINUTE).unwrap_or(usize::MAX);
        self.service_times.get(minute).copied().flatten()
    }
}

/// The requests of a measured load, one by one.
#[derive(Debug)]
pub(crate) struct MeasuredArrivals {
    load: MeasuredLoad,
    arrivals: CountedArrivals,
    last: Duration,
}

impl MeasuredArrivals {
    pub(crate) fn new(load: &MeasuredLoad, draws: RandomStream) -> Self {
        let arrivals = CountedArrivals::new(SECOND, &load.counts, draws);
        Self { load: load.clone(), arrivals, last: Duration::ZERO }
    }

    /// `None` once every second is over.
    pub(crate) fn next_at(&mut self) -> Option<Duration> {
        self.last = self.arrivals.next_at()?;
        Some(self.last)
    }

    /// The work of the request that arrived last, if its minute says it.
    pub(crate) fn service_time(&self) -> Option<Duration> {
        self.load.service_time_at(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_requests_are_kept_for_the_next_second() {
        let load = MeasuredLoad::new(&[0.4, 0.4, 0.4, 2.0, -0.2, 3.0], Vec::new());
        assert_eq!(load.counts[..], [0, 1, 0, 2, 0, 3]);
        assert_eq!(load.requests(), 6);
    }

    #[test]
    fn a_request_takes_the_time_of_its_minute() {
        let mut arrivals = vec![0.0; 180];
        (arrivals[10], arrivals[70], arrivals[130]) = (1.0, 1.0, 1.0);
        let work = |milliseconds| Some(Duration::from_millis(milliseconds));
        let load = MeasuredLoad::new(&arrivals, vec![work(80), None]);
        let draws = || RandomStream::of(7, "hello", "arrival-times");
        let mut measured = MeasuredArrivals::new(&load, draws());
        let requests: Vec<(u64, Option<Duration>)> =
            std::iter::from_fn(|| measured.next_at().map(|at| (at.as_secs(), measured.service_time())))
                .collect();
        assert_eq!(requests, [(10, work(80)), (70, None), (130, None)]);
        let mut bare = MeasuredArrivals::new(&load.without_service_times(), draws());
        assert_eq!((bare.next_at().map(|at| at.as_secs()), bare.service_time()), (Some(10), None));
    }
}
