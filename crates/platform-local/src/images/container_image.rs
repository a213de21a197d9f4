//! What a manifest says of a container's image: which one, when it is pulled, and how it is confined.

use serde::{Deserialize, Serialize};

/// The image of a container, and what only a container can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerImage {
    /// The image as the manifest names it, such as `ghcr.io/knative/helloworld-go:latest`.
    pub(crate) reference: String,
    pub(crate) pull: PullPolicy,
    /// The port on which it listens in a network of its own (`containerPort`).
    pub(crate) port: u16,
    /// Where its program starts, in the container; `None`: where the image says.
    #[serde(default)]
    pub(crate) directory: Option<String>,
    #[serde(default)]
    pub(crate) security: ContainerSecurity,
}

/// The port of a container that declares none, as Knative has it.
pub(crate) const PORT_DEFAULT: u16 = 8080;

impl ContainerImage {
    /// An image of which only its name is known.
    pub(crate) fn named(reference: &str) -> Self {
        Self {
            reference: reference.to_owned(),
            pull: PullPolicy::usual_for(reference),
            port: PORT_DEFAULT,
            directory: None,
            security: ContainerSecurity::default(),
        }
    }

    /// The name with which a registry knows the image, as Kubernetes completes it; `None` if it names its
    /// registry itself.
    pub(crate) fn completed_reference(&self) -> Option<String> {
        let reference = &self.reference;
        match reference.split_once('/') {
            Some((first, _)) if first == "localhost" || first.contains(['.', ':']) => None,
            Some(_) => Some(format!("docker.io/{reference}")),
            None => Some(format!("docker.io/library/{reference}")),
        }
    }
}

/// When an image is pulled (`imagePullPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

impl PullPolicy {
    pub(crate) const ALL: [Self; 3] = [Self::Always, Self::IfNotPresent, Self::Never];

    /// The policy of an image whose manifest has none, as on Kubernetes: the tag `latest`, written or not,
    /// means another image every time.
    pub(crate) fn usual_for(reference: &str) -> Self {
        // A registry may have a port, which is no tag.
        let name = reference.rsplit('/').next().unwrap_or(reference);
        let is_fixed = name.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
        if is_fixed { Self::IfNotPresent } else { Self::Always }
    }

    /// The policy as manifests write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// How a container is confined, of its `securityContext`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContainerSecurity {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) has_read_only_root: bool,
    pub(crate) may_gain_no_privileges: bool,
    pub(crate) dropped_capabilities: Vec<String>,
    pub(crate) added_capabilities: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_latest_is_pulled_always() {
        for (reference, policy) in [
            ("app", PullPolicy::Always),
            ("localhost:5000/app", PullPolicy::Always),
            ("ghcr.io/a/b:latest", PullPolicy::Always),
            ("ghcr.io/a/b:1", PullPolicy::IfNotPresent),
            ("localhost:5000/app:v1", PullPolicy::IfNotPresent),
            ("ghcr.io/a/b@sha256:0123", PullPolicy::IfNotPresent),
            ("ghcr.io/a/b:latest@sha256:0123", PullPolicy::IfNotPresent),
        ] {
            assert_eq!(PullPolicy::usual_for(reference), policy, "{reference}");
        }
    }

    #[test]
    fn a_name_without_a_registry_is_docker_hubs() {
        for (reference, completed) in [
            ("nginx:1", Some("docker.io/library/nginx:1")),
            ("a/b", Some("docker.io/a/b")),
            ("ghcr.io/a/b", None),
            ("localhost/a", None),
            ("registry:5000/a", None),
        ] {
            let image = ContainerImage::named(reference);
            assert_eq!(image.completed_reference().as_deref(), completed, "{reference}");
        }
    }
}
