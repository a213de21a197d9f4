//! What does a workload say about how it is to be scaled? How each kind of workload is written stands
//! in [`objects`].

pub mod objects;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::ApiResource;
use settings::hpa::{PodRequests, UsageSource};
use settings::{
    ANNOTATION_PREFIXES, CLASS_ANNOTATION, ClusterConfig, PROGRESS_DEADLINE_ANNOTATION,
    PROGRESS_DEADLINE_DEFAULT, RequestLimits, RevisionSettings, progress_deadline,
};
use vocabulary::Problem;
use vocabulary::{INJECTION_ANNOTATIONS, PodCount, RevisionName};

use crate::resources::ports::ContainerPorts;
use crate::resources::selector::Selector;

/// A `resourceVersion`, where that is a number. Those of one kind grow; Kubernetes 1.35 made that a promise
/// (KEP-5504, "comparable resource versions").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectVersion(pub(crate) u64);

impl ObjectVersion {
    /// The version of the object with this metadata, if versions of it can be compared.
    pub fn of(metadata: &ObjectMeta) -> Option<Self> {
        metadata.resource_version.as_ref()?.parse().ok().map(Self)
    }
}

/// A count as an object shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownCount {
    pub(crate) count: PodCount,
    /// The version of the object that has it, if versions can be compared.
    pub(crate) version: Option<ObjectVersion>,
}

/// A workload as its object shows it. The record is kept; the count goes to the writer of counts, which alone
/// remembers it.
#[derive(Clone, Debug)]
pub struct ShownWorkload {
    pub(crate) record: WorkloadRecord,
    pub(crate) count: ShownCount,
}

/// What a workload that can be scaled says of itself, but for its count.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRecord {
    pub(crate) revision: RevisionName,
    /// The name of the object, which is not always the revision's.
    pub(crate) object: String,
    /// What the API server calls its kind.
    pub(crate) resource: ApiResource,
    pub(crate) uid: String,
    /// `status.replicas`, those of an earlier template included.
    pub(crate) present: PodCount,
    /// Whether a pod of it was ready when this was read.
    pub(crate) has_ready_pod: bool,
    pub(crate) selector: Selector,
    /// The ports that containers of the template declare.
    pub(crate) ports: ContainerPorts,
    /// What each pod of the template requests, without the queue-proxy that is injected.
    requests: PodRequests,
    /// The labels of its pods, by which Services find them.
    pub(crate) template_labels: BTreeMap<String, String>,
    /// The Service by which its pods know each other (`serviceName` of a `StatefulSet`): no clients of the
    /// app call it.
    pub(crate) governing_service: Option<String>,
    /// What people call its present template.
    pub(crate) template: String,
    /// Annotations of ours and of Knative, on the template and, stronger, on the workload itself.
    annotations: BTreeMap<String, String>,
    /// The limits among those of the template.
    limits: BTreeMap<String, String>,
}

/// The settings that annotations of a workload and of its template amount to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WorkloadSettings {
    pub(crate) scaling: RevisionSettings,
    pub(crate) requests: RequestLimits,
    pub(crate) progress_deadline: Duration,
}

fn is_ours(key: &str) -> bool {
    let is_under_prefix = ANNOTATION_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    key == PROGRESS_DEADLINE_ANNOTATION || (is_under_prefix && !INJECTION_ANNOTATIONS.contains(&key))
}

/// The workload whose count is written; another object of the same name is refused.
#[derive(Clone, Debug)]
pub struct ScaleSubject {
    /// The name of the object, in the namespace of the revision.
    pub name: String,
    /// The uid, which tells the object from a later one of its name.
    pub uid: String,
    /// What the API server calls its kind.
    pub resource: ApiResource,
}

impl ScaleSubject {
    pub(crate) fn of(record: &WorkloadRecord) -> Self {
        let (name, uid) = (record.object.clone(), record.uid.clone());
        Self { name, uid, resource: record.resource.clone() }
    }
}

impl WorkloadRecord {
    /// How many pods there are is asked when it matters, so it is no news.
    pub(crate) fn says_the_same_as(&self, other: &Self) -> bool {
        *self == Self { present: self.present, ..other.clone() }
    }

