//! The load of a run that was recorded: how many requests arrived in each second, and how long one took.
//!
//! A record holds no single request. When some of them arrived is known all the same, because an activator
//! says at once that it holds more than before. All arrive in their second as regularly as the counts of the
//! seconds around say: where these differ as those of random arrivals do, at any time of it with the same
//! chance; where they hardly differ, at nearly equal intervals. Those whose times are known stand in the
//! place of the nearest drawn ones. Each takes the mean time of its minute.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::arrival_regularity::{gap_shape, spread};
use crate::random::RandomStream;
use crate::rounding::whole_part;

/// The span over which the arrivals of a record are counted.
pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// Service times are kept by the minute: the mean of a second's few requests is mostly chance.
const SECONDS_PER_MINUTE: usize = 60;
/// No second has more requests: more than any simulation gets through.
const COUNT_MAX: u32 = 1_000_000;

/// The requests that one Service had, from the beginning of a record on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredLoad {
    /// How many requests arrived in each second.
    pub(crate) counts: Arc<[u32]>,
    /// The mean time of a request in each minute, where one is known.
    service_times: Arc<[Option<Duration>]>,
    /// How long before the load the first second began.
    past_second: Duration,
    /// The arrivals whose times are known, in their order, since the first second began.
    known: Arc<[Duration]>,
}

impl MeasuredLoad {
    /// The load of a Service for which so many requests arrived in each second, and took so long in each
    /// minute. A reporter's second is not quite one of the clock, so the numbers may have fractions: what one
    /// second has beyond a whole number the next ones get. A minute without a time, or beyond the last one,
    /// has the service time of its Service. No second has more than a million requests.
    pub fn new(arrivals: &[f32], service_times: Vec<Option<Duration>>) -> Self {
        let mut rest = 0.0;
        let whole = |arrived: &f32| {
            rest += f64::from(*arrived);
            let count = whole_part(rest + 0.5).min(COUNT_MAX);
            rest = (rest - f64::from(count)).min(1.0);
            count
        };
        Self {
            counts: arrivals.iter().map(whole).collect(),
            service_times: service_times.into(),
            past_second: Duration::ZERO,
            known: Arc::new([]),
        }
    }

    /// The same, where the first second began so long before the load, and where some of the requests that
    /// were counted arrived at these times since the load began, in their order.
    #[must_use]
    pub fn with_known_times(self, past_second: Duration, arrivals: &[Duration]) -> Self {
        let known = arrivals.iter().map(|at| *at + past_second).collect();
        Self { past_second, known, ..self }
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
        let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        self.service_times.get(second / SECONDS_PER_MINUTE).copied().flatten()
    }
}

/// The requests of a measured load, one by one.
#[derive(Debug)]
pub(crate) struct MeasuredArrivals {
    load: MeasuredLoad,
    /// How regular the gaps of each minute are.
    gap_shapes: Vec<f64>,
    /// The place of the second after the present one.
    next: usize,
    /// The place of the known arrival that comes next.
    next_known: usize,
    /// The arrivals of the present second that are still to come, the last one first.
    left: Vec<Duration>,
    draws: RandomStream,
    last: Duration,
}

impl MeasuredArrivals {
    pub(crate) fn new(load: &MeasuredLoad, draws: RandomStream) -> Self {
        Self {
            load: load.clone(),
            gap_shapes: load.counts.chunks(SECONDS_PER_MINUTE).map(gap_shape).collect(),
            next: 0,
            next_known: 0,
            left: Vec::new(),
            draws,
            last: Duration::ZERO,
        }
    }

    /// `None` once every second is over.
    pub(crate) fn next_at(&mut self) -> Option<Duration> {
        while self.left.is_empty() {
            let count = *self.load.counts.get(self.next)?;
            self.draw_second(self.next, count);
            self.next += 1;
        }
        self.last = self.left.pop()?;
        Some(self.last)
    }

    fn draw_second(&mut self, second: usize, count: u32) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let begins = Duration::from_secs(u64::try_from(second).unwrap_or_default());
        let known = &self.load.known[self.next_known..];
        let passed = known.partition_point(|at| *at < begins + SECOND);
        self.left.extend(known[..passed].iter().filter(|at| **at >= begins).take(count));
        self.next_known += passed;
        let shape = self.gap_shapes.get(second / SECONDS_PER_MINUTE).copied().unwrap_or(1.0);
        let drawn = spread(&mut self.draws, count, shape);
        let mut drawn: Vec<Duration> = drawn.into_iter().map(|part| begins + SECOND.mul_f64(part)).collect();
        drawn.sort_unstable();
        let others = without_nearest(&drawn, &self.left);
        self.left.extend(others);
        for at in &mut self.left {
            *at = at.saturating_sub(self.load.past_second);
        }
        self.left.sort_unstable_by_key(|at| Reverse(*at));
    }

    /// The work of the request that arrived last, if its minute says it.
    pub(crate) fn service_time(&self) -> Option<Duration> {
        self.load.service_time_at(self.last)
    }
}

