//! When does the next request of a load arrive that stands in a file?

use std::sync::Arc;
use std::time::Duration;

use crate::load_file::ListedRequest;
use crate::random::{RandomStream, span_of};

/// Arrivals by the number of requests in each bin of time. Within its bin each request may arrive at any time
/// with the same chance, as in a Poisson process of which so many events are known.
#[derive(Debug)]
pub(crate) struct CountedArrivals {
    bin: Duration,
    counts: Arc<[u32]>,
    /// The place of the bin after the present one.
    next: usize,
    /// When the present bin begins.
    begins: Duration,
    /// The requests of the present bin that are still to come.
    left: u32,
    /// The part of the present bin that has passed, from 0 to 1.
    passed: f64,
    draws: RandomStream,
}

impl CountedArrivals {
    pub(crate) fn new(bin: Duration, counts: &Arc<[u32]>, draws: RandomStream) -> Self {
        let counts = Arc::clone(counts);
        Self { bin, counts, next: 0, begins: Duration::ZERO, left: 0, passed: 0.0, draws }
    }

    /// `None` once every bin is over.
    pub(crate) fn next_at(&mut self) -> Option<Duration> {
        while self.left == 0 {
            self.left = *self.counts.get(self.next)?;
            self.begins = self.bin.saturating_mul(u32::try_from(self.next).unwrap_or(u32::MAX));
            self.next += 1;
            self.passed = 0.0;
        }
        // All requests that are left arrive later than a part p of the rest of the bin with the chance
        // (1 - p)^left; solved for p, with `expm1` because p is tiny where many are left.
        let part = -libm::expm1(libm::log(1.0 - self.draws.unit()) / f64::from(self.left));
        self.passed += (1.0 - self.passed) * part;
        self.left -= 1;
        Some(self.begins + span_of(self.bin.as_secs_f64() * self.passed))
    }
}

/// Arrivals that a file lists, each with its work where the file says that.
#[derive(Debug)]
pub(crate) struct ListedArrivals {
    requests: Arc<[ListedRequest]>,
    /// The place of the request that arrives next.
    next: usize,
}

impl ListedArrivals {
    pub(crate) fn new(requests: &Arc<[ListedRequest]>) -> Self {
        Self { requests: Arc::clone(requests), next: 0 }
    }

    /// `None` once every request has arrived.
    pub(crate) fn next_at(&mut self) -> Option<Duration> {
        let request = self.requests.get(self.next)?;
        self.next += 1;
        Some(request.at)
    }

    /// The work of the request that arrived last, if the file says it.
    pub(crate) fn service_time(&self) -> Option<Duration> {
        self.requests.get(self.next.checked_sub(1)?)?.service_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bin_has_its_number_of_requests_which_are_spread_evenly() {
        let counts: Arc<[u32]> = [4_000, 0, 2_000].into();
        let mut arrivals =
            CountedArrivals::new(Duration::from_secs(60), &counts, RandomStream::of(7, "hello", "arrivals"));
        let times: Vec<Duration> = std::iter::from_fn(|| arrivals.next_at()).collect();
        assert!(times.is_sorted());
        let between = |from: u64, to: u64| {
            let seconds = Duration::from_secs(from)..Duration::from_secs(to);
            times.iter().filter(|at| seconds.contains(*at)).count()
        };
        assert_eq!((between(0, 60), between(60, 120), between(120, 180)), (4_000, 0, 2_000));
        // Half of a bin has half of its requests, within four standard deviations of a fair coin.
        assert!(between(0, 30).abs_diff(2_000) < 127 && between(120, 150).abs_diff(1_000) < 90, "{times:?}");
    }

    #[test]
    fn a_list_is_followed_with_its_work() {
        let request = |at, service_time| ListedRequest { at: Duration::from_secs(at), service_time };
        let work = Some(Duration::from_millis(80));
        let requests: Arc<[ListedRequest]> = [request(1, None), request(3, work)].into();
        let mut arrivals = ListedArrivals::new(&requests);
        assert_eq!(arrivals.service_time(), None);
        assert_eq!((arrivals.next_at(), arrivals.service_time()), (Some(Duration::from_secs(1)), None));
        assert_eq!((arrivals.next_at(), arrivals.service_time()), (Some(Duration::from_secs(3)), work));
        assert_eq!(arrivals.next_at(), None);
    }
}
