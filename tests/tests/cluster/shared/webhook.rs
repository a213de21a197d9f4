//! Pods get their queue-proxy as they are made, and what people write is checked as they write it.

use std::collections::BTreeSet;

use injector::{ClusterConfig, InjectorSettings, Outcome, inject};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::PostParams;
use kube::client::Body;
use runtime::{OBSERVABILITY_CONFIG_MAP, Observability};
use serde_json::{Value, json};
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;
use vocabulary::{INJECT_LABEL, QUEUE_PROXY};

/// Pods as people write them, by name.
fn corpus() -> Vec<(String, Value)> {
    let text = include_str!("../../../../crates/injector/testdata/pods.yaml");
    let pods: Vec<Value> = serde_saphyr::from_multiple(text).expect("it is YAML");
    let named = |pod: Value| (pod["metadata"]["name"].as_str().expect("it has a name").to_owned(), pod);
    pods.into_iter().map(named).collect()
}

/// The same, which asks for a queue-proxy.
fn asking(pod: &Value) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["labels"] = json!({"app": "x", INJECT_LABEL: "true"});
    pod
}

/// What the API server makes of a pod; nothing stays of it.
async fn created(namespace: &TestNamespace, pod: &Value) -> Result<Value, kube::Error> {
    let pod: Pod = serde_json::from_value(pod.clone()).expect("a Pod");
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let made = namespace.api::<Pod>().create(&dry_run, &pod).await?;
    Ok(serde_json::to_value(made).expect("JSON"))
}

fn sidecars(pod: &Value) -> usize {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.filter(|container| container["name"] == QUEUE_PROXY).count()
}

/// Without what is another for each pod.
fn comparable(pod: &Value) -> Value {
    let mut pod = json!({"annotations": pod["metadata"]["annotations"], "labels": pod["metadata"]["labels"], "spec": pod["spec"]});
    let text = pod.to_string();
    let drawn = text.split("kube-api-access-").nth(1).and_then(|rest| rest.get(..5)).map(str::to_owned);
    if let Some(drawn) = drawn {
        pod = serde_json::from_str(&text.replace(&format!("kube-api-access-{drawn}"), "kube-api-access"))
            .expect("JSON");
    }
    pod
}

/// As `ebb inject --config` has them: those that `tests/cluster/deploy` writes are not the defaults.
async fn settings_of_the_cluster(namespace: &TestNamespace) -> InjectorSettings {
    let maps: Api<ConfigMap> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let data = async |name: &str| maps.get(name).await.expect("ebb was installed").data.unwrap_or_default();
    let cluster = ClusterConfig::parse(&data("config-autoscaler").await).expect("it is sound").value;
    let observability = Observability::parse(&data(OBSERVABILITY_CONFIG_MAP).await).expect("it is sound");
    InjectorSettings {
        image: "ebb-queue-proxy:test".to_owned(),
        link_ca: namespace.link_ca().await,
        cluster,
        observability: observability.value.variable(),
    }
}

#[test]
fn ebb_inject_and_the_webhook_end_in_equal_pods() {
    in_namespace("equal", async |namespace| {
        let settings = settings_of_the_cluster(&namespace).await;
        let (cluster, default) = (&settings.cluster, ClusterConfig::default());
        assert!(cluster.drain_limit != default.drain_limit && cluster.queue_proxy != default.queue_proxy);
        for (what, pod) in corpus() {
            let pod = asking(&pod);
            // Another suite may just be replacing the authority of links, of which the webhook hears later.
            let by_webhook = eventually(&what, PATIENCE, || async {
                let settings = settings_of_the_cluster(&namespace).await;
                let Outcome::Injected(printed) = inject(&pod, &settings) else { panic!("{what}") };
                let before = created(&namespace, &printed.pod).await.expect(&what);
                let by_webhook = created(&namespace, &pod).await.expect(&what);
                let (by_ebb_inject, by_webhook_too) = (comparable(&before), comparable(&by_webhook));
                if by_ebb_inject == by_webhook_too {
                    Ok(by_webhook)
                } else {
                    Err(format!("{by_ebb_inject}\n{by_webhook_too}"))
                }
            })
            .await;
            assert_eq!(sidecars(&by_webhook), 1, "{what}");
        }
    });
}

/// By the API server's own reckoning.
#[test]
fn the_class_of_no_pod_changes() {
    in_namespace("classes", async |namespace| {
        let mut seen = BTreeSet::new();
        for (what, pod) in corpus() {
            let class = |pod: Value| pod["status"]["qosClass"].as_str().expect("it has one").to_owned();
            let without = class(created(&namespace, &pod).await.expect(&what));
            let with = class(created(&namespace, &asking(&pod)).await.expect(&what));
            assert_eq!(without, with, "{what}");
            seen.insert(without);
        }
        assert_eq!(seen.len(), 3, "{seen:?}");
    });
}

