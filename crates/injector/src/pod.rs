//! Where in a pod's JSON do its containers and its texts stand?

use std::collections::BTreeMap;

use serde_json::Value;
use vocabulary::QUEUE_PROXY;

/// The grace period of a pod that names none, in seconds, as Kubernetes has it.
pub(crate) const GRACE_DEFAULT: u64 = 30;

pub(crate) fn containers(pod: &Value) -> &[Value] {
    pod["spec"]["containers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn containers_mut(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    pod["spec"]["containers"].as_array_mut().into_iter().flatten()
}

/// The containers of the app: all but the queue-proxy's.
pub(crate) fn app_containers_mut(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    containers_mut(pod).filter(|container| container["name"] != QUEUE_PROXY)
}

/// The entries of a JSON map whose values are texts.
pub(crate) fn texts(map: &Value) -> BTreeMap<String, String> {
    let pairs = map.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