    /// Its settings, or everything that is wrong with them, one line each.
    pub(crate) fn settings(&self, cluster: &ClusterConfig) -> Result<WorkloadSettings, Vec<String>> {
        let mut problems = Vec::new();
        let mut scaling = RevisionSettings::default();
        match self.scaling(cluster) {
            Ok(settings) => scaling = settings,
            Err(refused) => problems.extend(refused.into_iter().map(|problem| problem.message)),
        }
        let deadline = progress_deadline(&self.annotations).unwrap_or_else(|problem| {
            problems.push(problem.message);
            None
        });
        let (requests, refused) = RequestLimits::read(&self.limits);
        problems.extend(refused.into_iter().map(|problem| problem.message));
        if !problems.is_empty() {
            return Err(problems);
        }
        let progress_deadline = deadline.unwrap_or(PROGRESS_DEADLINE_DEFAULT);
        Ok(WorkloadSettings { scaling, requests, progress_deadline })
    }

    /// The valid part of its settings, with defaults for the rest; `None` if another autoscaler is meant.
    pub(crate) fn valid_subset_of_settings(&self, cluster: &ClusterConfig) -> Option<WorkloadSettings> {
        let mut rest = self.clone();
        let scaling = loop {
            let problems = match rest.scaling(cluster) {
                Ok(scaling) => break scaling,
                Err(problems) => problems,
            };
            if problems.iter().any(|problem| problem.key == CLASS_ANNOTATION) {
                return None;
            }
            if !remove_refused(&mut rest.annotations, &problems) {
                return None;
            }
        };
        let deadline = progress_deadline(&self.annotations).unwrap_or_default();
        Some(WorkloadSettings {
            scaling,
            requests: RequestLimits::read(&self.limits).0,
            progress_deadline: deadline.unwrap_or(PROGRESS_DEADLINE_DEFAULT),
        })
    }

    fn scaling(&self, cluster: &ClusterConfig) -> Result<RevisionSettings, Vec<Problem>> {
        let mut settings = RevisionSettings::read(&self.annotations, cluster, None)?.value;
        settings.require_class_of_ours(cluster).map_err(|problem| vec![problem])?;
        settings.usage = UsageSource::Questions;
        settings.requests = self.requests.clone();
        Ok(settings)
    }
}

