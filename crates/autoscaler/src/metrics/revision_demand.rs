//! The demand of each revision for which prediction is asked, as a Prometheus server records it: an
//! autoscaler whose memory is empty asks for it (`metric_sources/recorded_pasts.rs`).

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;
use settings::DemandMetric;

use super::shown_autoscalers::{ShownAutoscalers, ShownRevision, revisions};
use crate::demand_series::{DEMAND_SERIES, metric_label};

/// A number means nothing without what it counts, which may be another tomorrow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DemandLabels {
    namespace: String,
    revision: String,
    metric: &'static str,
}

/// Adds the gauge to a page.
pub(super) fn register(autoscalers: &ShownAutoscalers, registry: &mut Registry) {
    let help = "Demand where prediction is on, averaged over the stable window";
    registry.register(DEMAND_SERIES, help, DemandGauge(autoscalers.clone()));
}

struct DemandGauge(ShownAutoscalers);

/// The demand now; `None` while no reporter is heard: that is no zero. `None`, too, where demand is cores in
/// use: the average is one of requests, which an autoscaler would read back as cores.
fn demand(revision: &ShownRevision<'_>) -> Option<f64> {
    let status = &revision.decided.status;
    status.scorecard.and(status.stable_value).filter(|_| revision.metric != DemandMetric::Cpu)
}

impl EncodeMetric for DemandGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for shown in revisions(&self.0.snapshots()) {
            if let Some(value) = demand(&shown) {
                let RevisionLabels { namespace, revision } = RevisionLabels::from(shown.name);
                let labels = DemandLabels { namespace, revision, metric: metric_label(shown.metric) };
                encoder.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        !revisions(&self.0.snapshots()).any(|shown| demand(&shown).is_some())
    }
}

impl fmt::Debug for DemandGauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DemandGauge").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Timestamp;

    use super::*;
    use crate::metrics::tests::decided_revision;

    #[test]
    fn an_average_of_requests_is_no_use_of_processors() {
        let revision = decided_revision();
        let decided = revision.decided.as_ref().expect("it is decided about");
        let shown = |metric| ShownRevision {
            name: &revision.facts.name,
            decided,
            metric,
            published_at: Timestamp::ZERO,
        };
        assert_eq!(demand(&shown(DemandMetric::Concurrency)), Some(9.5));
        assert_eq!(demand(&shown(DemandMetric::Cpu)), None);
    }
}
