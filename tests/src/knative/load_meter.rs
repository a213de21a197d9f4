//! How many requests are in flight, as a mean over time: data plane §2.11 and §3.8.

use std::time::Duration;

/// Whether a request came through an activator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestOrigin {
    Client,
    Activator,
}

/// The load of one period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PeriodLoad {
    pub(super) concurrency: f64,
    pub(super) proxied_concurrency: f64,
    pub(super) requests: f64,
    pub(super) proxied_requests: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RequestSeries {
    in_flight: u32,
    /// Seconds that requests have spent in flight in this period.
    spent: f64,
    arrived: u32,
}

/// Counts the requests of one revision, or of one pod.
#[derive(Debug)]
pub(super) struct PeriodMeter {
    period_begun: Duration,
    changed: Duration,
    all: RequestSeries,
    proxied: RequestSeries,
}

impl PeriodMeter {
    /// A meter whose first period begins now.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            period_begun: now,
            changed: now,
            all: RequestSeries::default(),
            proxied: RequestSeries::default(),
        }
    }

    pub(super) fn arrived(&mut self, origin: RequestOrigin, now: Duration) {
        self.pass(now);
        for series in self.series(origin) {
            series.in_flight += 1;
            series.arrived += 1;
        }
    }

    pub(super) fn ended(&mut self, origin: RequestOrigin, now: Duration) {
        self.pass(now);
        for series in self.series(origin) {
            series.in_flight -= 1;
        }
    }

    /// Whether a request is in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.all.in_flight > 0
    }

    /// Ends the period, and begins the next one.
    pub(super) fn report(&mut self, now: Duration) -> PeriodLoad {
        self.pass(now);
        let seconds = now.saturating_sub(self.period_begun).as_secs_f64();
        let mean = |series: RequestSeries| if seconds > 0.0 { series.spent / seconds } else { 0.0 };
        let load = PeriodLoad {
            concurrency: mean(self.all),
            proxied_concurrency: mean(self.proxied),
            requests: f64::from(self.all.arrived),
            proxied_requests: f64::from(self.proxied.arrived),
        };
        self.period_begun = now;
        for series in [&mut self.all, &mut self.proxied] {
            series.spent = 0.0;
            series.arrived = 0;
        }
        load
    }

    fn series(&mut self, origin: RequestOrigin) -> impl Iterator<Item = &mut RequestSeries> {
        let proxied = (origin == RequestOrigin::Activator).then_some(&mut self.proxied);
        std::iter::once(&mut self.all).chain(proxied)
    }

    fn pass(&mut self, now: Duration) {
        let seconds = now.saturating_sub(self.changed).as_secs_f64();
        for series in [&mut self.all, &mut self.proxied] {
            series.spent += f64::from(series.in_flight) * seconds;
        }
        self.changed = now;
    }
}

/// The loads of a revision at an activator: the first request is told at once, and is not told twice.
#[derive(Debug)]
pub(super) struct PushedLoad {
    pub(super) meter: PeriodMeter,
    is_first_told: bool,
}

impl PushedLoad {
    /// Begun by the first request, for which the load {1, 1} goes out at once.
    pub(super) fn new(now: Duration) -> Self {
        Self { meter: PeriodMeter::new(now), is_first_told: true }
    }

    /// The load of the period, and whether the revision is still of interest.
    pub(super) fn report(&mut self, now: Duration) -> (PeriodLoad, bool) {
        let mut load = self.meter.report(now);
        let is_kept = load.concurrency > 0.0 || self.meter.is_busy();
        if std::mem::take(&mut self.is_first_told) {
            load.concurrency = (load.concurrency - 1.0).max(0.0);
            load.requests -= 1.0;
        }
        (load, is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn concurrency_is_a_mean_over_time() {
        let mut meter = PeriodMeter::new(at(0));
        meter.arrived(RequestOrigin::Client, at(0));
        meter.arrived(RequestOrigin::Activator, at(500));
        let load = meter.report(at(1_000));
        assert_eq!((load.concurrency, load.proxied_concurrency), (1.5, 0.5));
        assert_eq!((load.requests, load.proxied_requests), (2.0, 1.0));
        meter.ended(RequestOrigin::Client, at(1_250));
        let load = meter.report(at(2_000));
        assert_eq!((load.concurrency, load.proxied_concurrency, load.requests), (1.25, 1.0, 0.0));
        assert!(meter.is_busy());
    }

    #[test]
    fn the_first_request_at_an_activator_is_told_once() {
        let mut pushed = PushedLoad::new(at(0));
        pushed.meter.arrived(RequestOrigin::Client, at(0));
        let (load, is_kept) = pushed.report(at(1_000));
        assert_eq!((load.concurrency, load.requests, is_kept), (0.0, 0.0, true));
        pushed.meter.ended(RequestOrigin::Client, at(1_000));
        assert_eq!(
            pushed.report(at(2_000)),
            (PeriodLoad::default(), false),
            "one message of zero, and no more"
        );
    }
}
