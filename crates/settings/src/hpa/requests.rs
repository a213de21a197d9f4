//! The amounts of resources that a pod requests, to which targets in percent refer.

use serde::{Deserialize, Serialize};
use vocabulary::MilliValue;

use super::spec::ResourceName;

/// The amounts of resources that a pod requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodRequests {
    /// The requests of the pod as a whole. Where there are any, they alone count unless a container is named.
    pub pod_level: Option<ResourceRequests>,
    /// All containers, and the init containers that restart (sidecars).
    pub containers: Vec<ContainerRequests>,
}

/// The resources that one container requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerRequests {
    /// The name of the container, unique in its pod.
    pub name: Box<str>,
    /// The amount of each resource that it requests.
    pub requests: ResourceRequests,
}

/// Amounts of resources. The usual two have a place of their own, because they are looked up for every pod at
/// every evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceRequests {
    /// The amount of `cpu`, in thousandths of a core; `None` if none is requested.
    pub cpu: Option<MilliValue>,
    /// The amount of `memory`, in thousandths of a byte; `None` if none is requested.
    pub memory: Option<MilliValue>,
    /// The amounts of other resources, each under its name.
    pub others: Vec<(Box<str>, MilliValue)>,
}

impl ResourceRequests {
    fn of(&self, resource: &ResourceName) -> Option<MilliValue> {
        match resource {
            ResourceName::Cpu => self.cpu,
            ResourceName::Memory => self.memory,
            ResourceName::Other(name) => {
                self.others.iter().find(|(other, _)| other == name).map(|(_, amount)| *amount)
            }
        }
    }
}

impl PodRequests {
    /// The amount that the pod requests, or one of its containers; `None` if a container that counts requests
    /// nothing.
    pub fn of(&self, resource: &ResourceName, container: Option<&str>) -> Option<MilliValue> {
        if let (None, Some(pod_level)) = (container, &self.pod_level) {
            return pod_level.of(resource);
        }
        let mut counted =
            self.containers.iter().filter(|one| container.is_none_or(|name| *one.name == *name)).peekable();
        counted.peek()?;
        let mut sum = 0;
        for one in counted {
            sum += i128::from(one.requests.of(resource)?.value());
        }
        Some(MilliValue::saturated_from(sum))
    }

    /// The amount that the pod requests, where a container that requests nothing counts as nothing; `None` if
    /// none of them requests anything.
    pub fn sum_of(&self, resource: &ResourceName) -> Option<MilliValue> {
        if let Some(pod_level) = &self.pod_level {
            return pod_level.of(resource);
        }
        let requested = self.containers.iter().filter_map(|one| one.requests.of(resource));
        let sum = requested.map(|amount| i128::from(amount.value())).reduce(|sum, more| sum + more)?;
        Some(MilliValue::saturated_from(sum))
    }
}
