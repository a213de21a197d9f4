//! The real metrics-server, Kubernetes' own autoscaler and ours in shadow beside it: one workload, one
//! number.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tests::client::Load;
use tests::cluster::{SYSTEM, TestNamespace, in_namespace};
use tests::eventually;

use crate::metrics_apis;

/// Samples of 10 s, and pods that start, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Until another autoscaler decides after one was killed (16 s), and a margin.
const OWNER_CHANGE_MAX: Duration = Duration::from_secs(30);
/// Of 100 m that each pod requests.
const TARGET_PERCENT: u32 = 50;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// Installs it; it stays until the cluster goes.
async fn install() {
    let script = |name: &str| root().join("tests/cluster").join(name);
    let manifest = script("metrics-server/metrics-server.yaml");
    let registration = script("metrics-server/registration.yaml");
    let image = root().join("target/cluster/metrics-server/metrics-server.tar");
    let arguments = |files: &[&Path]| {
        files.iter().flat_map(|file| ["-f".to_owned(), file.display().to_string()]).collect::<Vec<_>>()
    };
    let apply: Vec<String> =
        ["apply".to_owned()].into_iter().chain(arguments(&[&manifest, &registration])).collect();
    let wait = "-n kube-system rollout status deployment/metrics-server --timeout 90s";
    // One that a broken-off test left there leads to its own adapter.
    let former = "delete apiservice v1beta1.metrics.k8s.io --ignore-not-found";
    for (program, arguments) in [
        (script("kubectl"), former.split(' ').map(str::to_owned).collect()),
        (script("load"), vec![image.display().to_string()]),
        (script("kubectl"), apply),
        (script("kubectl"), wait.split(' ').map(str::to_owned).collect()),
    ] {
        let ended = tokio::process::Command::new(&program).args(&arguments).output().await;
        let ended = ended.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{} {arguments:?}: {said}", program.display());
    }
}

fn document() -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": TARGET_PERCENT});
    json!({
        "minReplicas": 1, "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    })
}

async fn create<Object>(namespace: &TestNamespace, object: Value)
where
    Object: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object: Object = serde_json::from_value(object).expect("what stands here is such an object");
    namespace.api::<Object>().create(&PostParams::default(), &object).await.expect("it can be made");
}

/// A Deployment that was not adopted, with Kubernetes' own autoscaler, and in shadow. Returns where its
/// pods are asked to burn CPU.
async fn create_burner(namespace: &TestNamespace) -> SocketAddr {
    let app = json!({
        "name": "app", "image": "test-app:test", "env": [{"name": "PORT", "value": "8080"}],
        // No queue-proxy stands before it, so kubelet and clients reach it at the pod's address.
        "args": ["--bind", "0.0.0.0"],
        "ports": [{"containerPort": 8080}], "resources": {"requests": {"cpu": "100m"}},
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    });
    let annotations = json!({
        "ebb.dev/shadow": "true", "ebb.dev/hpa-sync-period": "1s", "ebb.dev/hpa": document().to_string(),
    });
    create::<Deployment>(
        namespace,
        json!({
            "metadata": {"name": "burner", "annotations": annotations},
            "spec": {
                "selector": {"matchLabels": {"app": "burner"}},
                "template": {"metadata": {"labels": {"app": "burner"}}, "spec": {"containers": [app]}},
            },
        }),
    )
    .await;
    let ports = json!([{"port": 80, "targetPort": 8080}]);
    create::<Service>(
        namespace,
        json!({"metadata": {"name": "burner"}, "spec": {"selector": {"app": "burner"}, "ports": ports}}),
    )
    .await;
    let mut spec = document();
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "burner"});
    create::<HorizontalPodAutoscaler>(namespace, json!({"metadata": {"name": "burner-hpa"}, "spec": spec}))
        .await;
    let service = namespace.api::<Service>().get("burner").await.expect("it was made");
    let address = service.spec.and_then(|spec| spec.cluster_ip).expect("it has an address");
    SocketAddr::new(address.parse().expect("an address"), 80)
}

