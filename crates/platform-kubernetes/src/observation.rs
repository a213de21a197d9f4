//! What does this crate make of objects and answers of the API server? For tests that compare it with what
//! Kubernetes' own autoscaler makes of the same.

use cluster::resources::scaled_pod;
use cluster::resources::selector::Selector;
use cluster::{Moment, TargetRecord};
use jiff::Timestamp as WallTime;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use scaling::hpa::{MetricSamples, TargetPods};
use settings::hpa::MetricSpec;
use vocabulary::{PodCount, Timestamp};

use crate::metric_apis::read_answer;

/// A target of class hpa.
#[derive(Clone, Debug)]
pub struct ObservedTarget(TargetRecord);

impl ObservedTarget {
    /// Its pods are those that the selector selects; `present` is `status.replicas`.
    pub fn new(selector: LabelSelector, pods: &[Pod], present: PodCount) -> Self {
        let selector = Selector::new(selector);
        let is_selected =
            |pod: &&Pod| pod.metadata.labels.as_ref().is_some_and(|labels| selector.selects(labels));
        let record = |pod: &Pod| (pod.metadata.name.clone().unwrap_or_default(), scaled_pod::read(pod));
        let pods = pods.iter().filter(is_selected).map(record).collect();
        Self(TargetRecord { selector, pods, present, is_shared: false })
    }

    /// The pods as the algorithm looks at them at this moment.
    pub fn pods(&self, wall: WallTime, axis: Timestamp) -> TargetPods {
        self.0.pods(Moment { wall, axis })
    }

    /// The samples in an answer of the API that serves this metric, or why there are none.
    pub fn samples(
        &self,
        metric: &MetricSpec,
        answer: &str,
        wall: WallTime,
        axis: Timestamp,
    ) -> Result<MetricSamples, String> {
        read_answer(metric, answer, &self.0, Moment { wall, axis })
    }
}
