//! Which Deployment has a revision's pods, and what does it say? (Contract §1.1, §4.1.)

use k8s_openapi::api::apps::v1::Deployment;
use vocabulary::{KNATIVE_REVISION_KIND, RevisionName};

use super::deployment::{QueueProxyEnvironment, queue_proxy_environment};
use super::pods::revision_of_labels;
use crate::resources::workload::{ShownWorkload, objects};

/// The Deployment of a revision: the object whose count is written.
#[derive(Clone, Debug)]
pub struct RevisionDeployment {
    /// As any other workload is read, under the name of its revision.
    pub(crate) shown: Box<ShownWorkload>,
    /// The limits that the controller wrote into the environment of the queue-proxy.
    pub(crate) environment: QueueProxyEnvironment,
}

/// Reads a Deployment; `None` for one of no revision.
pub fn revision_deployment(object: &Deployment) -> Option<RevisionDeployment> {
    let namespace = object.metadata.namespace.as_deref()?;
    let key = revision_of_labels(namespace, object.metadata.labels.as_ref()?)?;
    let revision = RevisionName::new(&key.namespace, KNATIVE_REVISION_KIND, &key.name).ok()?;
    let mut shown = objects::deployment(object).ok()?;
    shown.record.template = key.name;
    shown.record.revision = revision;
    let pod = object.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    Some(RevisionDeployment { shown, environment: pod.map(queue_proxy_environment).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use vocabulary::PodCount;

    use super::*;
    use crate::resources::workload::ScaleSubject;

    /// The Deployment of `hello-00001` with three replicas, as Knative's controller makes it.
    fn object() -> Value {
        let labels =
            json!({"serving.knative.dev/revision": "hello-00001", "serving.knative.dev/revisionUID": "rev1"});
        let environment = json!([{"name": "REVISION_TIMEOUT_SECONDS", "value": "10"}]);
        let containers = json!([{"name": "user-container"}, {"name": "queue-proxy", "env": environment}]);
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "hello-00001-deployment", "namespace": "default", "uid": "d1", "labels": labels},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"serving.knative.dev/revisionUID": "rev1"}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            },
        })
    }

    fn read(object: Value) -> Option<RevisionDeployment> {
        revision_deployment(&serde_json::from_value(object).expect("a Deployment"))
    }

    #[test]
    fn a_deployment_is_known_by_its_revision_and_scaled_by_its_own_name() {
        let found = read(object()).expect("it is of a revision");
        let ShownWorkload { record, count } = *found.shown;
        assert_eq!(record.revision.as_str(), "default/revision/hello-00001");
        assert_eq!(ScaleSubject::of(&record).name, "hello-00001-deployment");
        assert_eq!(count.count, PodCount::new(3));
        assert_eq!(found.environment.timeouts.request, Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_deployment_of_no_revision_is_none_of_ours() {
        let mut other = object();
        other["metadata"]["labels"] = json!({"serving.knative.dev/revision": "hello-00001"});
        assert!(read(other).is_none(), "a person may write that label");
    }
}
