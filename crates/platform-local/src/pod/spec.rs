//! What one pod runs: read from a manifest by the supervisor, handed to `ebb pod` as one line of JSON on its standard input.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vocabulary::{AppProtocol, RequestTimeouts, RevisionName};

/// Everything `ebb pod` needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PodSpec {
    /// The pod's name.
    pub(crate) pod: String,
    /// The Service's namespace.
    pub(crate) namespace: String,
    /// The Service's name; also that of its configuration.
    pub(crate) service: String,
    /// What the template is called (`NAME-00001`).
    pub(crate) revision: String,
    /// What to run, and how.
    pub(crate) template: Template,
    /// How long requests without a timeout may take once the pod is told to end.
    pub(crate) drain_limit: Duration,
    /// How many files the app may have open (the soft limit); `None`: as many as `ebb pod`.
    #[serde(default)]
    pub(crate) descriptors: Option<u64>,
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
    /// The request timeouts.
    pub(crate) timeouts: RequestTimeouts,
    /// Command and arguments. A first word `ebb` means the `ebb` executable.
    pub(crate) command: Vec<String>,
    /// Environment variables in the order written.
    pub(crate) env: Vec<(String, String)>,
    /// Where the app starts; `None` means where `ebb` was started.
    pub(crate) directory: Option<PathBuf>,
    /// What the app speaks.
    #[serde(default)]
    pub(crate) protocol: AppProtocol,
    /// Its probes.
    pub(crate) probes: Probes,
}

/// Kubernetes probe objects. A handler without a port means the app's port, which is known only when the pod starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probes {
    /// May the app take requests?
    pub(crate) readiness: Option<serde_json::Value>,
    /// Does it still work at all?
    pub(crate) liveness: Option<serde_json::Value>,
    /// Has it started? The other two wait for this.
    pub(crate) startup: Option<serde_json::Value>,
}
