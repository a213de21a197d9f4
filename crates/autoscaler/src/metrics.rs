//! What the autoscaler counts, for Prometheus. The values are Knative's (`kn_revision_*`) under our own
//! names, plus links and evaluations.

use std::sync::atomic::AtomicU64;

use orchestration::ReleaseProof;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use runtime::{MetricsRegistry, RevisionLabels};
use scaling::hpa::HpaReport;
use scaling::{Decision, RevisionStatus, Trigger};
use vocabulary::{PodCount, ReplicaName, RevisionName, Routing};

type PerRevision = Family<RevisionLabels, Gauge<f64, AtomicU64>>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabels {
    peer: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReleaseLabels {
    proof: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TriggerLabels {
    trigger: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OwnerLabels {
    owner: String,
}

/// The autoscaler's metrics. Register them once per process.
#[derive(Clone, Debug)]
pub struct AutoscalerMetrics {
    wanted_pods: PerRevision,
    desired_pods: PerRevision,
    ready_pods: PerRevision,
    not_ready_pods: PerRevision,
    pending_pods: PerRevision,
    terminating_pods: PerRevision,
    panicking: PerRevision,
    stable_value: PerRevision,
    panic_value: PerRevision,
    target_per_pod: PerRevision,
    excess_burst_capacity: PerRevision,
    through_activator: PerRevision,
    waiting_requests: PerRevision,
    asked_pods: PerRevision,
    metric_ratio: PerRevision,
    failing_metrics: PerRevision,
    links: Family<PeerLabels, Gauge>,
    links_lost: Family<PeerLabels, Counter>,
    decisions: Family<TriggerLabels, Counter>,
    problems: Gauge,
    releases: Family<ReleaseLabels, Counter>,
    owned_buckets: Family<OwnerLabels, Gauge>,
    late_orders: Counter,
}

/// The kind of program at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerKind {
    Pod,
    Activator,
}

impl PeerKind {
    fn labels(self) -> PeerLabels {
        PeerLabels {
            peer: match self {
                Self::Pod => "pod",
                Self::Activator => "activator",
            },
        }
    }
}

impl AutoscalerMetrics {
    /// Adds the autoscaler's metrics to a process's page.
    pub fn register(registry: &MetricsRegistry) -> Self {
        let metrics = Self {
            wanted_pods: Family::default(),
            desired_pods: Family::default(),
            ready_pods: Family::default(),
            not_ready_pods: Family::default(),
            pending_pods: Family::default(),
            terminating_pods: Family::default(),
            panicking: Family::default(),
            stable_value: Family::default(),
            panic_value: Family::default(),
            target_per_pod: Family::default(),
            excess_burst_capacity: Family::default(),
            through_activator: Family::default(),
            waiting_requests: Family::default(),
            asked_pods: Family::default(),
            metric_ratio: Family::default(),
            failing_metrics: Family::default(),
            links: Family::default(),
            links_lost: Family::default(),
            decisions: Family::default(),
            problems: Gauge::default(),
            releases: Family::default(),
            owned_buckets: Family::default(),
            late_orders: Counter::default(),
        };
        registry.with(|registry| {
            for (name, help, family) in metrics.per_revision() {
                registry.register(format!("autoscaler_{name}"), help, family.clone());
            }
            registry.register("autoscaler_links", "Links that are up", metrics.links.clone());
            registry.register(
                "autoscaler_links_lost",
                "Links that broke or were cut off",
                metrics.links_lost.clone(),
            );
            registry.register(
                "autoscaler_decisions",
                "Decisions that changed something, by what made us look",
                metrics.decisions.clone(),
            );
            registry.register(
                "autoscaler_configuration_problems",
                "Refused configuration, the last good one being in force",
                metrics.problems.clone(),
            );
            registry.register(
                "autoscaler_pod_releases",
                "Leaving pods that may end: acknowledged by whoever may send to them, or out of time for that",
                metrics.releases.clone(),
            );
            registry.register(
                "autoscaler_owned_buckets",
                "Buckets of revisions about which an autoscaler decides",
                metrics.owned_buckets.clone(),
            );
            registry.register(
                "autoscaler_late_orders",
                "Orders refused because their bucket had another owner by then",
                metrics.late_orders.clone(),
            );
        });
        metrics
    }

    fn per_revision(&self) -> [(&'static str, &'static str, &PerRevision); 16] {
        [
            ("wanted_pods", "Pods that the platform is asked for", &self.wanted_pods),
            ("desired_pods", "Pods that the load calls for, before bounds", &self.desired_pods),
            ("ready_pods", "Pods that pass their probes", &self.ready_pods),
            ("not_ready_pods", "Pods that do not pass their probes", &self.not_ready_pods),
            ("pending_pods", "Pods that do not run yet", &self.pending_pods),
            ("terminating_pods", "Pods on their way out", &self.terminating_pods),
            ("panic_mode", "1 in panic mode, else 0", &self.panicking),
            ("stable_value", "Average over the stable window, of the whole revision", &self.stable_value),
            ("panic_value", "Average over the panic window, of the whole revision", &self.panic_value),
            ("target_per_pod", "Load per pod aimed at", &self.target_per_pod),
            (
                "excess_burst_capacity",
                "Room beyond the target burst capacity, in requests",
                &self.excess_burst_capacity,
            ),
            (
                "through_activator",
                "1 while activators are in the request path, else 0",
                &self.through_activator,
            ),
            ("waiting_requests", "Requests that wait for a slot or a pod", &self.waiting_requests),
            (
                "hpa_asked_pods",
                "Pods that the metrics of class hpa ask for, before windows and limits",
                &self.asked_pods,
            ),
            (
                "hpa_metric_ratio",
                "The metric of class hpa that is furthest above its target, divided by that",
                &self.metric_ratio,
            ),
            ("hpa_failing_metrics", "Metrics of class hpa that say nothing", &self.failing_metrics),
        ]
    }

    /// Shows where a revision stands. What is unknown keeps its last value.
    pub(crate) fn show(&self, revision: &RevisionName, status: &RevisionStatus) {
        let labels = RevisionLabels::from(revision);
        let set = |family: &PerRevision, value: f64| {
            family.get_or_create(&labels).set(value);
        };
        set(&self.wanted_pods, status.wanted.as_f64());
        if let Some(desired) = status.desired {
            set(&self.desired_pods, desired.as_f64());
        }
        set(&self.ready_pods, status.ready_pods.as_f64());
        set(&self.not_ready_pods, status.not_ready_pods.as_f64());
        set(&self.pending_pods, status.pending_pods.as_f64());
        set(&self.terminating_pods, status.terminating_pods.as_f64());
        set(&self.panicking, f64::from(u8::from(status.panicking)));
        if let Some(value) = status.stable_value {
            set(&self.stable_value, value);
        }
        if let Some(value) = status.panic_value {
            set(&self.panic_value, value);
        }
        set(&self.target_per_pod, status.target_per_pod);
        set(&self.through_activator, f64::from(u8::from(status.routing == Routing::ThroughActivator)));
        set(&self.waiting_requests, f64::from(status.waiting));
    }

    /// Shows what the metrics of class hpa said last. What is unknown keeps its last value.
    pub(crate) fn show_hpa(&self, revision: &RevisionName, report: &HpaReport) {
        let labels = RevisionLabels::from(revision);
        if let Some(asked) = report.metrics.iter().filter_map(|metric| metric.count).max() {
            self.asked_pods.get_or_create(&labels).set(asked.as_f64());
        }
        let ratios = report.metrics.iter().filter_map(|metric| metric.ratio);
        if let Some(ratio) = ratios.filter(|ratio| ratio.is_finite()).reduce(f64::max) {
            self.metric_ratio.get_or_create(&labels).set(ratio);
        }
        let failing = report.metrics.iter().filter(|metric| metric.failure.is_some()).count();
        self.failing_metrics.get_or_create(&labels).set(PodCount::of(failing).as_f64());
    }

    /// Counts a decision by its trigger, and shows the room for a burst after it.
    pub(crate) fn decided(&self, revision: &RevisionName, decision: &Decision) {
        let trigger = match decision.trigger {
            Trigger::Tick => "tick",
            Trigger::Sync => "sync",
            Trigger::Surge => "surge",
            Trigger::Change => "change",
        };
        self.decisions.get_or_create(&TriggerLabels { trigger }).inc();
        let room = f64::from(decision.excess_burst_capacity.value());
        self.excess_burst_capacity.get_or_create(&revision.into()).set(room);
    }

    /// Drops every series of a revision that is gone.
    pub(crate) fn forget(&self, revision: &RevisionName) {
        for (_, _, family) in self.per_revision() {
            family.remove(&revision.into());
        }
    }

    pub(crate) fn link_up(&self, peer: PeerKind) {
        self.links.get_or_create(&peer.labels()).inc();
    }

    /// A link that was up is gone: `lost` if we did not end it ourselves.
    pub(crate) fn link_down(&self, peer: PeerKind, end: LinkEnding) {
        self.links.get_or_create(&peer.labels()).dec();
        match end {
            LinkEnding::Lost => {
                self.links_lost.get_or_create(&peer.labels()).inc();
            }
            LinkEnding::Closed => {}
        }
    }

    /// A leaving pod may end.
    pub(crate) fn released(&self, proof: ReleaseProof) {
        let proof = match proof {
            ReleaseProof::Acknowledged => "acknowledged",
            ReleaseProof::OutOfTime => "out_of_time",
        };
        self.releases.get_or_create(&ReleaseLabels { proof }).inc();
    }

    /// How many buckets are an autoscaler's.
    pub(crate) fn owns(&self, owner: &ReplicaName, buckets: usize) {
        let labels = OwnerLabels { owner: owner.as_str().to_owned() };
        self.owned_buckets.get_or_create(&labels).set(i64::try_from(buckets).unwrap_or(i64::MAX));
    }

    /// An order was refused because its bucket is another's by now.
    pub(crate) fn late_order(&self) {
        self.late_orders.inc();
    }

    pub(crate) fn problems(&self, count: usize) {
        self.problems.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// How a link that was up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnding {
    /// In order: by us, because its peer left or we stop, or by a peer that ends.
    Closed,
    /// By the network, or because the peer fell silent or misbehaved.
    Lost,
}

#[cfg(test)]
mod tests;
