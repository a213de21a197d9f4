//! What an operator wrote, and what it means for one revision.
//!
//! Two layers are read, each from a map of strings: the ConfigMap `config-autoscaler` ([`ClusterConfig`]) and a revision's annotations
//! ([`RevisionSettings`]). Both report every problem at once. [`RevisionSettings::resolve`] joins them into a [`ScalingSpec`],
//! after which nobody looks at a string again.

mod spec;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use spec::{Aggregation, Metric, ScalingSpec};

/// One thing wrong with what was written: where, what, what is allowed and what to do, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key as the user wrote it, or empty when it is about several.
    pub key: String,
    /// The whole message, naming key, value, range and remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// What was read, and what should be said about it though it was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<Value> {
    /// The value.
    pub value: Value,
    /// Accepted, but worth a word (historic keys, for one).
    pub warnings: Vec<Problem>,
}

/// The ConfigMap `config-autoscaler`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ClusterConfig {}

impl ClusterConfig {
    /// Reads the ConfigMap's data. Every problem is reported.
    pub fn parse(_data: &BTreeMap<String, String>) -> Result<Checked<Self>, Vec<Problem>> {
        todo!()
    }
}

/// The annotations of one revision, checked but not yet joined with the cluster's configuration.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RevisionSettings {}

impl RevisionSettings {
    /// Reads the `autoscaling.knative.dev/*` and `ebb.dev/*` annotations of a pod template; others are ignored. Every problem is reported.
    pub fn parse(
        _annotations: &BTreeMap<String, String>,
        _cluster: &ClusterConfig,
    ) -> Result<Checked<Self>, Vec<Problem>> {
        todo!()
    }

    /// Joins annotations, ConfigMap and defaults.
    pub fn resolve(
        &self,
        _cluster: &ClusterConfig,
        _container_concurrency: u32,
        _progress_deadline: Duration,
    ) -> ScalingSpec {
        todo!()
    }
}
