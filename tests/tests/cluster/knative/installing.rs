//! The manifests of the steps, as `tests/cluster/install-knative` left them.

use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use tests::cluster::{KNATIVE_SYSTEM, TestNamespace, kubectl};

/// What `tests/cluster/install-knative` made: the folder of the release, and the overlays with ebb over it.
pub(crate) fn folder(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cluster/knative").join(name);
    folder.to_str().expect("the tests lie in a folder of plain letters").to_owned()
}

/// Puts step 1 of the roll-over back where a test before this one, perhaps of a run that was killed, has left
/// another step.
pub(crate) async fn begin_at_step_one(namespace: &TestNamespace) {
    let images = [image(namespace, "autoscaler").await, image(namespace, "activator").await];
    let settings: Api<ConfigMap> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
    let settings = settings.get("config-deployment").await.expect("the release has it").data;
    let is_authority_told = settings.is_some_and(|data| data.contains_key("queue-sidecar-rootca"));
    if images != ["ebb:test", "knative-stand-in:test"] || is_authority_told {
        put_step_one_back().await;
    }
}

/// The image of a Deployment of Knative's, ebb's or the stand-in's.
async fn image(namespace: &TestNamespace, deployment: &str) -> String {
    let api: Api<Deployment> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
    let spec = api.get(deployment).await.expect("the release has it").spec;
    let containers = spec.and_then(|spec| spec.template.spec).map(|pod| pod.containers).unwrap_or_default();
    containers.into_iter().find_map(|container| container.image).unwrap_or_default()
}

async fn put_step_one_back() {
    apply("overlay", &["autoscaler", "activator"]).await;
}

/// Runs a part of a test that changes the installation. If the part fails, step 1 of the roll-over is put
/// back for the tests after this one.
pub(crate) async fn restoring_ebb_on_failure(part: impl Future<Output = ()> + Send + 'static) {
    // A task, whose panic is told here.
    if let Err(failure) = tokio::spawn(part).await {
        put_step_one_back().await;
        std::panic::resume_unwind(failure.into_panic());
    }
}

/// Applies a folder of manifests and waits for these Deployments.
pub(crate) async fn apply(name: &str, deployments: &[&str]) {
    kubectl(&["apply", "-k", &folder(name)]).await;
    for deployment in deployments {
        let deployment = format!("deployment/{deployment}");
        kubectl(&["-n", KNATIVE_SYSTEM, "rollout", "status", &deployment, "--timeout=90s"]).await;
    }
}
