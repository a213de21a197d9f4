//! A histogram of durations that many threads fill at once: an observation is two atomic additions, and takes
//! no lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The bounds for whole requests: Knative's for its queue-proxy, and the default request timeout.
pub const REQUEST_DURATION_BOUNDS: [Duration; 15] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(75),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_millis(750),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_millis(7500),
    Duration::from_secs(10),
    Duration::from_mins(5),
];

/// See the module. Clones share it.
#[derive(Clone, Debug)]
pub struct DurationHistogram(Arc<BucketBounds>);

#[derive(Debug)]
struct BucketBounds {
    /// The longest duration that each bucket counts; beyond the last there is one more.
    bounds: &'static [Duration],
    counts: Box<[AtomicU64]>,
    nanoseconds: AtomicU64,
}

impl DurationHistogram {
    /// An empty one with these bounds, the smallest first.
    pub fn new(bounds: &'static [Duration]) -> Self {
        debug_assert!(bounds.is_sorted(), "a bucket is found by its bound");
        let counts = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self(Arc::new(BucketBounds { bounds, counts, nanoseconds: AtomicU64::default() }))
    }

    /// Counts one duration in its bucket and in the sum.
    pub fn observe(&self, duration: Duration) {
        let bucket = self.0.bounds.partition_point(|bound| *bound < duration);
        self.0.counts[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl TypedMetric for DurationHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for DurationHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let bounds = self.0.bounds.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
        let counts = self.0.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.0.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetricsRegistry;

    const BOUNDS: [Duration; 2] = [Duration::from_millis(5), Duration::from_secs(1)];

    #[test]
    fn each_duration_falls_into_the_first_bucket_that_is_no_shorter() {
        let (registry, histogram) = (MetricsRegistry::default(), DurationHistogram::new(&BOUNDS));
        registry.with(|registry| registry.register("wait_seconds", "Waits", histogram.clone()));
        for milliseconds in [0, 5, 6, 1000, 1500] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let page = registry.encode();
        for line in [
            "# TYPE wait_seconds histogram",
            "wait_seconds_sum 2.511",
            "wait_seconds_count 5",
            "wait_seconds_bucket{le=\"0.005\"} 2",
            "wait_seconds_bucket{le=\"1.0\"} 4",
            "wait_seconds_bucket{le=\"+Inf\"} 5",
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
        }
    }
}
