//! What one pod runs: read from a manifest by the supervisor, handed to `ebb pod` as one line of JSON on its
//! standard input.

use std::path::PathBuf;
use std::time::Duration;

use runtime::Observability;
use serde::{Deserialize, Serialize};
use vocabulary::{AppProtocol, IgnoredUserAgents, ProbeSpec, RequestTimeouts, RevisionName};

use crate::control_groups::ContainerLimits;
use crate::images::{ContainerImage, ImageRuntime};

/// What an app has from TERM to KILL if its manifest does not say.
const APP_GRACE: Duration = Duration::from_secs(10);

/// Everything `ebb pod` needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PodSpec {
    /// The pod's name, such as `hello-00001-0001`.
    pub(crate) pod: String,
    pub(crate) namespace: String,
    /// The Service's name; also that of its configuration.
    pub(crate) service: String,
    /// What the template is called (`NAME-00001`).
    pub(crate) revision: String,
    /// What to run, and how.
    pub(crate) template: Template,
    /// How long requests without a timeout may take once the pod is told to end.
    pub(crate) drain_limit: Duration,
    /// The user agents whose requests its queue-proxy does not measure.
    pub(crate) ignored_user_agents: IgnoredUserAgents,
    /// How many files the app may have open (the soft limit); `None`: as many as `ebb pod`.
    #[serde(default)]
    pub(crate) descriptors: Option<u64>,
    /// The control group that `ebb` divides, if there is one.
    #[serde(default)]
    pub(crate) control_group: Option<PathBuf>,
    /// How its image is run, if it has one and images run here.
    #[serde(default)]
    pub(crate) images: Option<ImageRuntime>,
}

impl PodSpec {
    /// The revision that the pod belongs to.
    pub(crate) fn owner(&self) -> RevisionName {
        RevisionName::new(&self.namespace, "service", &self.service).expect("both were read as parts of one")
    }

    /// `NAMESPACE/POD`, for lists of processes.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.pod)
    }
}

/// The part of a manifest that is fixed when a pod is made. Two templates that are equal need no new pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Template {
    /// The name that the user gave it, if any.
    pub(crate) name: Option<String>,
    /// Labels, and annotations that mean nothing to ebb: changing one is how people ask for new pods.
    pub(crate) marks: Vec<(String, String)>,
    /// The most requests at once; 0 means no limit.
    pub(crate) container_concurrency: u32,
    /// The timeouts of requests, as Knative's Service has them.
    pub(crate) timeouts: RequestTimeouts,
    /// The container that requests reach.
    #[serde(flatten)]
    pub(crate) app: Container,
    /// The HTTP version that the app speaks, by its port's name.
    #[serde(default)]
    pub(crate) protocol: AppProtocol,
    pub(crate) probes: Probes,
    /// What the app has from TERM to KILL, if the manifest says so.
    #[serde(default)]
    pub(crate) termination_grace: Option<Duration>,
    /// What its queue-proxy tells about each request, if it tells anything.
    #[serde(default)]
    pub(crate) observability: Option<Observability>,
    /// The containers beside the app's, at most [`MOST_SIDECARS`](crate::manifest::MOST_SIDECARS).
    #[serde(default)]
    pub(crate) sidecars: Vec<Container>,
}

impl Template {
    /// What the app has from TERM to KILL, once its queue-proxy holds no request any more.
    pub(crate) fn app_grace(&self) -> Duration {
        self.termination_grace.unwrap_or(APP_GRACE)
    }

    /// Whether a container engine runs it. Then it has one container.
    pub(crate) fn has_image(&self) -> bool {
        self.app.image.is_some()
    }

    /// All containers, the app's first.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &Container> {
        std::iter::once(&self.app).chain(&self.sidecars)
    }
}

/// One program of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Container {
    /// What it is called, where there are several.
    #[serde(default, rename = "container")]
    pub(crate) name: Option<String>,
    /// The image that an engine runs, in the place of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<ContainerImage>,
    /// Command and arguments; of an image, the arguments of its own program. A first word `ebb` means the
    /// `ebb` executable.
    pub(crate) command: Vec<String>,
    /// Environment variables; a later one may speak of an earlier one, and takes its place if it has the same
    /// name.
    pub(crate) env: Vec<(String, EnvValue)>,
    /// Where it starts; `None` means where `ebb` was started.
    pub(crate) directory: Option<PathBuf>,
    /// How much memory and CPU the container may use.
    #[serde(default, skip_serializing_if = "ContainerLimits::are_none")]
    pub(crate) limits: ContainerLimits,
}

/// What an environment variable holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum EnvValue {
    /// A text in which `$(NAME)` means another variable.
    Written(String),
    /// What a `ConfigMap` or a `Secret` holds, as it stands there.
    Literal { literal: String },
    /// A fact about the pod that is known when it starts.
    Fact { fact: DownwardFact },
}

/// What an app can be told about its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DownwardFact {
    #[serde(rename = "metadata.name")]
    Name,
    #[serde(rename = "metadata.namespace")]
    Namespace,
    /// Where its port is reached.
    #[serde(rename = "status.podIP")]
    Address,
}

/// What the app is asked. A question without a port means the app's port, which is known only when the pod
/// starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probes {
    /// May the app take requests?
    pub(crate) readiness: Option<ProbeSpec>,
    /// Does it still work at all?
    pub(crate) liveness: Option<ProbeSpec>,
    /// Has it started? The other two wait for this.
    pub(crate) startup: Option<ProbeSpec>,
}
