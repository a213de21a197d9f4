//! The gauges of each revision, read from snapshots when a page is written.
//!
//! The event loop sets none of them: a page of ten thousand revisions costs the reader that asks for it.
//! Several autoscalers of one process share a page, and a revision that two of them know for a moment, while
//! its bucket changes hands, is that of the later owner.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use orchestration::{ControlSnapshot, DecidedState, RevisionSnapshot};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;
use vocabulary::{PodCount, RevisionName, Routing};

use crate::snapshot::{Snapshot, SnapshotReader};

/// The autoscalers of a process, as far as they run.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownAutoscalers(Arc<Mutex<Vec<SnapshotReader>>>);

impl ShownAutoscalers {
    /// Shows one more autoscaler, until it ends.
    pub(super) fn add(&self, reader: SnapshotReader) {
        let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|known| known.latest().is_some());
        readers.push(reader);
    }

    fn snapshots(&self) -> Vec<Arc<Snapshot>> {
        let readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readers.iter().filter_map(SnapshotReader::latest).collect()
    }

    /// Adds all gauges of revisions to a page.
    pub(super) fn register(&self, registry: &mut Registry) {
        for (name, help, value) in GAUGES {
            let gauge = RevisionGauge { autoscalers: self.clone(), value };
            registry.register(format!("autoscaler_{name}"), help, gauge);
        }
    }
}

/// What a gauge shows of a revision; `None` while that was never known.
type GaugeValue = fn(&DecidedState) -> Option<f64>;

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

/// All revisions of these snapshots, each as its latest owner knows it.
fn revisions(snapshots: &[Arc<Snapshot>]) -> impl Iterator<Item = (&RevisionName, &DecidedState)> {
    snapshots.iter().flat_map(move |snapshot| {
        let owned = snapshot.control.revisions().iter();
        let latest = owned.filter(move |(name, revision)| {
            let is_later = |other: &Arc<Snapshot>| epoch_in(&other.control, name) > epoch(revision);
            !snapshots.iter().any(is_later)
        });
        latest.filter_map(|(name, revision)| Some((name, revision.decided.as_ref()?)))
    })
}

fn epoch_in(control: &ControlSnapshot, name: &RevisionName) -> Option<u64> {
    epoch(control.revisions().get(name)?)
}

fn epoch(revision: &RevisionSnapshot) -> Option<u64> {
    revision.fence.map(|fence| fence.epoch.0)
}

impl EncodeMetric for RevisionGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (name, decided) in revisions(&self.autoscalers.snapshots()) {
            if let Some(value) = (self.value)(decided) {
                let labels = RevisionLabels::from(name);
                encoder.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        !revisions(&self.autoscalers.snapshots()).any(|(_, decided)| (self.value)(decided).is_some())
    }
}

impl fmt::Debug for RevisionGauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RevisionGauge").finish_non_exhaustive()
    }
}
