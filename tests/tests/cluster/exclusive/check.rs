//! What is wrong with an installation is said by `ebb check`, with what to do.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, in_namespace, kubectl};
use tests::eventually;

use crate::narrow_rights::policies;

const BINDING: &str = "ebb-injector";
const KEY: &str = "stable-window";

/// What it prints, and whether it ends well.
async fn checked(namespace: &TestNamespace) -> (bool, String) {
    let mut command = tokio::process::Command::new(tests::ebb::executable());
    command.args(["check", "-n", &namespace.name]).env("KUBECONFIG", &namespace.kubeconfig);
    command.env_remove("EBB_API").kill_on_drop(true);
    let output = command.output().await.expect("the executable runs (cargo build -p ebb)");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn says(namespace: &TestNamespace, expected: &[&str]) -> Result<(), String> {
    let (is_well, text) = checked(namespace).await;
    let is_said = expected.iter().all(|line| text.contains(line));
    if is_said && is_well == expected.is_empty() { Ok(()) } else { Err(text) }
}

async fn scale_injector(namespace: &TestNamespace, count: u32) {
    let api: Api<Deployment> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let patch = Patch::Merge(json!({"spec": {"replicas": count}}));
    api.patch_scale("injector", &PatchParams::default(), &patch).await.expect("a person may scale it");
}

async fn write_key(namespace: &TestNamespace, value: Option<&str>) -> Result<ConfigMap, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let patch = Patch::Merge(json!({"data": {KEY: value}}));
    api.patch("config-autoscaler", &PatchParams::default(), &patch).await
}

#[test]
fn missing_parts_and_refused_settings_are_told_with_their_remedy_until_they_are_mended() {
    in_namespace("check", async |namespace| {
        eventually("all is well", PATIENCE, || says(&namespace, &[])).await;
        let maps: Api<ConfigMap> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let former = maps.get("config-autoscaler").await.expect("it is there").data.unwrap_or_default();
        let bindings = Api::<ClusterRoleBinding>::all(namespace.client.clone());
        let mut binding = bindings.get(BINDING).await.expect("it is there");

        // The webhook is not there, so what it would refuse is written.
        scale_injector(&namespace, 0).await;
        eventually("nobody refuses the key", PATIENCE, async || {
            write_key(&namespace, Some("soon")).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        bindings.delete(BINDING, &DeleteParams::default()).await.expect("it is deleted");
        let expected = [
            "WRONG    all pods of deployment/injector in ebb-system are ready",
            "WRONG    service account injector in ebb-system may do what it must",
            "WRONG    the webhook's Service leads to a ready injector",
            "WRONG    what ConfigMap config-autoscaler says is in force",
            "key stable-window of ConfigMap config-autoscaler is \"soon\"",
        ];
        eventually("what is wrong is said", PATIENCE, || says(&namespace, &expected)).await;

        binding.metadata.resource_version = None;
        binding.metadata.uid = None;
        bindings.create(&PostParams::default(), &binding).await.expect("it is made again");
        write_key(&namespace, former.get(KEY).map(String::as_str)).await.expect("it is as it was");
        scale_injector(&namespace, 2).await;
        eventually("all is well again", PATIENCE, || says(&namespace, &[])).await;
    });
}

/// What it prints, once it says that ebb works and names the component that narrows rights so often.
async fn with_remarks(namespace: &TestNamespace, remarks: usize) -> String {
    eventually(&format!("{remarks} remarks"), PATIENCE, async || {
        let (is_well, text) = checked(namespace).await;
        let is_so = is_well && text.matches("deploy/components/narrow-rights").count() == remarks;
        if is_so { Ok(text) } else { Err(text) }
    })
    .await
}

#[test]
fn rights_that_no_policy_narrows_are_remarks_that_name_the_component() {
    in_namespace("check", async |namespace| {
        let missing = with_remarks(&namespace, 2).await;
        for policy in ["ebb-pods-patch", "ebb-webhooks-update"] {
            let line = missing.lines().find(|line| line.contains(policy)).expect("it has a line");
            assert!(!line.trim_start().starts_with("ok "), "{line}");
        }
        kubectl(&["apply", "-f", &policies()]).await;
        let narrowed = with_remarks(&namespace, 0).await;
        for policy in ["ebb-pods-patch", "ebb-webhooks-update"] {
            let line = narrowed.lines().find(|line| line.contains(policy)).expect("it has a line");
            assert!(line.trim_start().starts_with("ok "), "{line}");
        }
        kubectl(&["delete", "-f", &policies()]).await;
        with_remarks(&namespace, 2).await;
    });
}
