//! Which queue-proxies do the pods of a namespace have?

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use tests::cluster::TestNamespace;
use tests::eventually;

/// Between two looks, each of which lists all pods: a small machine that replaces pods would feel more.
const LOOKS_EVERY: Duration = Duration::from_millis(300);

/// The image of a pod's queue-proxy, and whether the pod is ready.
fn queue_proxy(pod: &Pod) -> (String, bool) {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let found = containers.find(|container| container.name == "queue-proxy");
    let image = found.and_then(|container| container.image.clone()).unwrap_or_default();
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    (image, ready.any(|condition| condition.status == "True"))
}

/// Waits until every pod is ready, with a queue-proxy of this image: those of the image before have drained
/// and are gone.
pub(crate) async fn have_queue_proxies(namespace: &TestNamespace, image: &str, limit: Duration) {
    eventually(&format!("every queue-proxy is {image}"), limit, || async {
        tokio::time::sleep(LOOKS_EVERY).await;
        let pods = namespace.api::<Pod>().list(&ListParams::default()).await;
        let found: Vec<(String, bool)> =
            pods.map_err(|error| error.to_string())?.items.iter().map(queue_proxy).collect();
        let is_whole = found.iter().all(|(found, is_ready)| found == image && *is_ready);
        if is_whole && !found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}
