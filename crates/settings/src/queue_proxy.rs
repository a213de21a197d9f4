//! How much CPU and memory may the queue-proxy of a pod on a cluster use?
//!
//! That depends on the class that Kubernetes gives the pod, which the queue-proxy must not change: nothing is
//! requested in `BestEffort`, requests (and limits, where the app's containers have some) in `Burstable`, and
//! both alike in `Guaranteed`. Each amount is a key of the ConfigMap and an annotation of the template. The
//! injector reads both when a pod is made, so a pod keeps its amounts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vocabulary::Problem;

use super::keys::{SettingKey, config_map, injection};
use super::limits;
use super::reader::{SettingsPlace, SettingsReader};
use super::resource_amount::ResourceAmount;

/// See the module. No request is above its limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueProxyResources {
    /// `queue-proxy-cpu-request`: the CPU that it requests in Burstable pods.
    pub cpu_request: ResourceAmount,
    /// `queue-proxy-memory-request`: the memory that it requests in Burstable pods.
    pub memory_request: ResourceAmount,
    /// `queue-proxy-cpu-limit`, in Burstable pods all of whose containers have limits.
    pub cpu_limit: ResourceAmount,
    /// `queue-proxy-memory-limit`, in Burstable pods all of whose containers have limits.
    pub memory_limit: ResourceAmount,
    /// `queue-proxy-guaranteed-cpu`: request and limit in Guaranteed pods.
    pub guaranteed_cpu: ResourceAmount,
    /// `queue-proxy-guaranteed-memory`: request and limit in Guaranteed pods.
    pub guaranteed_memory: ResourceAmount,
}

impl Default for QueueProxyResources {
    /// Enough for a queue-proxy, and too little for an app to miss. Guaranteed pods get cores of their
    /// own, so the amounts are larger there.
    fn default() -> Self {
        Self {
            cpu_request: ResourceAmount::known("20m"),
            memory_request: ResourceAmount::known("32Mi"),
            cpu_limit: ResourceAmount::known("1"),
            memory_limit: ResourceAmount::known("256Mi"),
            guaranteed_cpu: ResourceAmount::known("250m"),
            guaranteed_memory: ResourceAmount::known("128Mi"),
        }
    }
}

/// The keys of all amounts in one place: the ConfigMap, or the annotations.
struct AmountKeys {
    cpu_request: &'static SettingKey,
    memory_request: &'static SettingKey,
    cpu_limit: &'static SettingKey,
    memory_limit: &'static SettingKey,
    guaranteed_cpu: &'static SettingKey,
    guaranteed_memory: &'static SettingKey,
}

const OF_CONFIG_MAP: AmountKeys = AmountKeys {
    cpu_request: &config_map::QUEUE_PROXY_CPU_REQUEST,
    memory_request: &config_map::QUEUE_PROXY_MEMORY_REQUEST,
    cpu_limit: &config_map::QUEUE_PROXY_CPU_LIMIT,
    memory_limit: &config_map::QUEUE_PROXY_MEMORY_LIMIT,
    guaranteed_cpu: &config_map::QUEUE_PROXY_GUARANTEED_CPU,
    guaranteed_memory: &config_map::QUEUE_PROXY_GUARANTEED_MEMORY,
};

const OF_ANNOTATIONS: AmountKeys = AmountKeys {
    cpu_request: &injection::CPU_REQUEST,
    memory_request: &injection::MEMORY_REQUEST,
    cpu_limit: &injection::CPU_LIMIT,
    memory_limit: &injection::MEMORY_LIMIT,
    guaranteed_cpu: &injection::GUARANTEED_CPU,
    guaranteed_memory: &injection::GUARANTEED_MEMORY,
};

impl QueueProxyResources {
    /// Reads the amounts of the ConfigMap, over the defaults.
    pub(super) fn of_cluster(reader: &mut SettingsReader<'_>) -> Self {
        Self::default().read(reader, &OF_CONFIG_MAP)
    }

    /// Reads the amounts of a template's annotations, over these. Every problem is reported.
    pub fn of_template(&self, annotations: &BTreeMap<String, String>) -> Result<Self, Vec<Problem>> {
        let mut reader = SettingsReader::new(SettingsPlace::Annotations, annotations);
        let resources = self.read(&mut reader, &OF_ANNOTATIONS);
        reader.finish(resources).map(|checked| checked.value)
    }

    fn read(&self, reader: &mut SettingsReader<'_>, keys: &AmountKeys) -> Self {
        let mut cpu =
            |key, base: &ResourceAmount| reader.amount(key, &limits::CPU).unwrap_or_else(|| base.clone());
        let (cpu_request, cpu_limit, guaranteed_cpu) = (
            cpu(keys.cpu_request, &self.cpu_request),
            cpu(keys.cpu_limit, &self.cpu_limit),
            cpu(keys.guaranteed_cpu, &self.guaranteed_cpu),
        );
        let mut memory =
            |key, base: &ResourceAmount| reader.amount(key, &limits::MEMORY).unwrap_or_else(|| base.clone());
        let (memory_request, memory_limit, guaranteed_memory) = (
            memory(keys.memory_request, &self.memory_request),
            memory(keys.memory_limit, &self.memory_limit),
            memory(keys.guaranteed_memory, &self.guaranteed_memory),
        );
        check_order(reader, (keys.cpu_request, &cpu_request), (keys.cpu_limit, &cpu_limit));
        check_order(reader, (keys.memory_request, &memory_request), (keys.memory_limit, &memory_limit));
        Self { cpu_request, memory_request, cpu_limit, memory_limit, guaranteed_cpu, guaranteed_memory }
    }
}

type NamedAmount<'a> = (&'static SettingKey, &'a ResourceAmount);

/// The API server refuses a pod that requests more than its limit. Either of the two may stand in a weaker
/// layer.
fn check_order(reader: &mut SettingsReader<'_>, request: NamedAmount<'_>, limit: NamedAmount<'_>) {
    let ((request_key, request), (limit_key, limit)) = (request, limit);
    if request.amount <= limit.amount || !reader.are_sound(&[request_key, limit_key]) {
        return;
    }
    if reader.entry(request_key).is_some() {
        let flaw = format!("is above {} {limit}; write at most {limit}, or raise that too", short(limit_key));
        reader.refuse_present(request_key, &flaw);
    } else {
        let flaw =
            format!("is below {} {request}; write at least {request}, or lower that too", short(request_key));
        reader.refuse_present(limit_key, &flaw);
    }
}

/// Without a prefix: it may stand in either layer.
fn short(key: &SettingKey) -> &'static str {
    key.name.rsplit_once('/').map_or(key.name, |(_, name)| name)
}
