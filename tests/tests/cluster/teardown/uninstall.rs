//! ebb is taken away as `docs/operate/install.md` says: Services are given back first, then all of it goes.

use std::path::Path;

use tests::cluster::{PATIENCE, SYSTEM, WorkloadPlan, in_namespace, kubectl};
use tests::eventually;
use tokio::process::Command;

const KUBERNETES: &str = "endpointslice-controller.k8s.io";
/// Kinds without a namespace of which ebb has some.
const WITHOUT_NAMESPACE: &str =
    "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations";

/// Installs ebb where a run before this one took it away: this test may be run again.
async fn is_installed() {
    let phase = ["get", "namespace", SYSTEM, "--ignore-not-found", "-o", "jsonpath={.status.phase}"];
    let phase = kubectl(&phase).await;
    if phase == "Active" {
        return;
    }
    if phase == "Terminating" {
        let gone = ["wait", "--for=delete", &format!("namespace/{SYSTEM}"), "--timeout=120s"];
        kubectl(&gone).await;
    }
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/install");
    let installed = Command::new(install).output().await.expect("the script runs");
    assert!(installed.status.success(), "{installed:?}");
}

#[test]
fn given_back_and_deleted_under_load_ebb_leaves_nothing_and_nobody_without_an_answer() {
    in_namespace("uninstall", async |namespace| {
        is_installed().await;
        let kept = WorkloadPlan::new("kept").annotated("autoscaling.knative.dev/min-scale", "1");
        let kept = kept.create(&namespace).await;
        let resting = WorkloadPlan::new("resting").create(&namespace).await;
        kept.has_pods(1).await;
        resting.has_pods(0).await;
        let load = kept.load().path("/?sleep=50");
        let traffic = load.in_background(20);

        let mut release = Command::new(tests::ebb::executable());
        release.args(["release", "--all"]).env("KUBECONFIG", &namespace.kubeconfig).env_remove("EBB_API");
        let released = release.output().await.expect("the executable runs (cargo build -p ebb)");
        assert!(released.status.success(), "{released:?}");
        for workload in [&kept, &resting] {
            assert_eq!(workload.slice_writers().await, [KUBERNETES]);
            workload.has_pods(1).await;
        }
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/deploy");
        let deploy = deploy.to_str().expect("its path is text");
        // The empty namespace itself goes once Kubernetes looks again, after half the activators' grace
        // period.
        kubectl(&["delete", "--wait=false", "-k", deploy]).await;
        let selected = |kinds, of| ["get", kinds, "-o", "name", "-l", "app.kubernetes.io/name=ebb", "-n", of];
        eventually("nothing of ebb is left", PATIENCE, || async {
            let mut left = kubectl(&selected(WITHOUT_NAMESPACE, SYSTEM)).await;
            left += &kubectl(&selected("all,secrets,configmaps,leases,roles,rolebindings", SYSTEM)).await;
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
        let phase = ["get", "namespace", SYSTEM, "--ignore-not-found", "-o", "jsonpath={.status.phase}"];
        assert!(["", "Terminating"].contains(&kubectl(&phase).await.as_str()));

        // No injector runs any more, and nothing stands in the way of a pod that asks for it.
        kept.restart().await;
        kept.scale_by_hand(2).await;
        kept.has_pods(2).await;
        traffic.end().await.assert_nothing_missing();
        resting.load().one().await.assert_all_answered();
    });
}
