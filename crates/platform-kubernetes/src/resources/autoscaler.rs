//! What does a `HorizontalPodAutoscaler` of the cluster say, which scales the same workload as we do or would?

use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus, MetricTarget,
    MetricValueStatus,
};
use orchestration::OtherAutoscaler;
use vocabulary::{PodCount, RevisionName};

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AutoscalerRecord {
    /// What it scales, if that is a kind of workload that we know.
    pub(crate) revision: Option<RevisionName>,
    pub(crate) says: OtherAutoscaler,
}

pub(crate) fn read(autoscaler: &HorizontalPodAutoscaler) -> AutoscalerRecord {
    let metadata = &autoscaler.metadata;
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let spec = autoscaler.spec.as_ref();
    let target = spec.map(|spec| &spec.scale_target_ref).filter(|target| target.kind == "Deployment");
    let status = autoscaler.status.clone().unwrap_or_default();
    let metrics = spec.and_then(|spec| spec.metrics.as_deref()).unwrap_or_default();
    AutoscalerRecord {
        revision: target.and_then(|target| RevisionName::new(&namespace, "deployment", &target.name).ok()),
        says: OtherAutoscaler {
            name: metadata.name.clone().unwrap_or_default(),
            desired: count(Some(status.desired_replicas)),
            current: count(status.current_replicas),
            metrics: metrics_beside_targets(metrics, status.current_metrics.as_deref().unwrap_or_default()),
            why: conditions(&status),
        },
    }
}

fn count(replicas: Option<i32>) -> PodCount {
    PodCount::new(replicas.and_then(|replicas| u32::try_from(replicas).ok()).unwrap_or_default())
}

/// `AbleToScale: ReadyForNewScale, ScalingActive: ValidMetricFound`.
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
        let present = present
            .get(index)
            .and_then(current_of)
            .map_or_else(|| "<unknown>".to_owned(), |value| shown_value(&value));
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
    let (name, target) = match resource.or(container).or(pods).or(object).or(external) {
        Some((name, target)) => (name, shown_target(target)),
        None => ("?", "?".to_owned()),
    };
    (name, target)
}

fn shown_target(target: &MetricTarget) -> String {
    let percent = target.average_utilization.map(|percent| format!("{percent}%"));
    let quantity = target.average_value.as_ref().or(target.value.as_ref()).map(|value| value.0.clone());
    percent.or(quantity).unwrap_or_else(|| "?".to_owned())
}

fn current_of(metric: &MetricStatus) -> Option<MetricValueStatus> {
    let resource = metric.resource.as_ref().map(|one| &one.current);
    let container = metric.container_resource.as_ref().map(|one| &one.current);
    let pods = metric.pods.as_ref().map(|one| &one.current);
    let object = metric.object.as_ref().map(|one| &one.current);
    let external = metric.external.as_ref().map(|one| &one.current);
    resource.or(container).or(pods).or(object).or(external).cloned()
}

fn shown_value(value: &MetricValueStatus) -> String {
    let percent = value.average_utilization.map(|percent| format!("{percent}%"));
    let quantity = value.average_value.as_ref().or(value.value.as_ref()).map(|value| value.0.clone());
    percent.or(quantity).unwrap_or_else(|| "?".to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

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
    fn it_is_shown_as_kubectl_shows_it() {
        let record = autoscaler(3, 120);
        assert_eq!(
            record.revision.map(|revision| revision.to_string()).as_deref(),
            Some("default/deployment/hello")
        );
        assert_eq!(record.says.metrics, "cpu 120%/80%, jobs <unknown>/10");
        assert_eq!((record.says.desired, record.says.current), (PodCount::new(3), PodCount::new(2)));
        assert_eq!(record.says.why, "ScalingActive: ValidMetricFound");
    }
}
