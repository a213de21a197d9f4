//! What an activator counts. Listed in `docs/metrics.md`.

use prometheus_client::metrics::gauge::Gauge;
use runtime::MetricsRegistry;

/// The handles of all metrics of the activator. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Requests that wait for a pod.
    pub(crate) waiting_requests: Gauge,
}

impl Metrics {
    /// Registers everything, once per process.
    pub fn register(registry: &MetricsRegistry) -> Self {
        let metrics = Self::default();
        registry.with(|registry| {
            registry.register(
                "activator_waiting_requests",
                "Requests that wait for a pod",
                metrics.waiting_requests.clone(),
            );
        });
        metrics
    }
}
