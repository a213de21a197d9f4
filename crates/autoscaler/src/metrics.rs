//! What the autoscaler counts, for Prometheus. The values are Knative's (`kn_revision_*`) under our own
//! names, plus links and evaluations.

mod prediction_rule;
mod revision_counters;
mod revision_demand;
mod revision_gauges;
mod shown_autoscalers;

use orchestration::ReleaseProof;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use runtime::{MetricsListing, MetricsRegistry};
use scaling::{Decision, Trigger};
use vocabulary::ReplicaName;

use self::shown_autoscalers::ShownAutoscalers;
use crate::snapshot::SnapshotReader;

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
    autoscalers: ShownAutoscalers,
    links: Family<PeerLabels, Gauge>,
    links_lost: Family<PeerLabels, Counter>,
    decisions: Family<TriggerLabels, Counter>,
    problems: Gauge,
    releases: Family<ReleaseLabels, Counter>,
    owned_buckets: Family<OwnerLabels, Gauge>,
    late_orders: Counter,
    record_dropped: Counter,
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
        registry.with(|registry| Self::declare(&mut MetricsListing::new(registry)))
    }

    fn declare(page: &mut MetricsListing<'_>) -> Self {
        Self {
            autoscalers: page.group(|autoscalers, registry| {
                revision_gauges::register(autoscalers, registry);
                prediction_rule::register(autoscalers, registry);
                revision_demand::register(autoscalers, registry);
                revision_counters::register(autoscalers, registry);
            }),
            links: page.metric("autoscaler_links", "Links that are up"),
            links_lost: page.metric("autoscaler_links_lost", "Links that broke or were cut off"),
            decisions: page
                .metric("autoscaler_decisions", "Decisions that changed something, by what made us look"),
            problems: page.metric(
                "autoscaler_configuration_problems",
                "Refused configuration, the last good one being in force",
            ),
            releases: page.metric(
                "autoscaler_pod_releases",
                "Leaving pods that may end: acknowledged by every activator that knew them, or late",
            ),
            owned_buckets: page
                .metric("autoscaler_owned_buckets", "Buckets of revisions about which an autoscaler decides"),
            late_orders: page.metric(
                "autoscaler_late_orders",
                "Orders refused because their bucket had another owner by then",
            ),
            record_dropped: page.metric(
                "autoscaler_record_dropped",
                "Calls of the control loop that are not in the record of its run",
            ),
        }
    }

    /// Shows the revisions of one more autoscaler, until it ends.
    pub(crate) fn show(&self, reader: SnapshotReader) {
        self.autoscalers.add(reader);
    }

    /// Counts a decision by its trigger.
    pub(crate) fn decided(&self, decision: &Decision) {
        let trigger = match decision.trigger {
            Trigger::Tick => "tick",
            Trigger::Sync => "sync",
            Trigger::Surge => "surge",
            Trigger::Change => "change",
        };
        self.decisions.get_or_create(&TriggerLabels { trigger }).inc();
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

    /// Calls of the control loop could not be recorded.
    pub(crate) fn record_dropped(&self, calls: u64) {
        self.record_dropped.inc_by(calls);
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
pub(crate) mod tests;
