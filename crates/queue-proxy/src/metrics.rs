//! What Prometheus sees of this queue-proxy; `docs/reference/metrics.md` lists it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::link::RefusedLinks;
use dataplane::{
    ClosedIdleConnections, ConnectionBudget, MemoryBudget, RefusalReason, STATUS_CLASSES, SpanCounts,
    status_class,
};
use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use runtime::{DurationHistogram, MetricsListing, MetricsRegistry, REQUEST_DURATION_BOUNDS};
use vocabulary::PodState;

/// How a request ended, as the metrics count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// With an answer of the app that has this status.
    Answered(StatusCode),
    /// With a refusal of ours.
    Refused(RefusalReason),
    /// The client left before there was an answer.
    Cancelled,
}

/// The counters of the hot path, looked up once.
pub(crate) struct QueueProxyMetrics {
    registry: MetricsRegistry,
    answered: Counter,
    cancelled: Counter,
    refusals: Counter,
    /// In the order of [`RefusalReason::ALL`].
    refused: Vec<Counter>,
    /// In the order of [`STATUS_CLASSES`].
    responses: Vec<Counter>,
    refused_links: RefusedLinks,
    closed_idle_connections: ClosedIdleConnections,
    connections_max: Gauge,
    durations: DurationHistogram,
    in_flight: Gauge,
    waiting: Gauge,
    container_concurrency: Gauge,
    connections: Gauge,
    upgraded: Gauge,
    unread_memory: Gauge,
    unread_memory_refusals: Counter,
    dropped_log_lines: Counter,
    late_bytes: Counter,
    spans: SpanCounts,
    link_port: Gauge,
    ready: Gauge,
}

/// The values of gauges, which are read when the page is asked for.
pub(crate) struct Levels {
    pub(crate) in_flight: u32,
    pub(crate) waiting: u32,
    pub(crate) connections: usize,
    pub(crate) upgraded: usize,
    pub(crate) memory: &'static MemoryBudget,
    pub(crate) state: PodState,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalReasonLabel {
    reason: &'static str,
}

/// A counter for each class of statuses, in their order.
fn by_class(family: &Family<ClassLabel, Counter>) -> Vec<Counter> {
    STATUS_CLASSES.iter().map(|&class| family.get_or_create(&ClassLabel { class }).clone()).collect()
}

/// A counter for each reason of a refusal, in their order.
fn by_reason(family: &Family<RefusalReasonLabel, Counter>) -> Vec<Counter> {
    let counter = |reason: &RefusalReason| {
        family.get_or_create(&RefusalReasonLabel { reason: reason.as_str() }).clone()
    };
    RefusalReason::ALL.iter().map(counter).collect()
}

impl QueueProxyMetrics {
    pub(crate) fn new(container_concurrency: u32) -> Rc<Self> {
        let all = MetricsRegistry::default();
        let metrics = all.with(|registry| {
            let registry = registry.sub_registry_with_prefix("queue_proxy");
            Self::declare(&mut MetricsListing::new(registry), all.clone())
        });
        metrics.container_concurrency.set(container_concurrency.into());
        Rc::new(metrics)
    }

    fn declare(page: &mut MetricsListing<'_>, registry: MetricsRegistry) -> Self {
        let outcomes: Family<OutcomeLabel, Counter> = page.metric("requests", "Requests that ended, by how");
        let outcome = |outcome| outcomes.get_or_create(&OutcomeLabel { outcome }).clone();
        Self {
            registry,
            answered: outcome("answered"),
            cancelled: outcome("cancelled"),
            refusals: outcome("refused"),
            refused: by_reason(
                &page.metric("refused_requests", "Requests that this proxy refused, by reason"),
            ),
            responses: by_class(
                &page.metric("responses", "Answers of the app, by the class of their status"),
            ),
            refused_links: page
                .group(|refused: &RefusedLinks, registry| refused.register(registry, "refused_links")),
            closed_idle_connections: page.group(|closed: &ClosedIdleConnections, registry| {
                closed.register(registry, "closed_idle_connections");
            }),
            connections_max: page.metric("connections_max", "How many connections clients may have at once"),
            durations: page.prepared(
                "request_duration_seconds",
                "From the arrival of a request to the end of its response, waiting included",
                DurationHistogram::new(&REQUEST_DURATION_BOUNDS),
            ),
            in_flight: page.metric("in_flight_requests", "Requests held, waiting ones included"),
            waiting: page.metric("waiting_requests", "Requests that wait for a slot"),
            container_concurrency: page
                .metric("container_concurrency", "The limit on running requests; 0 is none"),
            connections: page.metric("open_connections", "Connections to the request port"),
            upgraded: page.metric("upgraded_streams", "WebSockets and the like"),
            unread_memory: page
                .metric("unread_memory_bytes", "Bytes that connections hold and no reader has taken yet"),
            unread_memory_refusals: page.metric(
                "unread_memory_refusals",
                "Streams broken off because their connection held its part of that memory",
            ),
            dropped_log_lines: page.metric(
                "dropped_request_log_lines",
                "Lines of the request log that were dropped because standard error was not read in time",
            ),
            late_bytes: page
                .metric("late_bytes", "Connections to the app on which bytes came behind a whole response"),
            spans: page.group(|spans: &SpanCounts, registry| spans.register(registry, "")),
            link_port: page.metric(
                "link_port",
                "1 if the port of the autoscaler's link is open, 0 if it could not be had",
            ),
            ready: page.metric("ready", "1 while the app passes its readiness probe"),
        }
    }

