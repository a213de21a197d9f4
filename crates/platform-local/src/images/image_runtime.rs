//! By what are the containers of one `ebb up` known?

use std::fs;

use serde::{Deserialize, Serialize};

use super::engine::{ImageEngine, ImageNetwork};

/// The label with the `ebb up` that had a container started.
pub(crate) const INSTANCE_LABEL: &str = "ebb.dev/instance";
/// The label with the pod that a container is.
pub(super) const POD_LABEL: &str = "ebb.dev/pod";
/// How much of a pod's name the name of its container has, from the end, which is another for each pod: the
/// name of an abstract socket has at most 107 bytes.
const POD_BYTES_MAX: usize = 40;

/// How the image of a pod is run; told to `ebb pod` by its `ebb up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageRuntime {
    pub(crate) engine: ImageEngine,
    pub(crate) network: ImageNetwork,
    /// The `ebb up` that starts the pod; its containers have this in their names and as a label.
    pub(crate) instance: String,
}

impl ImageRuntime {
    /// The name of the container of a pod with this name.
    pub(crate) fn container_of(&self, pod: &str) -> String {
        let begin = pod.len().saturating_sub(POD_BYTES_MAX);
        let pod = pod.get(begin..).unwrap_or(pod);
        format!("ebb-{}-{pod}", self.instance)
    }
}

/// The name of an `ebb up`, of which no second one has the same. It begins with the network that it is in,
/// because only there it can be found out whether the owner of a container lives.
pub(crate) fn new_instance(random: u32) -> String {
    format!("{}-{random:08x}", network_namespace())
}

/// How the names of all containers begin whose owners can be seen from here.
pub(crate) fn prefix_of_containers() -> String {
    format!("ebb-{}-", network_namespace())
}

/// The number of the network namespace that this process is in; 0 if the kernel does not say.
fn network_namespace() -> String {
    let link = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() { "0".to_owned() } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_named_after_its_ebb_up_and_its_pod() {
        let instance = new_instance(0x2a);
        let (engine, network) = (ImageEngine::Podman, ImageNetwork::Auto);
        let runtime = ImageRuntime { engine, network, instance: instance.clone() };
        let name = runtime.container_of("hello-00001-0001");
        assert_eq!(name, format!("ebb-{instance}-hello-00001-0001"));
        assert!(name.starts_with(&prefix_of_containers()) && instance.ends_with("-0000002a"), "{name}");
        let long = runtime.container_of(&format!("{}-00001-0017", "a".repeat(63)));
        assert!(long.ends_with("a-00001-0017") && "ebb-container-".len() + long.len() < 107, "{long}");
    }
}
