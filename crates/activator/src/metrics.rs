//! What an activator counts. Listed in `docs/reference/metrics.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ::link::RefusedLinks;
use dataplane::{
    ClosedIdleConnections, ConnectionBudget, FailedHandshakes, MemoryBudget, RefusalReason, STATUS_CLASSES,
    SpanCounts, status_class,
};
use http::StatusCode;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use runtime::{DurationHistogram, MetricsListing, MetricsRegistry, REQUEST_DURATION_BOUNDS, RevisionLabels};
use vocabulary::RevisionName;

/// The bounds of waits, in seconds: from one that no client notices to the default request timeout.
const WAIT_BOUNDS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 300.0];

/// Answers of one kind for a revision.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    namespace: String,
    revision: String,
    class: &'static str,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// The handles of all metrics of the activator. Cheap to clone; register once per process.
#[derive(Clone, Debug)]
pub struct ActivatorMetrics {
    pub(crate) waiting_requests: Gauge,
    pub(crate) replay_bytes: Gauge,
    pub(crate) tasks: Gauge,
    connections_max: Gauge,
    closed_idle_connections: ClosedIdleConnections,
    pub(crate) failed_handshakes: FailedHandshakes,
    pub(crate) link_connected: Gauge,
    pub(crate) refused_links: RefusedLinks,
    pub(crate) assigned_revisions: Gauge,
    pub(crate) revision_ports: Gauge,
    pub(crate) stale_assignments: Counter,
    refused: Family<ReasonLabels, Counter>,
    unread_memory: Gauge,
    unread_memory_refusals: Counter,
    pub(crate) spans: SpanCounts,
    pub(crate) dropped_log_lines: Counter,
    revisions: RevisionFamilies,
    /// How many activators of this process serve each revision; the series of one end with the last of them.
    holders: Arc<Mutex<BTreeMap<RevisionLabels, usize>>>,
}

impl ActivatorMetrics {
    /// Registers everything, once per process.
    pub fn register(registry: &MetricsRegistry) -> Self {
        registry.with(|registry| Self::declare(&mut MetricsListing::new(registry)))
    }

    fn declare(page: &mut MetricsListing<'_>) -> Self {
        Self {
            waiting_requests: page.metric("activator_waiting_requests", "Requests that wait for a pod"),
            replay_bytes: page.metric(
                "activator_replay_bytes",
                "Bytes of request bodies that are kept for another attempt, or have room for it",
            ),
            tasks: page.metric("activator_tasks", "Tasks that are alive on the threads that serve requests"),
            connections_max: page
                .metric("activator_connections_max", "How many connections clients may have at once"),
            closed_idle_connections: page.group(|closed: &ClosedIdleConnections, registry| {
                closed.register(registry, "activator_closed_idle_connections");
            }),
            failed_handshakes: page.group(|failed: &FailedHandshakes, registry| {
                failed.register(registry, "activator_failed_tls_handshakes");
            }),
            link_connected: page.metric("activator_link_connected", "Links that autoscalers have open"),
            refused_links: page.group(|refused: &RefusedLinks, registry| {
                refused.register(registry, "activator_refused_links");
            }),
            assigned_revisions: page
                .metric("activator_assigned_revisions", "Revisions that this activator serves"),
            revision_ports: page
                .metric("activator_revision_ports", "Ports that are open for one revision each"),
            stale_assignments: page.metric(
                "activator_stale_assignments",
                "Words ignored because a newer assignment was in force, or a later owner's claim",
            ),
            refused: page
                .metric("activator_refused_requests", "Requests answered by the activator itself, by reason"),
            unread_memory: page.metric(
                "activator_unread_memory_bytes",
                "Bytes that connections hold and no reader has taken yet",
            ),
            unread_memory_refusals: page.metric(
                "activator_unread_memory_refusals",
                "Streams broken off because their connection held its part of that memory",
            ),
            spans: page.group(|spans: &SpanCounts, registry| spans.register(registry, "activator_")),
            dropped_log_lines: page.metric(
                "activator_dropped_request_log_lines",
                "Lines of the request log that were dropped because standard error was not read in time",
            ),
            revisions: RevisionFamilies::declare(page),
            holders: Arc::default(),
        }
    }

