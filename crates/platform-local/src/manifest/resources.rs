//! `resources` of a container. Processes share the machine without limits; what a container requests is what
//! targets in percent refer to.

use scaling::hpa::{
    ContainerRequests, HpaScaling, MetricSpec, PodRequests, ResourceRequests, ResourceTarget,
};
use vocabulary::{MilliValue, parse_quantity};

use crate::manifest::fields::{Fields, Report};
use crate::manifest::yaml::{Place, Value};

/// Knative's name for a container that has none.
const DEFAULT_NAME: &str = "user-container";

/// What containers say of resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    /// Their requests.
    pub(crate) requests: PodRequests,
    /// Where they are written, and the paths of the fields.
    written: Vec<(Place, String)>,
}

/// Reads `resources` of the container with this name.
pub(crate) fn read(container: &mut Fields<'_>, name: Option<&str>, report: &mut Report) -> Resources {
    let mut resources = Resources::default();
    let mut requests = ResourceRequests::default();
    if let Some(node) = container.take("resources").filter(|node| node.value != Value::Map(Vec::new())) {
        resources.written.push((node.place, container.path_of("resources")));
    }
    if let Some(mut fields) = container.mapping("resources", report) {
        requests = read_requests(&mut fields, report);
        fields.ignore(&["limits", "claims"]);
        fields.finish(&[], report);
    }
    let name = name.unwrap_or(DEFAULT_NAME).into();
    resources.requests =
        PodRequests { pod_level: None, containers: vec![ContainerRequests { name, requests }] };
    resources
}

fn read_requests(resources: &mut Fields<'_>, report: &mut Report) -> ResourceRequests {
    let mut requests = ResourceRequests::default();
    let path = resources.path_of("requests");
    let Some(node) = resources.take("requests") else { return requests };
    let Value::Map(entries) = &node.value else {
        report.refuse(node.place, format!("{path} must be a mapping, not {}", node.value.kind()));
        return requests;
    };
    for (key, value) in entries {
        let Some(amount) = amount(&format!("{path}.{}", key.text), &value.value, value.place, report) else {
            continue;
        };
        match key.text.as_str() {
            "cpu" => requests.cpu = Some(amount),
            "memory" => requests.memory = Some(amount),
            other => requests.others.push((other.into(), amount)),
        }
    }
    requests
}

/// A quantity, which YAML may take for a number.
fn amount(path: &str, value: &Value, place: Place, report: &mut Report) -> Option<MilliValue> {
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
            report.refuse(
                place,
                format!("{path} must be a quantity such as 250m or 128Mi, not {}", value.kind()),
            );
            return None;
        }
    };
    match parse_quantity(&text) {
        Ok(amount) if amount >= MilliValue::ZERO => Some(amount),
        Ok(_) => {
            report.refuse(
                place,
                format!("{path} is {text:?}, which is negative; write a quantity of at least 0"),
            );
            None
        }
        Err(error) => {
            report.refuse(place, format!("{path} is {text:?}, which {error}"));
            None
        }
    }
}

impl Resources {
    /// Takes in what another container of the pod says.
    pub(crate) fn add(&mut self, other: Self) {
        self.requests.containers.extend(other.requests.containers);
        self.written.extend(other.written);
    }

    /// Says that they have no effect, unless a metric refers to them; and that a metric refers to what is not known.
    pub(crate) fn check(&self, hpa: Option<&HpaScaling>, report: &mut Report) {
        let metrics = hpa.map(|hpa| hpa.spec.metrics.as_slice()).unwrap_or_default();
        let refers = |metric: &MetricSpec| {
            matches!(metric, MetricSpec::Resource { target: ResourceTarget::Utilization(_), .. })
        };
        if !metrics.iter().any(refers) {
            for (place, path) in &self.written {
                report.warn(
                    *place,
                    format!("{path} has no effect: processes share the machine without limits"),
                );
            }
        }
        let of_container =
            |metric: &MetricSpec| matches!(metric, MetricSpec::Resource { container: Some(_), .. });
        if self.requests.containers.len() > 1 && metrics.iter().any(of_container) {
            report.refuse(
                None,
                "a metric of type ContainerResource names one of several containers; on one machine a pod's use \
                 is measured as a whole, so use type Resource",
            );
        }
    }
}
