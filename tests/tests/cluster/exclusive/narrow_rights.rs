//! With the component `narrow-rights` the API server refuses ebb's own programs what they never do.

use std::path::Path;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, in_namespace, kubectl};
use tests::eventually;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// With the rights of a program of ebb's, as its service account has them.
async fn acting_as(namespace: &TestNamespace, program: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(&namespace.kubeconfig).expect("it can be read");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("it leads to a cluster");
    config.auth_info.impersonate = Some(format!("system:serviceaccount:ebb-system:{program}"));
    Client::try_from(config).expect("a client")
}

/// The file with the policies of the component.
pub(crate) fn policies() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/components/narrow-rights/policies.yaml");
    file.to_str().expect("its path is text").to_owned()
}

/// Whether the API server would take this change of a pod.
async fn would_patch(pods: &Api<Pod>, pod: &str, change: &Value) -> Result<(), String> {
    let parameters = PatchParams::default().dry_run();
    let answer = pods.patch(pod, &parameters, &Patch::Merge(change.clone())).await;
    answer.map(drop).map_err(|error| error.to_string())
}

#[test]
fn the_autoscaler_changes_nothing_of_a_pod_but_its_deletion_cost() {
    in_namespace("narrow", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        let pod = hello.pod_names().await.remove(0);
        let pods: Api<Pod> = Api::namespaced(acting_as(&namespace, "autoscaler").await, &namespace.name);
        kubectl(&["apply", "-f", &policies()]).await;
        let annotations = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
        let refused = [
            annotations("ebb.dev/injected", "false"),
            annotations(COST, "5"),
            json!({"metadata": {"labels": {"app": "another"}}}),
            json!({"metadata": {"finalizers": ["ebb.dev/stays"]}}),
            json!({"spec": {"activeDeadlineSeconds": 1}}),
            json!({"metadata": {"ownerReferences": null}}),
        ];
        for change in &refused {
            eventually(&format!("{change} is refused"), PATIENCE, || async {
                match would_patch(&pods, &pod, change).await {
                    Err(why) if why.contains("ebb-pods-patch") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        would_patch(&pods, &pod, &annotations(COST, "-1000")).await.expect("that is what it is for");
        would_patch(&pods, &pod, &json!({"metadata": {"annotations": {COST: null}}}))
            .await
            .expect("and that");
        // Others are not concerned.
        let own = namespace.api::<Pod>();
        would_patch(&own, &pod, &annotations("anything", "else")).await.expect("a person may");
        kubectl(&["delete", "-f", &policies()]).await;
    });
}

/// What a write would do to the injector's webhooks.
type HookChange = fn(&mut MutatingWebhookConfiguration);

#[test]
fn the_injector_changes_nothing_of_its_webhooks_but_their_bundle() {
    in_namespace("narrow", async |namespace| {
        kubectl(&["apply", "-f", &policies()]).await;
        let hooks: Api<MutatingWebhookConfiguration> = Api::all(acting_as(&namespace, "injector").await);
        let would_write = async |change: HookChange| {
            let mut written = hooks.get("ebb-injector").await.map_err(|error| error.to_string())?;
            change(&mut written);
            let parameters = PostParams { dry_run: true, ..PostParams::default() };
            let answer = hooks.replace("ebb-injector", &parameters, &written).await;
            answer.map(drop).map_err(|error| error.to_string())
        };
        let refused: [(&str, HookChange); 4] = [
            ("a URL", |written| {
                let config = &mut written.webhooks.as_mut().expect("there is one")[0].client_config;
                (config.service, config.url) = (None, Some("https://stranger.example.com/".to_owned()));
            }),
            ("rules", |written| {
                let hook = &mut written.webhooks.as_mut().expect("there is one")[0];
                hook.rules.as_mut().expect("it has some")[0].resources = Some(vec!["secrets".to_owned()]);
            }),
            ("a selection", |written| {
                written.webhooks.as_mut().expect("there is one")[0].object_selector = None;
            }),
            ("no webhook", |written| written.webhooks = None),
        ];
        for (what, change) in refused {
            eventually(&format!("{what} is refused"), PATIENCE, || async {
                match would_write(change).await {
                    Err(why) if why.contains("ebb-webhooks-update") => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await;
        }
        would_write(|written| {
            let hook = &mut written.webhooks.as_mut().expect("there is one")[0];
            let bundle = hook.client_config.ca_bundle.clone().expect("the injector wrote it");
            hook.client_config.ca_bundle = Some(k8s_openapi::ByteString([&bundle.0[..], b"\n"].concat()));
        })
        .await
        .expect("that is what it is for");
        kubectl(&["delete", "-f", &policies()]).await;
    });
}
