//! When does the next request of an open load arrive?
//!
//! Arrivals are drawn one at a time, so a load of any length takes no memory. For a rate that changes with
//! time candidates are drawn at the bound of the present stretch, and each is kept with the probability that
//! the rate is of the bound. Beyond the end of a stretch the drawing begins anew, which changes nothing: a
//! Poisson process has no memory.

use std::time::Duration;

use crate::file_arrivals::{CountedArrivals, ListedArrivals};
use crate::fleet_load::member_load;
use crate::load_file::LoadFile;
use crate::load_shape::LoadShape;
use crate::measured_load::MeasuredArrivals;
use crate::random::{RandomStream, span_of};
use crate::rate_curve::RateCurve;

/// The arrivals of one load, as times since it began; they never fall, and may be equal.
#[derive(Debug)]
pub(crate) enum ArrivalProcess {
    Thinned(ThinnedArrivals),
    Bursts(BurstArrivals),
    Timer(TimerArrivals),
    Groups(GroupArrivals),
    Counted(CountedArrivals),
    Listed(ListedArrivals),
    Measured(MeasuredArrivals),
}

impl ArrivalProcess {
    /// The arrivals of an entity; `None` for clients, whose requests follow from answers.
    pub(crate) fn new(shape: &LoadShape, seed: u64, entity: &str) -> Option<Self> {
        let stream = |purpose: &str| RandomStream::of(seed, entity, purpose);
        match *shape {
            LoadShape::Curve(curve) => Some(Self::Thinned(ThinnedArrivals {
                curve,
                at: 0.0,
                gaps: stream("arrival-gaps"),
                choices: stream("arrival-choices"),
            })),
            LoadShape::Bursty { rate, burst, every, length } => Some(Self::Bursts(BurstArrivals {
                rate: rate.value(),
                burst: burst.value(),
                every: every.as_secs_f64(),
                length: length.as_secs_f64(),
                at: 0.0,
                begins: 0.0,
                ends: 0.0,
                gaps: stream("arrival-gaps"),
                bursts: stream("bursts"),
            })),
            LoadShape::Timer { every, requests } => {
                Some(Self::Timer(TimerArrivals { every, requests, at: Duration::ZERO, left: 0 }))
            }
            LoadShape::Sparse { every, requests } => Some(Self::Groups(GroupArrivals {
                every: every.as_secs_f64(),
                more: f64::from(requests.saturating_sub(1)),
                at: 0.0,
                left: 0,
                gaps: stream("arrival-gaps"),
                sizes: stream("group-sizes"),
            })),
            LoadShape::Fleet { most } => Self::new(&member_load(seed, entity, most), seed, entity),
            LoadShape::Clients { .. } => None,
            LoadShape::File(LoadFile::Counts { bin, ref counts }) => {
                Some(Self::Counted(CountedArrivals::new(bin, counts, stream("arrival-times"))))
            }
            LoadShape::File(LoadFile::Requests(ref requests)) => {
                Some(Self::Listed(ListedArrivals::new(requests)))
            }
            LoadShape::Measured(ref load) => {
                Some(Self::Measured(MeasuredArrivals::new(load, stream("arrival-times"))))
            }
        }
    }

    /// The work of the request that arrived last, if the load says it.
    pub(crate) fn service_time(&self) -> Option<Duration> {
        match self {
            Self::Listed(arrivals) => arrivals.service_time(),
            Self::Measured(arrivals) => arrivals.service_time(),
            Self::Thinned(_) | Self::Bursts(_) | Self::Timer(_) | Self::Groups(_) | Self::Counted(_) => None,
        }
    }
}

impl Iterator for ArrivalProcess {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        match self {
            Self::Thinned(arrivals) => arrivals.next_at().map(span_of),
            Self::Bursts(arrivals) => Some(span_of(arrivals.next_at())),
            Self::Timer(arrivals) => Some(arrivals.next_at()),
            Self::Groups(arrivals) => Some(span_of(arrivals.next_at())),
            Self::Counted(arrivals) => arrivals.next_at(),
            Self::Listed(arrivals) => arrivals.next_at(),
            Self::Measured(arrivals) => arrivals.next_at(),
        }
    }
}

/// Arrivals at the rate of a curve.
#[derive(Debug)]
pub(crate) struct ThinnedArrivals {
    curve: RateCurve,
    at: f64,
    gaps: RandomStream,
    choices: RandomStream,
}

impl ThinnedArrivals {
    /// `None` once the rate is zero for ever.
    fn next_at(&mut self) -> Option<f64> {
        loop {
            let stretch = self.curve.stretch_at(self.at);
            if stretch.most <= 0.0 && stretch.until.is_infinite() {
                return None;
            }
            let gap =
                if stretch.most > 0.0 { self.gaps.exponential(1.0 / stretch.most) } else { f64::INFINITY };
            let candidate = self.at + gap;
            if candidate >= stretch.until {
                self.at = stretch.until;
                continue;
            }
            self.at = candidate;
            if self.choices.unit() * stretch.most < self.curve.rate_at(candidate) {
                return Some(candidate);
            }
        }
    }
}

/// Arrivals at one rate, and at another within bursts.
#[derive(Debug)]
pub(crate) struct BurstArrivals {
    rate: f64,
    burst: f64,
    every: f64,
    length: f64,
    at: f64,
    /// The present burst, or the next one; before the first is drawn it has no length.
    begins: f64,
    ends: f64,
    gaps: RandomStream,
    bursts: RandomStream,
}