    /// Says what the process's connections hold.
    pub(crate) fn note_memory(&self, memory: &MemoryBudget) {
        self.unread_memory.set(i64::try_from(memory.held()).unwrap_or(i64::MAX));
        self.unread_memory_refusals.inc_by(memory.take_refusals());
    }

    /// The connections that clients of a process with so many descriptors may have. Made once per process:
    /// all its activators share them.
    pub fn connection_budget(&self, descriptors: u64) -> Arc<ConnectionBudget> {
        let budget = ConnectionBudget::of_descriptors(descriptors, self.closed_idle_connections.clone());
        self.connections_max.set(i64::try_from(budget.max()).unwrap_or(i64::MAX));
        budget
    }

    /// Counts a request that the activator answered itself, by its reason.
    pub(crate) fn count_refusal(&self, reason: RefusalReason) {
        self.refused.get_or_create(&ReasonLabels { reason: reason.as_str() }).inc();
    }

    /// The handles of one revision at one activator.
    pub(crate) fn of_revision(&self, name: &RevisionName) -> RevisionMetrics {
        let labels = RevisionLabels::from(name);
        let mut holders = self.holders.lock();
        *holders.entry(labels.clone()).or_default() += 1;
        let of = &self.revisions;
        RevisionMetrics {
            requests: of.requests.get_or_create_owned(&labels),
            direct_requests: of.direct_requests.get_or_create_owned(&labels),
            answered_health_checks: of.answered_health_checks.get_or_create_owned(&labels),
            retries: of.retries.get_or_create_owned(&labels),
            full_pods: of.full_pods.get_or_create_owned(&labels),
            in_flight: of.in_flight.get_or_create_owned(&labels),
            concurrency: of.concurrency.get_or_create_owned(&labels),
            waits: of.waits.get_or_create_owned(&labels),
            responses: STATUS_CLASSES
                .map(|class| of.responses.get_or_create_owned(&ResponseLabels::new(&labels, class))),
            durations: of.durations.get_or_create_owned(&labels),
            all: self.clone(),
            labels,
        }
    }
}

/// What is counted for each revision; its series end with the last activator of the process that serves it.
#[derive(Clone, Debug)]
struct RevisionFamilies {
    requests: Family<RevisionLabels, Counter>,
    direct_requests: Family<RevisionLabels, Counter>,
    answered_health_checks: Family<RevisionLabels, Counter>,
    retries: Family<RevisionLabels, Counter>,
    full_pods: Family<RevisionLabels, Counter>,
    in_flight: Family<RevisionLabels, Gauge>,
    concurrency: Family<RevisionLabels, Gauge<f64, AtomicU64>>,
    waits: Family<RevisionLabels, Histogram, fn() -> Histogram>,
    responses: Family<ResponseLabels, Counter>,
    durations: Family<RevisionLabels, DurationHistogram, fn() -> DurationHistogram>,
}

impl RevisionFamilies {
    fn declare(page: &mut MetricsListing<'_>) -> Self {
        Self {
            requests: page.metric("activator_requests", "Requests that went through the queue of a revision"),
            direct_requests: page.metric(
                "activator_direct_requests",
                "Requests that went past the queue: of a revision that is routed directly, or not measured",
            ),
            answered_health_checks: page.metric(
                "activator_answered_health_checks",
                "Requests that are not measured and were answered here, no pod being ready",
            ),
            retries: page
                .metric("activator_retries", "Attempts repeated because a pod never started the request"),
            full_pods: page.metric(
                "activator_full_pods",
                "Attempts that a pod had no room for because other activators had filled it",
            ),
            in_flight: page
                .metric("activator_in_flight_requests", "Requests that run in pods, through the queue"),
            concurrency: page.metric(
                "activator_concurrency",
                "Requests held, waiting ones included, averaged over the last second",
            ),
            waits: page.in_seconds(
                "activator_wait_duration",
                "How long requests waited for a pod, those that did",
                Family::new_with_constructor(|| Histogram::new(WAIT_BOUNDS)),
            ),
            responses: page
                .metric("activator_responses", "Answers of a revision's pods, by the class of their status"),
            durations: page.in_seconds(
                "activator_request_duration",
                "From the arrival of a request to the end of its answer, waiting included",
                Family::new_with_constructor(|| DurationHistogram::new(&REQUEST_DURATION_BOUNDS)),
            ),
        }
    }

