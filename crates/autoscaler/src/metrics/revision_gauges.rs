//! The gauges of each revision, read from snapshots when a page is written.

use std::fmt;
use std::time::Duration;

use orchestration::DecidedState;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;
use vocabulary::{PodCount, Routing};

use super::shown_autoscalers::{ShownAutoscalers, revisions};

/// What a gauge shows of a revision; `None` while that was never known.
type GaugeValue = fn(&DecidedState) -> Option<f64>;

/// Adds all gauges of revisions to a page.
pub(super) fn register(autoscalers: &ShownAutoscalers, registry: &mut Registry) {
    for (name, help, value) in GAUGES {
        let gauge = RevisionGauge { autoscalers: autoscalers.clone(), value };
        registry.register(format!("autoscaler_{name}"), help, gauge);
    }
}

/// One value of each revision. What is unknown keeps its last value.
struct RevisionGauge {
    autoscalers: ShownAutoscalers,
    value: GaugeValue,
}

const GAUGES: [(&str, &str, GaugeValue); 20] = [
    ("wanted_pods", "Pods that the platform is asked for", |one| Some(one.status.wanted.as_f64())),
    ("desired_pods", "Pods that the load calls for, before bounds", |one| {
        one.last_known.desired.map(PodCount::as_f64)
    }),
    ("ready_pods", "Pods that pass their probes", |one| Some(one.status.ready_pods.as_f64())),
    ("not_ready_pods", "Pods that do not pass their probes", |one| Some(one.status.not_ready_pods.as_f64())),
    ("pending_pods", "Pods that do not run yet", |one| Some(one.status.pending_pods.as_f64())),
    ("terminating_pods", "Pods on their way out", |one| Some(one.status.terminating_pods.as_f64())),
    ("panic_mode", "1 in panic mode, else 0", |one| Some(f64::from(u8::from(one.status.panicking)))),
    ("stable_value", "Average over the stable window, of the whole revision", |one| {
        one.last_known.stable_value
    }),
    ("panic_value", "Average over the panic window, of the whole revision", |one| one.last_known.panic_value),
    ("target_per_pod", "Load per pod aimed at", |one| Some(one.status.target_per_pod)),
    ("excess_burst_capacity", "Room beyond the target burst capacity, in requests", |one| {
        one.last_known.excess_burst_capacity.map(|room| f64::from(room.value()))
    }),
    ("through_activator", "1 while activators are in the request path, else 0", |one| {
        Some(f64::from(u8::from(one.status.routing == Routing::ThroughActivator)))
    }),
    ("waiting_requests", "Requests that wait for a slot or a pod", |one| Some(f64::from(one.status.waiting))),
    ("hpa_asked_pods", "Pods that the metrics of class hpa ask for, before windows and limits", |one| {
        one.last_known.hpa_asked.map(PodCount::as_f64)
    }),
    (
        "hpa_metric_ratio",
        "The metric of class hpa that is furthest above its target, divided by that",
        |one| one.last_known.hpa_ratio,
    ),
    ("hpa_failing_metrics", "Metrics of class hpa that say nothing", |one| {
        let metrics = &one.hpa.as_ref()?.report.metrics;
        Some(PodCount::of(metrics.iter().filter(|metric| metric.failure.is_some()).count()).as_f64())
    }),
    ("prediction_early_pods", "Pods that are asked for before the load calls for them", |one| {
        one.status.scorecard.map(|_| one.status.early_pods.as_f64())
    }),
    ("prediction_extra_pod_seconds", "Pod-seconds that prediction added in the last seven days", |one| {
        one.status.scorecard.map(|card| seconds(card.extra_pod_seconds))
    }),
    ("prediction_used_pod_seconds", "Those of them that demand needed when they were ready", |one| {
        one.status.scorecard.map(|card| seconds(card.used_pod_seconds))
    }),
    (
        "prediction_late_avoided_request_seconds",
        "Request-seconds that would have been late in the last seven days without prediction",
        |one| one.status.scorecard.map(|card| card.late_without - card.late_with),
    ),
];

/// Sums of seven days are far below what a double tells exactly.
fn seconds(sum: u64) -> f64 {
    Duration::from_secs(sum).as_secs_f64()
}

impl EncodeMetric for RevisionGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for revision in revisions(&self.autoscalers.snapshots()) {
            if let Some(value) = (self.value)(revision.decided) {
                let labels = RevisionLabels::from(revision.name);
                encoder.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        !revisions(&self.autoscalers.snapshots()).any(|revision| (self.value)(revision.decided).is_some())
    }
}

impl fmt::Debug for RevisionGauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RevisionGauge").finish_non_exhaustive()
    }
}
