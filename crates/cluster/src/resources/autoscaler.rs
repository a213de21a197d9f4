//! What does a `HorizontalPodAutoscaler` of the cluster say, which scales the same workload as we do or
//! would?

use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_core::ApiResource;
use orchestration::OtherAutoscaler;
use vocabulary::PodCount;

/// Stands where a target or a value is of no kind that is known.
const UNSAID: &str = "?";

/// A `HorizontalPodAutoscaler` as far as it concerns the count of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoscalerRecord {
    pub(crate) target: ScaleTargetRef,
    pub(crate) facts: OtherAutoscaler,
}

/// The object whose count a `HorizontalPodAutoscaler` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScaleTargetRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The group alone: a workload has one count in all versions of it.
    group: String,
    kind: String,
}

impl ScaleTargetRef {
    pub(crate) fn is_of(&self, resource: &ApiResource) -> bool {
        self.group == resource.group && self.kind == resource.kind
    }
}

/// Reads an autoscaler of Kubernetes' as far as it concerns us.
pub fn read(autoscaler: &HorizontalPodAutoscaler) -> AutoscalerRecord {
    let metadata = &autoscaler.metadata;
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let spec = autoscaler.spec.as_ref();
    let target = spec.map(|spec| spec.scale_target_ref.clone()).unwrap_or_default();
    let group = target.api_version.as_deref().and_then(|version| version.split_once('/'));
    let group = group.map_or("", |(group, _)| group).to_owned();
    let no_status = HorizontalPodAutoscalerStatus::default();
    let status = autoscaler.status.as_ref().unwrap_or(&no_status);
    let metrics = spec.and_then(|spec| spec.metrics.as_deref()).unwrap_or_default();
    AutoscalerRecord {
        target: ScaleTargetRef { namespace, name: target.name, group, kind: target.kind },
        facts: OtherAutoscaler {
            name: metadata.name.clone().unwrap_or_default(),
            desired: count(Some(status.desired_replicas)),
            current: count(status.current_replicas),
            metrics: metrics_beside_targets(metrics, status.current_metrics.as_deref().unwrap_or_default()),
            why: conditions(status),
        },
    }
}

fn count(replicas: Option<i32>) -> PodCount {
    PodCount::new(replicas.and_then(|replicas| u32::try_from(replicas).ok()).unwrap_or_default())
}

/// The conditions with their reasons, as in `AbleToScale: ReadyForNewScale, ScalingActive: ValidMetricFound`.
fn conditions(status: &HorizontalPodAutoscalerStatus) -> String {
    let conditions = status.conditions.iter().flatten();
    let words =
        conditions.map(|one| format!("{}: {}", one.type_, one.reason.as_deref().unwrap_or("no reason")));
    words.collect::<Vec<_>>().join(", ")
}

/// As `kubectl get hpa` shows them, and `ebb get` ours: "cpu 45%/80%, packets 7/10".
fn metrics_beside_targets(metrics: &[MetricSpec], present: &[MetricStatus]) -> String {
    let shown = metrics.iter().enumerate().map(|(index, metric)| {
        let (name, target) = target_of(metric);
        let present = present.get(index).and_then(current_of).unwrap_or_else(|| "<unknown>".to_owned());
        format!("{name} {present}/{target}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn target_of(metric: &MetricSpec) -> (&str, String) {
    let resource = metric.resource.as_ref().map(|one| (one.name.as_str(), &one.target));
    let container = metric.container_resource.as_ref().map(|one| (one.name.as_str(), &one.target));
    let pods = metric.pods.as_ref().map(|one| (one.metric.name.as_str(), &one.target));
    let object = metric.object.as_ref().map(|one| (one.metric.name.as_str(), &one.target));
    let external = metric.external.as_ref().map(|one| (one.metric.name.as_str(), &one.target));
    match resource.or(container).or(pods).or(object).or(external) {
        Some((name, target)) => {
            (name, amount(target.average_utilization, [&target.average_value, &target.value]))
        }
        None => ("?", UNSAID.to_owned()),
    }
}

/// `None` where nothing was measured.
fn current_of(metric: &MetricStatus) -> Option<String> {
    let resource = metric.resource.as_ref().map(|one| &one.current);
    let container = metric.container_resource.as_ref().map(|one| &one.current);
    let pods = metric.pods.as_ref().map(|one| &one.current);
    let object = metric.object.as_ref().map(|one| &one.current);
    let external = metric.external.as_ref().map(|one| &one.current);
    let current = resource.or(container).or(pods).or(object).or(external)?;
    Some(amount(current.average_utilization, [&current.average_value, &current.value]))
}

/// A share in percent, or the first quantity that is said: targets and what was measured are written alike.
fn amount(percent: Option<i32>, quantities: [&Option<Quantity>; 2]) -> String {
    let percent = percent.map(|percent| format!("{percent}%"));
    let quantity = || quantities.into_iter().flatten().next().map(|quantity| quantity.0.clone());
    percent.or_else(quantity).unwrap_or_else(|| UNSAID.to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::kind::WorkloadKind;

    /// One of the Deployment `hello`, which uses this much CPU of 80 %.
    pub(crate) fn autoscaler(desired: u32, percent: u32) -> AutoscalerRecord {
        let external = json!({"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "10"}});
        let hpa = json!({
            "metadata": {"name": "hello-hpa", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello"}, "maxReplicas": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
                    {"type": "External", "external": external}],
            },
            "status": {
                "desiredReplicas": desired, "currentReplicas": 2,
                "currentMetrics": [
                    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent, "averageValue": "90m"}}},
                    {"type": ""}],
                "conditions": [{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}],
            },
        });
        read(&serde_json::from_value(hpa).expect("a HorizontalPodAutoscaler"))
    }

    #[test]
    fn an_autoscaler_is_shown_as_kubectl_shows_it() {
        let record = autoscaler(3, 120);
        let resource = WorkloadKind::Deployment.resource().expect("it is Kubernetes' own");
        assert!(record.target.is_of(&resource) && record.target.name == "hello");
        assert_eq!(record.facts.metrics, "cpu 120%/80%, jobs <unknown>/10");
        assert_eq!((record.facts.desired, record.facts.current), (PodCount::new(3), PodCount::new(2)));
        assert_eq!(record.facts.why, "ScalingActive: ValidMetricFound");
    }
}
