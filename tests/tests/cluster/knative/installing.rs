//! The manifests of the steps, as `tests/cluster/install-knative` left them.

use std::path::Path;

use tests::cluster::{KNATIVE_SYSTEM, kubectl};

/// What `tests/cluster/install-knative` made: the folder of the release, and the overlays with ebb over it.
pub(crate) fn folder(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/cluster/knative").join(name);
    folder.to_str().expect("the tests lie in a folder of plain letters").to_owned()
}

/// Applies a folder of manifests and waits for these Deployments.
pub(crate) async fn apply(name: &str, deployments: &[&str]) {
    kubectl(&["apply", "-k", &folder(name)]).await;
    for deployment in deployments {
        let deployment = format!("deployment/{deployment}");
        kubectl(&["-n", KNATIVE_SYSTEM, "rollout", "status", &deployment, "--timeout=90s"]).await;
    }
}