/// Removes the annotations that have these problems, and says whether there was one. Where there was none,
/// the cluster's own settings are at odds, and reading again would find the same problems.
pub(crate) fn remove_refused(annotations: &mut BTreeMap<String, String>, problems: &[Problem]) -> bool {
    let count = annotations.len();
    annotations.retain(|key, _| !problems.iter().any(|problem| problem.key == *key));
    annotations.len() < count
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use settings::hpa::reading::DOCUMENT_ANNOTATION;

    use super::*;

    fn workload(own: &[(&str, &str)], template: &[(&str, &str)]) -> WorkloadRecord {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let deployment = json!({
            "metadata": {"name": "hello", "namespace": "default", "uid": "u2", "annotations": map(own)},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "hello"}},
                "template": {"metadata": {"annotations": map(template)}},
            },
        });
        let deployment = serde_json::from_value(deployment).expect("a Deployment");
        let shown = *objects::deployment(&deployment).expect("it is scaled");
        shown.record
    }

    #[test]
    fn annotations_of_the_workload_override_those_of_its_template() {
        let record = workload(
            &[("autoscaling.knative.dev/target", "5"), ("kubectl.kubernetes.io/x", "y")],
            &[
                ("autoscaling.knative.dev/target", "7"),
                ("autoscaling.knative.dev/window", "30s"),
                ("ebb.dev/container-concurrency", "9"),
                ("ebb.dev/timeout", "1m"),
                ("ebb.dev/idle-timeout", "0s"),
                ("ebb.dev/injected", "true"),
                ("ebb.dev/plain-ports", "9000"),
            ],
        );
        assert_eq!(record.revision.as_str(), "default/deployment/hello");
        let settings = record.settings(&ClusterConfig::default()).expect("all is well");
        assert_eq!(settings.scaling.stable_window, Some(Duration::from_secs(30)));
        assert_eq!(settings.scaling.target, Some(5.0));
        assert_eq!(
            (settings.requests.container_concurrency, settings.requests.timeouts.request),
            (9, Some(Duration::from_secs(60)))
        );
        assert_eq!(settings.requests.timeouts.idle, None);
    }

    #[test]
    fn a_document_of_class_hpa_stands_in_an_annotation() {
        let document = "{maxReplicas: 5, metrics: [{type: Pods, pods: {metric: {name: ebb.rps}, target: {type: AverageValue, averageValue: 20}}}]}";
        let record = workload(&[(DOCUMENT_ANNOTATION, document)], &[]);
        let settings = record.settings(&ClusterConfig::default()).expect("all is well").scaling;
        assert_eq!(settings.document.map(|document| document.max), Some(PodCount::new(5)));
        assert_eq!(settings.usage, UsageSource::Questions);

        let refused = |annotations: &[(&str, &str)]| {
            workload(annotations, &[]).settings(&ClusterConfig::default()).expect_err("refused").join("\n")
        };
        let twice = refused(&[(DOCUMENT_ANNOTATION, document), ("autoscaling.knative.dev/max-scale", "7")]);
        assert!(twice.contains("max-scale is \"7\"") && twice.contains(DOCUMENT_ANNOTATION), "{twice}");
        assert!(refused(&[(DOCUMENT_ANNOTATION, "{maxReplicas: 0}")]).contains("maxReplicas"));
        assert!(refused(&[(DOCUMENT_ANNOTATION, "{maxReplicas")]).contains("is neither YAML nor JSON"));
    }

    #[test]
    fn the_short_form_of_class_hpa_is_read() {
        let class = ("autoscaling.knative.dev/class", "hpa.autoscaling.knative.dev");
        let record = workload(&[class, ("autoscaling.knative.dev/metric", "cpu")], &[]);
        let cluster = ClusterConfig::default();
        let settings = record.settings(&cluster).expect("all is well").scaling;
        let spec = settings.resolve(&cluster, 0, Duration::from_secs(600)).hpa.expect("it is class hpa");
        assert_eq!((spec.spec.metrics.len(), spec.usage), (1, UsageSource::Questions));
    }

    #[test]
    fn valid_settings_are_kept_without_the_invalid_ones() {
        let record = workload(
            &[
                ("autoscaling.knative.dev/window", "5"),
                ("autoscaling.knative.dev/min-scale", "4"),
                ("autoscaling.knative.dev/max-scale", "3"),
                ("ebb.dev/paused", "true"),
                (PROGRESS_DEADLINE_ANNOTATION, "x"),
            ],
            &[("ebb.dev/container-concurrency", "7"), ("ebb.dev/timeout", "soon")],
        );
        let settings = record.valid_subset_of_settings(&ClusterConfig::default()).expect("some are right");
        assert_eq!((settings.scaling.stable_window, settings.scaling.paused), (None, Some(true)));
        let bounds = (settings.scaling.min_scale, settings.scaling.max_scale);
        assert!(bounds.0.is_none() != bounds.1.is_none(), "one of two that are at odds: {bounds:?}");
        assert_eq!((settings.requests.container_concurrency, settings.requests.timeouts.request), (7, None));
        assert_eq!(settings.progress_deadline, PROGRESS_DEADLINE_DEFAULT);
        let others = workload(&[("autoscaling.knative.dev/class", "keda.example.com")], &[]);
        assert_eq!(others.valid_subset_of_settings(&ClusterConfig::default()), None);
        for document in ["{maxReplicas", "{maxReplicas: 0}"] {
            let broken = workload(&[(DOCUMENT_ANNOTATION, document), ("ebb.dev/paused", "true")], &[]);
            let settings =
                broken.valid_subset_of_settings(&ClusterConfig::default()).expect("it is paused").scaling;
            assert_eq!((settings.paused, settings.document), (Some(true), None), "{document}");
        }
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let record = workload(
            &[
                ("autoscaling.knative.dev/window", "5"),
                (PROGRESS_DEADLINE_ANNOTATION, "x"),
                (DOCUMENT_ANNOTATION, "{maxReplicas: 0, minReplica: 1}"),
            ],
            &[("ebb.dev/container-concurrency", "many"), ("ebb.dev/timeout", "soon")],
        );
        let problems =
            record.settings(&ClusterConfig::default()).expect_err("six things are wrong").join("\n");
        let keys = ["window", "progress-deadline", "container-concurrency", "timeout"];
        for key in keys.into_iter().chain(["hpa.maxReplicas", "hpa.minReplica "]) {
            assert!(problems.contains(key), "{key} is missing in:\n{problems}");
        }
    }
}
