//! How long do requests run that begin in one second, in that second and in each one after?

use std::collections::VecDeque;

use crate::random::RandomStream;
use crate::time_distribution::TimeDistribution;

/// So many service times make a profile: their mean is right to less than one in a hundred.
const DRAWS: u32 = 65_536;
/// A request that runs for more seconds is taken for one that ends then.
const SECONDS_MAX: usize = 3_600;

/// How a request occupies a slot on average, if it begins at any time of a second.
#[derive(Clone, Debug)]
pub(crate) struct OccupancyProfile {
    /// The time in the second of the beginning, and in each second after.
    seconds: Vec<f64>,
    mean: f64,
    variation: f64,
}

impl OccupancyProfile {
    pub(crate) fn of(service_time: &TimeDistribution, draws: &mut RandomStream) -> Self {
        let (mut seconds, mut sum, mut squares) = (Vec::new(), 0.0, 0.0);
        for _ in 0..DRAWS {
            let work = service_time.draw(draws).as_secs_f64();
            sum += work;
            squares += work * work;
            add_occupancy(&mut seconds, work);
        }
        let draws = f64::from(DRAWS);
        for second in &mut seconds {
            *second /= draws;
        }
        let mean = sum / draws;
        let deviation = libm::sqrt((squares / draws - mean * mean).max(0.0));
        Self { seconds, mean, variation: if mean > 0.0 { deviation / mean } else { 0.0 } }
    }

    /// The mean time in a second, counted from that of the beginning.
    pub(crate) fn in_second(&self, place: usize) -> f64 {
        self.seconds.get(place).copied().unwrap_or_default()
    }

    /// The mean service time in seconds.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation of service times as a part of their mean.
    pub(crate) fn variation(&self) -> f64 {
        self.variation
    }
}

/// Adds the mean time in each second of a request of so much work that begins at any time of the first.
fn add_occupancy(seconds: &mut Vec<f64>, work: f64) {
    let (mut end, mut before) = (1.0, 0.0);
    for place in 0..SECONDS_MAX {
        let by_then = mean_run_by(end, work);
        if place >= seconds.len() {
            seconds.push(0.0);
        }
        seconds[place] += by_then - before;
        if work <= end - 1.0 {
            return;
        }
        before = by_then;
        end += 1.0;
    }
}

/// How long a request has run by a whole second, on average over its beginning at any time of the first: the
/// integral of the smaller of its work and the time that has passed since.
fn mean_run_by(end: f64, work: f64) -> f64 {
    let shortest = end - 1.0;
    if work >= end {
        end - 0.5
    } else if work <= shortest {
        work
    } else {
        (work * work - shortest * shortest) / 2.0 + work * (end - work)
    }
}

/// The requests that run, as slots that they occupy in the open second and in each one after.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningWork {
    seconds: VecDeque<f64>,
}

impl RunningWork {
    /// The mean number of slots that are occupied in a second, counted from the open one.
    pub(crate) fn in_second(&self, place: usize) -> f64 {
        self.seconds.get(place).copied().unwrap_or_default()
    }

    /// So many requests begin in the open second, spread over it.
    pub(crate) fn begin_many(&mut self, profile: &OccupancyProfile, requests: f64) {
        for (place, each) in profile.seconds.iter().enumerate() {
            self.add(place, each * requests);
        }
    }

    /// So many requests begin when this part of the open second is left, each with so much work.
    pub(crate) fn begin_alike(&mut self, left: f64, work: f64, requests: f64) {
        let first = work.min(left);
        self.add(0, first * requests);
        let mut rest = work - first;
        let mut place = 1;
        while rest > 0.0 && place < SECONDS_MAX {
            self.add(place, rest.min(1.0) * requests);
            rest -= 1.0;
            place += 1;
        }
    }

    /// The open second is over, and the next one is open.
    pub(crate) fn close_second(&mut self) {
        self.seconds.pop_front();
    }

    fn add(&mut self, place: usize, slots: f64) {
        while self.seconds.len() <= place {
            self.seconds.push_back(0.0);
        }
        self.seconds[place] += slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> OccupancyProfile {
        let service_time = TimeDistribution::parse(text).expect("a time");
        OccupancyProfile::of(&service_time, &mut RandomStream::of(7, "hello", "occupancy"))
    }

    #[test]
    fn a_profile_has_the_whole_work_and_its_part_in_each_second() {
        let near = |found: f64, expected: f64, name: &str| {
            assert!((found - expected).abs() < 1e-9, "{name}: {found}, not {expected}");
        };
        let short = profile("200ms");
        // A request that begins in the last fifth of its second ends in the next one.
        near(short.in_second(0), 0.18, "200ms, first");
        near(short.in_second(1), 0.02, "200ms, second");
        near(short.in_second(2), 0.0, "200ms, third");
        let long = profile("2500ms");
        for (place, expected) in [(0, 0.5), (1, 1.0), (2, 0.875), (3, 0.125), (4, 0.0)] {
            near(long.in_second(place), expected, "2500ms");
        }
        near(long.mean(), 2.5, "mean");
        near(long.variation(), 0.0, "variation");
    }

    #[test]
    fn a_distribution_has_its_mean_over_all_seconds() {
        let profile = profile("exponential,mean=2s");
        let sum: f64 = profile.seconds.iter().sum();
        assert!((sum - 2.0).abs() < 0.04 && (profile.variation() - 1.0).abs() < 0.03, "{sum}");
    }

    #[test]
    fn running_work_moves_on_second_by_second() {
        let mut running = RunningWork::default();
        running.begin_alike(0.25, 1.5, 2.0);
        assert_eq!((running.in_second(0), running.in_second(1), running.in_second(2)), (0.5, 2.0, 0.5));
        running.close_second();
        running.begin_many(&profile("2500ms"), 2.0);
        assert_eq!((running.in_second(0), running.in_second(1)), (3.0, 2.5));
    }
}