impl BurstArrivals {
    fn next_at(&mut self) -> f64 {
        loop {
            if self.at >= self.ends {
                self.begins = self.ends + self.bursts.exponential(self.every);
                self.ends = self.begins + self.length;
            }
            let is_calm = self.at < self.begins;
            let rate = if is_calm { self.rate } else { self.burst };
            let until = if is_calm { self.begins } else { self.ends };
            let gap = if rate > 0.0 { self.gaps.exponential(1.0 / rate) } else { f64::INFINITY };
            if self.at + gap < until {
                self.at += gap;
                return self.at;
            }
            self.at = until;
        }
    }
}

/// Groups of one size at a fixed interval.
#[derive(Debug)]
pub(crate) struct TimerArrivals {
    every: Duration,
    requests: u32,
    at: Duration,
    /// The requests of the present group that are still to come.
    left: u32,
}

impl TimerArrivals {
    fn next_at(&mut self) -> Duration {
        if self.left == 0 {
            self.at = self.at.saturating_add(self.every);
            self.left = self.requests;
        }
        self.left -= 1;
        self.at
    }
}

/// Groups of random size at random times.
#[derive(Debug)]
pub(crate) struct GroupArrivals {
    every: f64,
    /// The mean size of a group, without its first request.
    more: f64,
    at: f64,
    left: u32,
    gaps: RandomStream,
    sizes: RandomStream,
}

impl GroupArrivals {
    fn next_at(&mut self) -> f64 {
        if self.left == 0 {
            self.at += self.gaps.exponential(self.every);
            self.left = 1 + self.sizes.poisson(self.more);
        }
        self.left -= 1;
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(text: &str, seed: u64) -> ArrivalProcess {
        ArrivalProcess::new(&LoadShape::of_option(text), seed, "hello").expect("an open load")
    }

    /// The seeds at which each shape is tried.
    const SEEDS: [u64; 3] = [7, 8, 42];

    /// How many requests arrive from one second to another.
    fn count(text: &str, from: u64, to: u64, seed: u64) -> f64 {
        let seconds = Duration::from_secs(from)..Duration::from_secs(to);
        let times = arrivals(text, seed).take_while(|at| *at < seconds.end).filter(|at| *at >= seconds.start);
        f64::from(u32::try_from(times.count()).expect("few"))
    }

    /// A Poisson number deviates by its root; four times that is the tolerance here.
    fn assert_poisson(found: f64, expected: f64, load: &str) {
        let tolerance = 4.0 * libm::sqrt(expected);
        assert!((found - expected).abs() < tolerance, "{load}: {found} requests, not {expected}");
    }

    #[test]
    fn every_shape_has_its_number_of_requests() {
        for (load, from, to, expected) in [
            ("hello=constant,rate=50rps", 0, 600, 30_000.0),
            ("hello=step,from=5rps,to=50rps,at=5m", 0, 300, 1_500.0),
            ("hello=step,from=5rps,to=50rps,at=5m", 300, 600, 15_000.0),
            ("hello=ramp,from=0rps,to=50rps,over=10m", 0, 600, 15_000.0),
            ("hello=ramp,from=0rps,to=50rps,over=10m", 600, 700, 5_000.0),
            ("hello=diurnal,peak=20rps,trough=2rps,period=1h", 0, 7_200, 79_200.0),
            ("hello=timer,every=5m,requests=20", 0, 3_601, 240.0),
            ("hello=sparse,every=10m", 0, 864_000, 1_440.0),
        ] {
            for seed in SEEDS {
                assert_poisson(count(load, from, to, seed), expected, load);
            }
        }
        // Days of a week: each has the mean of trough and peak.
        let week = "hello=weekly,peak=2rps,trough=0rps,weekend=1rps";
        for seed in SEEDS {
            assert_poisson(count(week, 0, 86_400, seed), 86_400.0, week);
            assert_poisson(count(week, 5 * 86_400, 6 * 86_400, seed), 43_200.0, week);
        }
    }

    /// The size of a group deviates too, and so does the number of bursts: the tolerance is a tenth.
    #[test]
    fn groups_and_bursts_have_their_number_of_requests() {
        for seed in SEEDS {
            let groups = count("hello=sparse,every=1m,requests=3", 0, 600_000, seed);
            assert!((groups - 30_000.0).abs() < 3_000.0, "{groups}");
            // Of each 80 s on average 20 s are a burst.
            let bursts = count("hello=bursty,rate=1rps,burst=9rps,every=1m,length=20s", 0, 100_000, seed);
            assert!((bursts - 300_000.0).abs() < 30_000.0, "{bursts}");
        }
    }

    #[test]
    fn a_seed_repeats_its_arrivals_and_another_one_has_others() {
        let first = |seed| arrivals("hello=constant,rate=50rps", seed).take(100).collect::<Vec<_>>();
        assert_eq!(first(7), first(7));
        assert_ne!(first(7), first(8));
        assert!(first(7).is_sorted());
    }

    #[test]
    fn a_load_that_ends_has_no_further_arrivals() {
        let last = arrivals("hello=step,from=50rps,to=0rps,at=10s", 7).last();
        assert!(last.is_some_and(|at| at < Duration::from_secs(10)));
    }
}
