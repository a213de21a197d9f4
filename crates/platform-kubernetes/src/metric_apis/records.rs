//! What do the metrics APIs answer, as far as it matters here?

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp as WallTime;
use serde::Deserialize;
use settings::hpa::ResourceName;
use vocabulary::{MilliValue, parse_duration, parse_quantity, shown};

/// The usage of the pods of a namespace (`metrics.k8s.io/v1beta1`).
#[derive(Debug, Deserialize)]
pub(crate) struct PodMetricsList {
    pub(crate) items: Vec<PodMetrics>,
}

/// CPU and memory that the containers of one pod use, as `metrics.k8s.io` measures them.
#[derive(Debug, Deserialize)]
pub(crate) struct PodMetrics {
    pub(crate) metadata: PodMetricsMetadata,
    /// The end of the window.
    pub(crate) timestamp: WallTime,
    window: String,
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PodMetricsMetadata {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct ContainerMetrics {
    name: String,
    usage: BTreeMap<String, String>,
}

impl PodMetrics {
    /// How much the pod uses, or one container of it; `None` if not every container that counts says so.
    pub(crate) fn usage(&self, resource: &ResourceName, container: Option<&str>) -> Option<MilliValue> {
        let mut counted =
            self.containers.iter().filter(|one| container.is_none_or(|name| one.name == name)).peekable();
        counted.peek()?;
        let mut sum = 0;
        for one in counted {
            // Each is rounded for itself, as in Kubernetes.
            sum += i128::from(parse_quantity(one.usage.get(resource.name())?).ok()?.value());
        }
        Some(MilliValue::saturated_from(sum))
    }

    /// Over how long it was measured.
    pub(crate) fn window(&self) -> Result<Duration, String> {
        parse_duration(&self.window)
            .map_err(|error| format!("the window of pod {}: {error}", self.metadata.name))
    }
}

/// Values of objects (`custom.metrics.k8s.io`, either version).
#[derive(Debug, Deserialize)]
pub(crate) struct MetricValueList {
    pub(crate) items: Vec<ObjectMetricValue>,
}

/// The value of one object.
#[derive(Debug, Deserialize)]
pub(crate) struct ObjectMetricValue {
    #[serde(rename = "describedObject")]
    pub(crate) described: DescribedObject,
    pub(crate) timestamp: WallTime,
    value: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DescribedObject {
    pub(crate) name: String,
}

impl ObjectMetricValue {
    pub(crate) fn value(&self) -> Result<MilliValue, String> {
        quantity(&self.value)
    }
}

/// Values from outside of the cluster (`external.metrics.k8s.io/v1beta1`).
#[derive(Debug, Deserialize)]
pub(crate) struct ExternalMetricValueList {
    items: Vec<ExternalMetricValue>,
}

#[derive(Debug, Deserialize)]
struct ExternalMetricValue {
    value: String,
}

impl ExternalMetricValueList {
    pub(crate) fn values(&self) -> Result<Vec<MilliValue>, String> {
        self.items.iter().map(|item| quantity(&item.value)).collect()
    }
}

fn quantity(text: &str) -> Result<MilliValue, String> {
    parse_quantity(text).map_err(|error| format!("the value is {}, which {error}", shown(text)))
}

/// The versions of a group of the API.
#[derive(Debug, Deserialize)]
pub(crate) struct ApiGroup {
    pub(crate) versions: Vec<ApiGroupVersion>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApiGroupVersion {
    pub(crate) version: String,
}

/// The resources of one version of a group.
#[derive(Debug, Deserialize)]
pub(crate) struct ApiResourceList {
    pub(crate) resources: Vec<ApiResource>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ApiResource {
    /// The name in paths, which is the plural: `ingresses`.
    pub(crate) name: String,
    pub(crate) kind: String,
}

impl ApiResourceList {
    /// The resource of a kind; subresources have a slash in their name.
    pub(crate) fn plural_of(&self, kind: &str) -> Option<&str> {
        let named = self.resources.iter().find(|one| one.kind == kind && !one.name.contains('/'));
        named.map(|resource| resource.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> PodMetrics {
        let container = |name: &str, cpu: &str| json!({"name": name, "usage": {"cpu": cpu, "memory": "1Ki"}});
        let pod = json!({
            "metadata": {"name": "a", "namespace": "default"}, "timestamp": "2026-11-22T10:00:00Z", "window": "15.052s",
            "containers": [container("app", "151234567n"), container("queue-proxy", "20500001n")],
        });
        serde_json::from_value(pod).expect("as the server writes it")
    }

    /// Row Q3 of the reference.
    #[test]
    fn a_pod_uses_what_its_containers_use_each_rounded_for_itself() {
        let pod = pod();
        assert_eq!(pod.usage(&ResourceName::Cpu, None), Some(MilliValue::new(152 + 21)));
        assert_eq!(pod.usage(&ResourceName::Memory, Some("app")), Some(MilliValue::new(1_024_000)));
        assert_eq!(pod.usage(&ResourceName::Cpu, Some("gone")), None);
        assert_eq!(pod.usage(&ResourceName::Other("gpu".into()), None), None);
        assert_eq!(pod.window(), Ok(Duration::from_millis(15_052)));
    }

    #[test]
    fn subresources_are_no_resources() {
        let list = json!({"resources": [{"name": "ingresses/status", "kind": "Ingress"}, {"name": "ingresses", "kind": "Ingress"}]});
        let list: ApiResourceList = serde_json::from_value(list).expect("a list");
        assert_eq!((list.plural_of("Ingress"), list.plural_of("Service")), (Some("ingresses"), None));
    }

    #[test]
    fn a_value_that_is_no_quantity_is_named() {
        let list: ExternalMetricValueList =
            serde_json::from_value(json!({"items": [{"value": "much"}]})).expect("a list");
        assert!(
            list.values()
                .expect_err("no quantity")
                .starts_with("the value is \"much\", which is not a quantity")
        );
    }
}