/// A pod that meets the strictest of Kubernetes' standards meets it with its queue-proxy.
#[test]
fn a_restricted_namespace_takes_what_it_took_before() {
    in_namespace("restricted", async |namespace| {
        namespace.label("pod-security.kubernetes.io/enforce", "restricted").await;
        let mut taken = 0;
        for (what, pod) in corpus() {
            let without = created(&namespace, &pod).await;
            let with = created(&namespace, &asking(&pod)).await;
            assert_eq!(without.is_ok(), with.is_ok(), "{what}: {without:?}, {with:?}");
            taken += with.map_or(0, |pod| sidecars(&pod));
        }
        assert_eq!(taken, 1, "that one says so in its name");
    });
}

#[test]
fn a_label_is_all_that_a_deployment_needs() {
    in_namespace("label", async |namespace| {
        let hello = WorkloadPlan::new("hello").through_webhook().create(&namespace).await;
        hello.has_pods(0).await;
        hello.load().burst(5).await.assert_all_answered();
        hello.has_pods(0).await;
    });
}

#[test]
fn the_name_of_the_queue_proxy_is_nobody_elses() {
    in_namespace("taken", async |namespace| {
        let container =
            |name: &str| json!({"name": name, "image": "test-app:test", "ports": [{"containerPort": 8080}]});
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [container("app"), container(QUEUE_PROXY)]}});
        created(&namespace, &pod).await.expect("who does not ask may have it");
        let refused = created(&namespace, &asking(&pod)).await.expect_err("it cannot have two").to_string();
        assert!(
            refused.contains("called \\\"queue-proxy\\\"") || refused.contains("called \"queue-proxy\""),
            "{refused}"
        );
    });
}

#[test]
fn every_problem_is_told_at_once_when_an_object_is_written() {
    in_namespace("wrong", async |namespace| {
        let labels = json!({"app": "x", INJECT_LABEL: "true"});
        let template = json!({
            "metadata": {"labels": labels, "annotations": {"ebb.dev/timeout": "soon"}},
            "spec": {"containers": [{"name": "app", "image": "test-app:test", "ports": [{"containerPort": 8080}]}]},
        });
        let pod = json!({"metadata": {"name": "p", "labels": labels, "annotations": {"ebb.dev/timeout": "soon"}}, "spec": {"hostNetwork": true, "containers": template["spec"]["containers"]}});
        let refused = created(&namespace, &pod).await.expect_err("it cannot be served").to_string();
        assert!(refused.contains("hostNetwork") && refused.contains("ebb.dev/timeout"), "{refused}");

        let deployment = json!({
            "metadata": {"name": "x", "annotations": {"autoscaling.knative.dev/window": "5"}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        });
        let deployment: Deployment = serde_json::from_value(deployment).expect("a Deployment");
        let made = namespace.api::<Deployment>().create(&PostParams::default(), &deployment).await;
        let refused = made.expect_err("two things are wrong").to_string();
        assert!(refused.contains("window") && refused.contains("ebb.dev/timeout"), "{refused}");
    });
}

/// What the API server warns of when a person applies this; nothing stays of it.
async fn warnings_of_apply(namespace: &TestNamespace, deployment: &Value) -> Vec<String> {
    let name = deployment["metadata"]["name"].as_str().expect("it has a name");
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{name}?fieldManager=person&dryRun=All",
        namespace.name
    );
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(Body::from(deployment.to_string().into_bytes())).expect("it is a request");
    let response = namespace.client.send(request).await.expect("it is answered");
    assert!(response.status().is_success(), "{response:?}");
    let warnings = response.headers().get_all("warning").into_iter();
    warnings.map(|warning| warning.to_str().expect("it is text").to_owned()).collect()
}

#[test]
fn a_server_side_apply_that_names_the_count_is_warned_of_it() {
    in_namespace("applied", async |namespace| {
        let container = json!({"name": "app", "image": "test-app:test", "ports": [{"containerPort": 8080}]});
        let template = json!({
            "metadata": {"labels": {"app": "x", INJECT_LABEL: "true"}},
            "spec": {"containers": [container]},
        });
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        });
        assert_eq!(warnings_of_apply(&namespace, &deployment).await, Vec::<String>::new());
        deployment["spec"]["replicas"] = json!(2);
        let warnings = warnings_of_apply(&namespace, &deployment).await;
        assert!(
            matches!(&warnings[..], [only] if only.contains("the manifest names spec.replicas")),
            "{warnings:?}"
        );
    });
}