/// The drawn times but those in whose place known ones stand: in their order the nearest one of each. A known
/// arrival is one of all that came in its second, and none beside them: where a rate rises, the first
/// arrivals are known, and drawn ones between them would be a peak that the run never had.
fn without_nearest(drawn: &[Duration], known: &[Duration]) -> Vec<Duration> {
    let mut others = Vec::with_capacity(drawn.len().saturating_sub(known.len()));
    let mut next = 0;
    for (place, at) in known.iter().enumerate() {
        let after = drawn.partition_point(|drawn| drawn < at);
        let is_before_nearer = after > 0
            && drawn.get(after).is_none_or(|later| at.abs_diff(drawn[after - 1]) < later.abs_diff(*at));
        let nearest = if is_before_nearer { after - 1 } else { after };
        // No drawn time makes room for two, and those of the later known ones are left for them.
        let left_for_others = drawn.len() - (known.len() - place);
        let replaced = nearest.max(next).min(left_for_others);
        others.extend_from_slice(&drawn[next..replaced]);
        next = replaced + 1;
    }
    others.extend_from_slice(&drawn[next..]);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_arrival_stands_in_the_place_of_the_nearest_drawn_one() {
        let times = |milliseconds: &[u64]| -> Vec<Duration> {
            milliseconds.iter().map(|at| Duration::from_millis(*at)).collect()
        };
        let drawn = times(&[100, 300, 500, 700, 900]);
        let cases: [(&[u64], &[u64]); 6] = [
            (&[], &[100, 300, 500, 700, 900]),
            (&[310], &[100, 500, 700, 900]),
            (&[180, 190], &[500, 700, 900]),
            (&[0, 10, 20], &[700, 900]),
            (&[990, 990], &[100, 300, 500]),
            (&[500, 500, 500, 500, 500], &[]),
        ];
        for (known, others) in cases {
            assert_eq!(without_nearest(&drawn, &times(known)), times(others), "{known:?}");
        }
    }

    #[test]
    fn a_rate_that_rises_has_no_peak_above_the_one_that_it_reaches() {
        // Five evenly in each second, then forty; of the first ones of those it is known when they came.
        let counts: Vec<f32> = (0..40).map(|second| if second < 20 { 5.0 } else { 40.0 }).collect();
        let known: Vec<Duration> = (0..8).map(|place| Duration::from_millis(20_000 + 25 * place)).collect();
        let load = MeasuredLoad::new(&counts, Vec::new()).with_known_times(Duration::ZERO, &known);
        let found = arrivals(&load);
        assert_eq!(found.len(), 900);
        assert!(peak(&found) <= 11, "eight within a fifth of a second, and {} at most", peak(&found));
    }

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

    fn arrivals(load: &MeasuredLoad) -> Vec<Duration> {
        let mut measured = MeasuredArrivals::new(load, RandomStream::of(7, "hello", "arrival-times"));
        std::iter::from_fn(|| measured.next_at()).collect()
    }

    #[test]
    fn requests_whose_times_are_known_arrive_then_and_no_more_than_were_counted() {
        let at = Duration::from_millis;
        let known = [at(1_490), at(1_500), at(1_500), at(5_000)];
        let load = MeasuredLoad::new(&[0.0, 3.0, 2.0, 0.0], Vec::new()).with_known_times(at(250), &known);
        let found = arrivals(&load);
        assert_eq!((&found[..3], found.len()), (&known[..3], 5), "{found:?}");
        // The third second began 1.75 s after the load.
        assert!(found[3..].iter().all(|found| (at(1_750)..at(2_750)).contains(found)), "{found:?}");
        let fewer = MeasuredLoad::new(&[0.0, 1.0], Vec::new()).with_known_times(at(250), &known);
        assert_eq!(arrivals(&fewer), [at(1_490)]);
    }

    /// The most requests that arrive within a fifth of a second.
    fn peak(arrivals: &[Duration]) -> usize {
        let within = |(place, at): (usize, &Duration)| {
            arrivals[place..].partition_point(|later| *later < *at + Duration::from_millis(200))
        };
        arrivals.iter().enumerate().map(within).max().unwrap_or_default()
    }

    #[test]
    fn requests_of_even_seconds_arrive_evenly_and_those_of_random_ones_do_not() {
        let even: Vec<f32> = (0_u16..120).map(|second| f32::from(22 + second % 2)).collect();
        let found = arrivals(&MeasuredLoad::new(&even, Vec::new()));
        assert!(found.is_sorted() && peak(&found) <= 8, "4.5 on average, and {} at most", peak(&found));
        let mut random = RandomStream::of(7, "hello", "counts");
        let counts: Vec<f32> =
            (0..120).map(|_| f32::from(u16::try_from(random.poisson(22.5)).expect("few"))).collect();
        let found = arrivals(&MeasuredLoad::new(&counts, Vec::new()));
        assert!(found.is_sorted() && peak(&found) >= 9, "at most {}", peak(&found));
    }
}
