//! ebb's queue-proxies in the place of Knative's, too: contract §6 and the last step of §7.4, and back to the
//! first one.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use tests::cluster::{PATIENCE, kubectl};
use tests::eventually;

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};
use crate::installing::{apply, folder, restoring_ebb_on_failure};

const PER_SECOND: u32 = 20;

/// The image of a pod's queue-proxy, and whether the pod is ready.
fn queue_proxy(pod: &Pod) -> (String, bool) {
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let found = containers.find(|container| container.name == "queue-proxy");
    let image = found.and_then(|container| container.image.clone()).unwrap_or_default();
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    (image, ready.any(|condition| condition.status == "True"))
}

/// Waits until every pod that stays is ready, with a queue-proxy of this image.
async fn has_queue_proxies(app: &KnativeApp, image: &str) {
    eventually(&format!("every queue-proxy is {image}"), PATIENCE, || async {
        let pods = app.namespace.api::<Pod>().list(&ListParams::default()).await;
        let pods = pods.map_err(|error| error.to_string())?.items;
        let staying = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let found: Vec<(String, bool)> = staying.map(queue_proxy).collect();
        let is_whole = found.iter().all(|(found, is_ready)| found == image && *is_ready);
        if is_whole && !found.is_empty() { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// Steps 2 and 4, a life at zero and back there, and step 1 again.
async fn in_and_out(app: KnativeApp) {
    let revision = KnativeApp::revision(1);
    // As an ingress sends requests: on a connection for each.
    let load = app.load(&revision).await.path("/?sleep=50").one_connection_each();
    let traffic = load.in_background(PER_SECOND);
    apply("overlay-activator", &["activator"]).await;
    apply("overlay-queue-proxy", &[]).await;
    has_queue_proxies(&app, "ebb-queue-proxy:test").await;
    traffic.end().await.assert_nothing_missing();
    // It ends with an error where anything differs.
    kubectl(&["diff", "-k", &folder("overlay-queue-proxy")]).await;

    app.has_count(&revision, |count| count == 0).await;
    load.one().await.assert_all_answered();

    let traffic = load.in_background(PER_SECOND);
    apply("overlay-activator", &[]).await;
    has_queue_proxies(&app, "knative-queue-proxy:test").await;
    apply("overlay", &["activator"]).await;
    app.is_served_by_activators(&revision).await;
    traffic.end().await.assert_nothing_missing();
}

#[test]
fn ebbs_queue_proxies_come_in_and_leave_again_under_load() {
    in_knative("knative-step-three", async |namespace| {
        let plan = KnativeAppPlan::default().scaled("target-burst-capacity", "-1");
        let app = plan.apply(&namespace).await;
        app.is_ready(1).await;
        restoring_ebb_on_failure(in_and_out(app)).await;
    });
}
