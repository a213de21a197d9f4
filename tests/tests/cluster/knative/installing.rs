//! The manifests of the steps, as `tests/cluster/install-knative` left them.

use std::path::Path;

use tests::cluster::{KNATIVE_SYSTEM, kubectl};

/// What `tests/cluster/install-knative` made: the folder of the release, and the overlays with ebb over it.
pub(crate) fn folder(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cluster/knative").join(name);
    folder.to_str().expect("the tests lie in a folder of plain letters").to_owned()
}

/// Runs a part of a test that changes the installation. If the part fails, step 1 of the roll-over is put
/// back for the tests after this one.
pub(crate) async fn restoring_ebb_on_failure(part: impl Future<Output = ()> + Send + 'static) {
    // A task, whose panic is told here.
    if let Err(failure) = tokio::spawn(part).await {
        apply("overlay", &["autoscaler", "activator"]).await;
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
