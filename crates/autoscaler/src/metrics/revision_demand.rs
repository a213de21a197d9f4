//! The demand of each revision for which prediction is asked, as a Prometheus server records it: an
//! autoscaler whose memory is empty asks for it (`metric_sources/recorded_pasts.rs`).

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;

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

/// The demand now; `None` while no reporter is heard: that is no zero.
fn demand(revision: &ShownRevision<'_>) -> Option<f64> {
    let status = &revision.decided.status;
    status.scorecard.and(status.stable_value)
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