    pub(crate) fn ended(&self, outcome: RequestOutcome, after: Duration) {
        match outcome {
            RequestOutcome::Answered(status) => {
                self.responses[status_class(status)].inc();
                self.answered.inc()
            }
            RequestOutcome::Cancelled => self.cancelled.inc(),
            RequestOutcome::Refused(reason) => self.refuse(reason),
        };
        self.durations.observe(after);
    }

    /// A refusal, also of something that never counted as a request in flight.
    pub(crate) fn refuse(&self, reason: RefusalReason) -> u64 {
        let index =
            RefusalReason::ALL.iter().position(|known| *known == reason).expect("all reasons are listed");
        self.refused[index].inc();
        self.refusals.inc()
    }

    /// The connections that clients of a process with so many descriptors may have.
    pub(crate) fn connection_budget(&self, descriptors: u64) -> Arc<ConnectionBudget> {
        let budget = ConnectionBudget::of_descriptors(descriptors, self.closed_idle_connections.clone());
        self.connections_max.set(i64::try_from(budget.max()).unwrap_or(i64::MAX));
        budget
    }

    /// Whether the port of the link could be had.
    pub(crate) fn note_link_port(&self, is_open: bool) {
        self.link_port.set(i64::from(is_open));
    }

    /// The counter of lines of the request log that were dropped because standard error was not read in time.
    pub(crate) fn dropped_log_lines(&self) -> Counter {
        self.dropped_log_lines.clone()
    }

    /// The counter of connections on which the app sent bytes behind a whole response.
    pub(crate) fn late_bytes(&self) -> Counter {
        self.late_bytes.clone()
    }

    /// The counters of delivered and dropped spans.
    pub(crate) fn spans(&self) -> SpanCounts {
        self.spans.clone()
    }

    /// The counters of connections to the link port that were not the autoscaler's.
    pub(crate) fn refused_links(&self) -> RefusedLinks {
        self.refused_links.clone()
    }

    /// The page of all metrics in the OpenMetrics text format; `levels` are written into the gauges first.
    pub(crate) fn page(&self, levels: &Levels) -> String {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.in_flight.set(levels.in_flight.into());
        self.waiting.set(levels.waiting.into());
        self.connections.set(whole(levels.connections));
        self.upgraded.set(whole(levels.upgraded));
        self.unread_memory.set(whole(levels.memory.held()));
        self.unread_memory_refusals.inc_by(levels.memory.take_refusals());
        self.ready.set(i64::from(levels.state == PodState::Ready));
        self.registry.encode()
    }
}

#[cfg(test)]
mod tests {
    use runtime::reference_faults;

    use super::*;

    fn page() -> String {
        let metrics = QueueProxyMetrics::new(7);
        let memory = MemoryBudget::of_process(None);
        metrics.page(&Levels {
            in_flight: 1,
            waiting: 2,
            connections: 3,
            upgraded: 4,
            memory,
            state: PodState::Ready,
        })
    }

    #[test]
    fn the_page_shows_every_metric_in_the_order_of_declaration() {
        insta::assert_snapshot!(in_order(&page()));
    }

    #[test]
    fn the_reference_has_a_row_for_each_metric_and_no_other() {
        let manual = include_str!("../../../docs/reference/metrics.md");
        let faults = reference_faults(manual, &page(), "queue_proxy_");
        assert_eq!(faults, [""; 0], "in docs/reference/metrics.md");
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
}
