//! How much ran, second by second?
//!
//! Concurrency is integrated over time: two requests of half a second each are one on average, whether they
//! overlap or not. Requests count from arrival, so what waits for a slot is load too.
//!
//! Knative's activator sends a message at the first request of an idle revision and subtracts it from the
//! next report; if the message is lost, a waiting request is invisible. Here a second's value replaces
//! each early report, so nothing is ever subtracted.

mod seconds;

use std::time::Duration;

use vocabulary::{Concurrency, Load, RequestRate, Timestamp};

pub use seconds::{EndedSeconds, ReporterSeconds};

/// Which way a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The request came from a client, not through an activator.
    Direct,
    /// From an activator, which counts it already.
    Proxied,
}

/// The requests that are held at this instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresentLoad {
    /// All requests, waiting ones included.
    pub in_flight: u32,
    /// Those of them that came through an activator.
    pub proxied: u32,
}

/// Turns arrivals and ends into one [`Load`] per second.
#[derive(Clone, Debug)]
pub struct LoadMeter {
    present: PresentLoad,
    last: Timestamp,
    elapsed: Duration,
    /// Request-seconds since the last report.
    held: f64,
    proxied_held: f64,
    arrivals: u32,
    proxied_arrivals: u32,
}

impl LoadMeter {
    /// A meter that starts to count at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self {
            present: PresentLoad::default(),
            last: now,
            elapsed: Duration::ZERO,
            held: 0.0,
            proxied_held: 0.0,
            arrivals: 0,
            proxied_arrivals: 0,
        }
    }

    /// The period that is measured began earlier by so much, in which nothing was held.
    pub(crate) fn began_earlier(&mut self, by: Duration) {
        self.elapsed += by;
    }

    /// A request arrived. A time before the last known one counts as that one: clocks of several threads need
    /// not agree to the nanosecond.
    pub fn arrived(&mut self, origin: Origin, now: Timestamp) {
        self.advance(now);
        self.present.in_flight += 1;
        self.arrivals += 1;
        if origin == Origin::Proxied {
            self.present.proxied += 1;
            self.proxied_arrivals += 1;
        }
    }

    /// A request ended, however it did.
    pub fn finished(&mut self, origin: Origin, now: Timestamp) {
        self.advance(now);
        debug_assert!(self.present.in_flight > 0, "only what arrived ends");
        self.present.in_flight = self.present.in_flight.saturating_sub(1);
        if origin == Origin::Proxied {
            self.present.proxied = self.present.proxied.saturating_sub(1);
        }
    }

    /// Ends `count` seconds together, one unless the caller was late, and returns the load of each; what is
    /// in flight stays. Averages are the same in all of them, arrivals are shared out by the nominal seconds,
    /// not by the time that really passed: sums over windows stay exact. How many wait is not the meter's to
    /// know: [`Load::queued`] is zero.
    pub fn close_seconds(&mut self, count: u32, now: Timestamp) -> Load {
        self.close_period(Duration::from_secs(count.max(1).into()), now)
    }

    /// [`LoadMeter::close_seconds`] for a period of any nominal length but zero.
    fn close_period(&mut self, nominal: Duration, now: Timestamp) -> Load {
        self.advance(now);
        let seconds = self.elapsed.as_secs_f64();
        let average = |held: f64| Concurrency::clamped(if seconds > 0.0 { held / seconds } else { 0.0 });
        let rate = |arrivals: u32| RequestRate::clamped(f64::from(arrivals) / nominal.as_secs_f64());
        let load = Load {
            concurrency: average(self.held),
            proxied_concurrency: average(self.proxied_held),
            request_rate: rate(self.arrivals),
            proxied_request_rate: rate(self.proxied_arrivals),
            queued: 0,
        };
        *self = Self { present: self.present, ..Self::new(self.last) };
        load
    }

    /// The requests that are held now.
    pub fn present(&self) -> PresentLoad {
        self.present
    }

    fn advance(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.last);
        if passed.is_zero() {
            return;
        }
        self.last = now;
        self.elapsed += passed;
        let seconds = passed.as_secs_f64();
        self.held += f64::from(self.present.in_flight) * seconds;
        self.proxied_held += f64::from(self.present.proxied) * seconds;
    }
}

#[cfg(test)]
mod tests;