/// Where the autoscaler that decides answers; it may just be changing, for another suite ends it.
async fn api_of_ebb(namespace: &TestNamespace) -> Result<String, String> {
    let leases: Api<Lease> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let lease = leases.get("ebb-autoscaler").await.expect("somebody decides");
    let holder = lease.spec.and_then(|spec| spec.holder_identity).ok_or("nobody holds the lease")?;
    let pod = pods.get(&holder).await.map_err(|error| error.to_string())?;
    let address = pod.status.and_then(|status| status.pod_ip).ok_or("the holder has no address")?;
    Ok(format!("http://{address}:8080"))
}

/// What `ebb` says to a person.
async fn ebb(namespace: &TestNamespace, arguments: &[&str]) -> String {
    eventually("ebb is answered", OWNER_CHANGE_MAX, || async {
        let api = api_of_ebb(namespace).await?;
        let mut command = tokio::process::Command::new(tests::ebb::executable());
        let ended = command.args(arguments).args(["--api", &api]).output().await;
        let ended = ended.expect("ebb is built: cargo build -p ebb");
        if !ended.status.success() {
            return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr)));
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    })
    .await
}

/// Ours, as the API shows it.
async fn ours(namespace: &TestNamespace) -> Value {
    let list: Value = serde_json::from_str(&ebb(namespace, &["get", "-o", "json"]).await).expect("JSON");
    let name = format!("{}/deployment/burner", namespace.name);
    let mut revisions = list["revisions"].as_array().cloned().unwrap_or_default();
    revisions.retain(|revision| revision["name"] == json!(name));
    revisions.pop().unwrap_or_default()
}

/// The share of its requests that each pod uses, and the count that follows from it, as both see it.
async fn until_both_agree(namespace: &TestNamespace, what: &str, is_wanted: impl Fn(u32, u32) -> bool) {
    eventually(what, PATIENCE, || async {
        let theirs = namespace.api::<HorizontalPodAutoscaler>().get("burner-hpa").await;
        let status = theirs.expect("it was made").status.unwrap_or_default();
        let theirs = serde_json::to_value(&status).expect("a status");
        let percent = theirs["currentMetrics"][0]["resource"]["current"]["averageUtilization"].as_u64();
        let ours = ours(namespace).await;
        let other = &ours["other_autoscaler"];
        let seen = format!("theirs {theirs}\nours {ours}");
        let Some(percent) = percent.and_then(|percent| u32::try_from(percent).ok()) else { return Err(seen) };
        let desired = u32::try_from(status.desired_replicas).unwrap_or_default();
        let shown = json!(format!("cpu {percent}%/{TARGET_PERCENT}%"));
        let is_same = ours["metrics"] == shown
            && ours["desired"] == json!(desired)
            && other["desired"] == json!(desired)
            && other["metrics"] == shown;
        if is_same && is_wanted(percent, desired) { Ok(()) } else { Err(seen) }
    })
    .await;
}

#[test]
fn ours_in_shadow_and_kubernetes_own_autoscaler_agree_on_what_the_real_metrics_server_says() {
    let _turn = metrics_apis::turn();
    in_namespace("metrics-server", async |namespace| {
        install().await;
        let address = create_burner(&namespace).await;
        until_both_agree(&namespace, "both see idle pods", |percent, desired| percent < 20 && desired == 1)
            .await;
        // 15 % of a core, where each pod is meant to use 5 %.
        let load = Load::new(address, "burner").path("/?burn=30").with_own_connections();
        let burning = tokio::spawn(async move { load.steady(5, Duration::from_secs(75)).await });
        until_both_agree(&namespace, "both want more pods", |percent, desired| percent > 50 && desired >= 3)
            .await;
        let deployment = namespace.api::<Deployment>().get("burner").await.expect("it is there");
        let count = deployment.spec.and_then(|spec| spec.replicas).unwrap_or_default();
        assert!(count >= 2, "the one that acts has acted: {count}");
        burning.abort();

        let shown = ebb(&namespace, &["get", "-o", "wide"]).await;
        assert!(shown.contains("in shadow: ") && shown.contains("burner-hpa wants"), "{shown}");
        let report = ebb(&namespace, &["shadow", "report"]).await;
        assert!(
            report.contains("burner-hpa wants") && report.contains("ScalingActive: ValidMetricFound"),
            "{report}"
        );
        let revision = ours(&namespace).await;
        let compared = revision["shadow"]["compared"].as_u64().unwrap_or_default();
        assert!(compared > 10, "{revision}");
    });
}
