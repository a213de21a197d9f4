//! `resources` of a container. Limits are the kernel's to keep, where `ebb` may ask it to; what a container
//! requests is what targets in percent refer to, and of CPU its share.

use settings::hpa::{
    ContainerRequests, HpaScaling, MetricSpec, PodRequests, ResourceName, ResourceRequests, ResourceTarget,
};
use vocabulary::{MilliValue, parse_quantity, shown};

use crate::control_groups::ContainerLimits;
use crate::manifest::fields::{ManifestFields, Report};
use crate::manifest::yaml::{TextPlace, YamlValue};

/// Knative's name for a container that has none.
const DEFAULT_NAME: &str = "user-container";

/// The requests and limits that containers have in the manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resources {
    /// The requests of every container of the pod, by its name.
    pub(crate) requests: PodRequests,
    /// The limits of this container alone.
    pub(crate) limits: ContainerLimits,
}

/// Reads `resources` of the container with this name.
pub(crate) fn read(container: &mut ManifestFields<'_>, name: Option<&str>, report: &mut Report) -> Resources {
    let (mut requests, mut limits) = (ResourceRequests::default(), ContainerLimits::default());
    if let Some(mut fields) = container.mapping("resources", report) {
        requests = read_amounts(&mut fields, "requests", report);
        let most = read_amounts(&mut fields, "limits", report);
        refuse_beyond(&fields, &requests, &most, report);
        // As on a cluster, a limit without a request is a request, too.
        requests.cpu = requests.cpu.or(most.cpu);
        requests.memory = requests.memory.or(most.memory);
        for (other, _) in &most.others {
            let path = fields.path_of("limits");
            report.warn(fields.place, format!("{path}.{other} has no effect: memory and cpu can be limited"));
        }
        limits = ContainerLimits {
            memory_bytes: most.memory.map(whole).filter(|bytes| *bytes > 0),
            cpu_milli: most.cpu.map(thousandths).filter(|milli| *milli > 0),
            cpu_request_milli: requests.cpu.map(thousandths).filter(|milli| *milli > 0),
        };
        fields.ignore(&["claims"]);
        fields.finish(&[], report);
    }
    let name = name.unwrap_or(DEFAULT_NAME).into();
    let requests = PodRequests { pod_level: None, containers: vec![ContainerRequests { name, requests }] };
    Resources { requests, limits }
}

fn thousandths(amount: MilliValue) -> u64 {
    u64::try_from(amount.value()).unwrap_or_default()
}

fn whole(amount: MilliValue) -> u64 {
    thousandths(amount).div_ceil(1000)
}

/// Refuses a request above its limit, which could never be met.
fn refuse_beyond(
    fields: &ManifestFields<'_>,
    requests: &ResourceRequests,
    limits: &ResourceRequests,
    report: &mut Report,
) {
    let pairs = [("cpu", requests.cpu, limits.cpu), ("memory", requests.memory, limits.memory)];
    for (name, request, limit) in pairs {
        if request.zip(limit).is_some_and(|(request, limit)| request > limit && limit > MilliValue::ZERO) {
            let (requests, limits) = (fields.path_of("requests"), fields.path_of("limits"));
            report.refuse(
                fields.place,
                format!("{requests}.{name} is more than {limits}.{name}; write at most that"),
            );
        }
    }
}

fn read_amounts(
    resources: &mut ManifestFields<'_>,
    field: &'static str,
    report: &mut Report,
) -> ResourceRequests {
    let mut amounts = ResourceRequests::default();
    let path = resources.path_of(field);
    let Some(node) = resources.take(field) else { return amounts };
    let YamlValue::Map(entries) = &node.value else {
        report.refuse(node.place, format!("{path} must be a mapping, not {}", node.value.kind()));
        return amounts;
    };
    for (key, value) in entries {
        let Some(amount) = amount(&format!("{path}.{}", key.text), &value.value, value.place, report) else {
            continue;
        };
        match key.text.as_str() {
            "cpu" => amounts.cpu = Some(amount),
            "memory" => amounts.memory = Some(amount),
            other => amounts.others.push((other.into(), amount)),
        }
    }
    amounts
}

/// A quantity, which YAML may take for a number.
fn amount(path: &str, value: &YamlValue, place: TextPlace, report: &mut Report) -> Option<MilliValue> {
    let text = match value {
        YamlValue::Text(text) => text.clone(),
        YamlValue::Integer(number) => number.to_string(),
        YamlValue::Number(number) => number.to_string(),
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::List(_) | YamlValue::Map(_) => {
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
                format!("{path} is {}, which is negative; write a quantity of at least 0", shown(&text)),
            );
            None
        }
        Err(error) => {
            report.refuse(place, format!("{path} is {}, which {error}", shown(&text)));
            None
        }
    }
}

impl Resources {
    /// Takes in what another container of the pod requests.
    pub(crate) fn add(&mut self, other: Self) {
        self.requests.containers.extend(other.requests.containers);
    }

    /// Says that a metric refers to what is not known.
    pub(crate) fn check(&self, hpa: Option<&HpaScaling>, report: &mut Report) {
        let metrics = hpa.map(|hpa| hpa.spec.metrics.as_slice()).unwrap_or_default();
        let of_container =
            |metric: &MetricSpec| matches!(metric, MetricSpec::Resource { container: Some(_), .. });
        if self.requests.containers.len() > 1 && metrics.iter().any(of_container) {
            report.refuse(
                None,
                "a metric of type ContainerResource names one of several containers; on one machine a pod's use \
                 is measured as a whole, so use type Resource",
            );
        }
        for metric in metrics {
            self.check_request(metric, report);
        }
    }

    /// A share of nothing is no number: the metric would fail at each sync, and say so only there.
    fn check_request(&self, metric: &MetricSpec, report: &mut Report) {
        let MetricSpec::Resource { resource, target: ResourceTarget::Utilization(_), .. } = metric else {
            return;
        };
        let is_requested = |container: &ContainerRequests| match resource {
            ResourceName::Cpu => container.requests.cpu.is_some(),
            ResourceName::Memory => container.requests.memory.is_some(),
            ResourceName::Other(name) => container.requests.others.iter().any(|(one, _)| one == name),
        };
        if let Some(container) = self.requests.containers.iter().find(|container| !is_requested(container)) {
            let name = resource.name();
            report.warn(
                None,
                format!(
                    "{name} is aimed at in percent of what is requested, and container {} requests none, so \
                     the metric fails; write resources.requests.{name}",
                    container.name
                ),
            );
        }
    }
}