    /// Ends the series of one revision.
    fn forget(&self, labels: &RevisionLabels) {
        self.requests.remove(labels);
        self.direct_requests.remove(labels);
        self.answered_health_checks.remove(labels);
        self.retries.remove(labels);
        self.full_pods.remove(labels);
        self.in_flight.remove(labels);
        self.concurrency.remove(labels);
        self.waits.remove(labels);
        self.durations.remove(labels);
        for class in STATUS_CLASSES {
            self.responses.remove(&ResponseLabels::new(labels, class));
        }
    }
}

/// The metrics of one revision, looked up once.
pub(crate) struct RevisionMetrics {
    pub(crate) requests: Counter,
    pub(crate) direct_requests: Counter,
    pub(crate) answered_health_checks: Counter,
    pub(crate) retries: Counter,
    pub(crate) full_pods: Counter,
    pub(crate) in_flight: Gauge,
    pub(crate) concurrency: Gauge<f64, AtomicU64>,
    pub(crate) waits: Histogram,
    /// In the order of [`STATUS_CLASSES`].
    responses: [Counter; STATUS_CLASSES.len()],
    durations: DurationHistogram,
    all: ActivatorMetrics,
    labels: RevisionLabels,
}

impl RevisionMetrics {
    /// An answer of a pod is out, or was broken off.
    pub(crate) fn answered(&self, status: StatusCode, after: Duration) {
        self.responses[status_class(status)].inc();
        // The time for which a client speaks another protocol with the app says nothing about the time that
        // an answer takes.
        if status != StatusCode::SWITCHING_PROTOCOLS {
            self.durations.observe(after);
        }
    }
}

impl ResponseLabels {
    fn new(of: &RevisionLabels, class: &'static str) -> Self {
        Self { namespace: of.namespace.clone(), revision: of.revision.clone(), class }
    }
}

/// The series of a revision end when no activator of the process serves it any more. Their handles may be
/// made anew meanwhile, so both happen under the lock.
impl Drop for RevisionMetrics {
    fn drop(&mut self) {
        let mut holders = self.all.holders.lock();
        let Some(count) = holders.get_mut(&self.labels) else { return };
        *count -= 1;
        if *count == 0 {
            holders.remove(&self.labels);
            self.all.revisions.forget(&self.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::reference_faults;

    use super::*;

    #[test]
    fn the_reference_has_a_row_for_each_metric_and_no_other() {
        let registry = MetricsRegistry::default();
        let metrics = ActivatorMetrics::register(&registry);
        metrics.count_refusal(RefusalReason::QueueFull);
        let _of_one =
            metrics.of_revision(&RevisionName::parse("default/service/hello").expect("three parts"));
        let manual = include_str!("../../../docs/reference/metrics.md");
        let page = registry.encode();
        assert_eq!(page.lines().filter(|line| line.starts_with("# TYPE ")).count(), 28);
        let faults = reference_faults(manual, &page, "activator_");
        assert_eq!(faults, [""; 0], "in docs/reference/metrics.md");
    }

    #[test]
    fn the_page_shows_every_metric_in_the_order_of_declaration() {
        let registry = MetricsRegistry::default();
        let metrics = ActivatorMetrics::register(&registry);
        let _hello = metrics.of_revision(&RevisionName::parse("default/service/hello").expect("three parts"));
        insta::assert_snapshot!(in_order(&registry.encode()));
    }

    /// Series of one family have no order of their own.
    fn in_order(page: &str) -> String {
        let mut lines: Vec<&str> = page.lines().collect();
        for series in lines.chunk_by_mut(|one, next| one.starts_with('#') == next.starts_with('#')) {
            if series.iter().all(|line| !line.starts_with('#')) {
                series.sort_unstable();
            }
        }
        lines.join("\n")
    }

    #[test]
    fn the_series_of_a_revision_end_with_the_last_activator_that_serves_it() {
        let registry = MetricsRegistry::default();
        let metrics = ActivatorMetrics::register(&registry);
        let name = RevisionName::parse("default/service/hello").expect("three parts");
        let is_shown = || registry.encode().contains("service/hello");
        let (first, second) = (metrics.of_revision(&name), metrics.of_revision(&name));
        drop(first);
        second.requests.inc();
        assert!(
            registry
                .encode()
                .contains("activator_requests_total{namespace=\"default\",revision=\"service/hello\"} 1")
        );
        assert!(is_shown());
        drop(second);
        assert!(!is_shown());
    }
}
