//! Which pods are a revision's, and how many of them does Kubernetes call ready? (Contract §1.3; spec kpa
//! §7.7.)

use std::collections::BTreeMap;
use std::net::SocketAddr;

use vocabulary::{LinkAddress, LinkChannel, PodCount};

use crate::resources::ObjectKey;
use crate::resources::pod::{PodLife, PodObject};
use crate::resources::selector::Selector;

/// Every pod of a revision of Knative's has it, and no other pod.
pub const REVISION_UID_LABEL: &str = "serving.knative.dev/revisionUID";
const REVISION_LABEL: &str = "serving.knative.dev/revision";
/// Where a queue-proxy answers with its load (`http-autometric`).
const STAT_PORT: u16 = 9090;

/// The revision that a pod is of, if it is of one.
pub fn revision_of(pod: &PodObject) -> Option<ObjectKey> {
    revision_of_labels(&pod.namespace, &pod.labels)
}

/// Selects the pods of a revision, and perhaps others: [`revision_of`] says whose each of them is.
pub(crate) fn selector_of(revision: &ObjectKey) -> Selector {
    Selector::of_labels(BTreeMap::from([(REVISION_LABEL.to_owned(), revision.name.clone())]))
}

/// The revision of an object with these labels, if it is of one: pods and Deployments have the same.
pub(crate) fn revision_of_labels(namespace: &str, labels: &BTreeMap<String, String>) -> Option<ObjectKey> {
    let name = labels.get(REVISION_LABEL).filter(|_| labels.contains_key(REVISION_UID_LABEL))?;
    Some(ObjectKey { namespace: namespace.to_owned(), name: name.clone() })
}

/// Where a queue-proxy of Knative's is asked for its load, if it is, in the place of a link.
pub(crate) fn scrape_address(link: LinkAddress, channel: LinkChannel) -> LinkAddress {
    let socket = SocketAddr::new(link.socket.ip(), STAT_PORT);
    LinkAddress { channel, ..socket.into() }
}

/// The pods that count in `actualScale`: those that run, stay, and are ready by their condition. What a link
/// says of them counts for requests alone.
pub fn ready_pods<'p>(pods: impl IntoIterator<Item = &'p PodObject>) -> PodCount {
    let is_counted = |pod: &&PodObject| pod.is_ready && matches!(pod.life, PodLife::Running);
    PodCount::of(pods.into_iter().filter(is_counted).count())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::pod::tests::{pod, running};

    #[test]
    fn a_pod_is_of_the_revision_that_its_labels_name() {
        let key = ObjectKey { namespace: "default".to_owned(), name: "hello-00001".to_owned() };
        let labelled = |labels| {
            let pod = pod("a", json!({"labels": labels}), &json!({}));
            assert!(selector_of(&key).selects(&pod.labels), "{:?}", pod.labels);
            revision_of(&pod)
        };
        let both = json!({REVISION_UID_LABEL: "u1", REVISION_LABEL: "hello-00001"});
        assert_eq!(labelled(both).as_ref(), Some(&key));
        assert_eq!(labelled(json!({REVISION_LABEL: "hello-00001"})), None, "a person may write that one");
    }

    #[test]
    fn pods_that_end_or_have_not_begun_are_not_ready() {
        let ready = pod("a", json!({}), &running("10.0.0.1", "True"));
        let unready = pod("b", json!({}), &running("10.0.0.2", "False"));
        let deleted = json!({"deletionTimestamp": "2026-11-22T10:00:00Z"});
        let leaving = pod("c", deleted, &running("10.0.0.3", "True"));
        let pending = pod("d", json!({}), &json!({"phase": "Pending"}));
        assert_eq!(ready_pods([&ready, &unready, &leaving, &pending]), PodCount::ONE);
    }
}
