//! The rule by which pods of each revision are asked for before demand, by its name.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use runtime::RevisionLabels;

use super::shown_autoscalers::{ShownAutoscalers, revisions};

/// A revision has one of these at a time, and there are 21 rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RuleLabels {
    namespace: String,
    revision: String,
    rule: String,
}

/// Adds the gauge to a page.
pub(super) fn register(autoscalers: &ShownAutoscalers, registry: &mut Registry) {
    let help = "1 for the rule in force, by which pods are asked for before demand";
    registry.register("autoscaler_prediction_rule", help, RuleGauge(autoscalers.clone()));
}

struct RuleGauge(ShownAutoscalers);

impl EncodeMetric for RuleGauge {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for shown in revisions(&self.0.snapshots()) {
            if let Some(card) = shown.decided.status.scorecard {
                let RevisionLabels { namespace, revision } = RevisionLabels::from(shown.name);
                let labels = RuleLabels { namespace, revision, rule: card.rule.rule().to_string() };
                encoder.encode_family(&labels)?.encode_gauge(&1.0_f64)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        !revisions(&self.0.snapshots()).any(|shown| shown.decided.status.scorecard.is_some())
    }
}

impl fmt::Debug for RuleGauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RuleGauge").finish_non_exhaustive()
    }
}
