//! Our own programs end under load.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::bench::clock;
use tests::client::Load;
use tests::cluster::{
    PATIENCE, ProcessEnd, RequestPath, RequestSender, SYSTEM, TestNamespace, WorkloadPlan, in_namespace,
    kubectl, process_of,
};
use tests::eventually;
use vocabulary::INJECT_LABEL;

async fn pods_of(namespace: &TestNamespace, component: &str) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let selected = ListParams::default().labels(&format!("app.kubernetes.io/component={component}"));
    let pods = pods.list(&selected).await.expect("pods can be listed").items;
    pods.into_iter().filter_map(|pod| pod.metadata.name).collect()
}

#[test]
fn all_activators_are_replaced_under_load_and_nothing_is_lost() {
    in_namespace("activators", async |namespace| {
        let plan =
            WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target-burst-capacity", "-1");
        let hello = plan.annotated("autoscaling.knative.dev/min-scale", "1").create(&namespace).await;
        hello.has_pods(1).await;
        let former = pods_of(&namespace, "activator").await;
        let load = hello.load().path("/?sleep=500").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(60)).await });
        let deployments: Api<Deployment> = Api::namespaced(namespace.client.clone(), SYSTEM);
        deployments.restart("activator").await.expect("a person may restart them");
        eventually("others serve", PATIENCE, || async {
            let served = hello.served_by().await;
            let is_so = !served.is_empty()
                && served.iter().all(|pod| pod.starts_with("activator-") && !former.contains(pod));
            if is_so { Ok(()) } else { Err(format!("{served:?}")) }
        })
        .await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_nothing_missing();
    });
}

/// How a pod of ours ends.
#[derive(Clone, Copy, Debug)]
enum PodEnd {
    /// As `kubectl delete pod` does it.
    Deleted,
    Forced,
    /// Its process alone, which kubelet starts again.
    Killed,
}

impl PodEnd {
    const ALL: [Self; 3] = [Self::Deleted, Self::Forced, Self::Killed];

    /// Ends a pod; returns when its process was gone, unless it takes its time for that.
    async fn of(self, namespace: &TestNamespace, pod: &str, program: &str) -> Option<ProcessEnd> {
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let process = process_of(pod, program);
        let begun = clock::now();
        match self {
            Self::Deleted => {
                pods.delete(pod, &DeleteParams::default()).await.expect("it is deleted");
                return None;
            }
            Self::Forced => {
                let at_once = DeleteParams::default().grace_period(0);
                pods.delete(pod, &at_once).await.expect("it is deleted");
            }
            Self::Killed => process.kill(),
        }
        Some(ProcessEnd { begun, over: process.gone().await })
    }
}

/// Waits until as many pods of a program are ready as its Deployment wants, and there are no others.
async fn is_complete(component: &str) {
    let name = format!("deployment/{component}");
    kubectl(&["-n", SYSTEM, "rollout", "status", &name, "--timeout=90s"]).await;
}

#[test]
fn an_activator_that_ends_in_any_way_takes_only_what_it_held() {
    in_namespace("activator-ends", async |namespace| {
        let plan = WorkloadPlan::new("hello").by(RequestPath::ThroughActivator);
        let plan = plan.annotated("autoscaling.knative.dev/min-scale", "1");
        // What waits at the other one would bring another pod.
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "1").create(&namespace).await;
        hello.has_pods(1).await;
        for end in PodEnd::ALL {
            hello.is_served_through_activators().await;
            let ended = hello.served_by().await.into_iter().next().expect("it is served by two");
            let traffic = hello.load().path("/?sleep=500").in_background(20);
            // As many as there will be at once are under way.
            tokio::time::sleep(Duration::from_secs(2)).await;
            let killed = end.of(&namespace, &ended, "ebb-activator").await;
            eventually("it serves no more, or has come back", PATIENCE, || async {
                let served = hello.served_by().await;
                let is_so = !served.contains(&ended) || matches!(end, PodEnd::Killed);
                if is_so { Ok(()) } else { Err(format!("{served:?}")) }
            })
            .await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            is_complete("activator").await;
            hello.is_served_through_activators().await;
            let tally = traffic.end().await;
            match killed {
                Some(killed) => killed.explains(&tally, RequestSender::Service),
                None => tally.assert_nothing_missing(),
            }
            hello.load().burst(10).await.assert_all_answered();
        }
    });
}

#[test]
fn waiting_requests_of_one_activator_are_answered_while_another_is_killed() {
    in_namespace("waits", async |namespace| {
        let plan = WorkloadPlan::new("hello").app_args(&["--start-delay-ms", "4000"]);
        let hello = plan.create(&namespace).await;
        hello.has_pods(0).await;
        hello.is_served_through_activators().await;
        let [port] = hello.activator_ports().await[..] else { panic!("it has one port") };
        let [killed, other] = hello.served_by().await.try_into().expect("it is served by two");
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let other = pods.get(&other).await.expect("it is there").status.and_then(|status| status.pod_ip);
        let other = other.and_then(|ip| ip.parse().ok()).expect("it has an address");
        let load = Load::new(SocketAddr::new(other, port), "hello");
        let waiting = tokio::spawn(async move { load.burst(20).await });
        eventually("a pod is asked for", PATIENCE, || async {
            if hello.count().await == 1 { Ok(()) } else { Err("none is".to_owned()) }
        })
        .await;
        PodEnd::Killed.of(&namespace, &killed, "ebb-activator").await;
        waiting.await.expect("the client does not panic").assert_all_answered();
        is_complete("activator").await;
        hello.has_pods(0).await;
    });
}

#[test]
fn an_injector_that_ends_in_any_way_while_pods_are_made_costs_nobody_a_request() {
    in_namespace("injector", async |namespace| {
        let plan = WorkloadPlan::new("hello").through_webhook();
        let plan = plan.annotated("autoscaling.knative.dev/target", "2");
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "4").create(&namespace).await;
        for end in PodEnd::ALL {
            hello.has_pods(0).await;
            is_complete("injector").await;
            let injectors = pods_of(&namespace, "injector").await;
            let traffic = hello.load().path("/?sleep=500").in_background(20);
            end.of(&namespace, injectors.first().expect("there are two"), "ebb-injector").await;
            hello.has_pods(4).await;
            traffic.end().await.assert_all_answered();
        }
        hello.has_pods(0).await;
    });
}

/// A pod that asks for a queue-proxy is of no use without one; no other pod waits for the injector.
#[test]
fn without_injectors_only_pods_that_ask_for_a_queue_proxy_are_refused() {
    in_namespace("noinjector", async |namespace| {
        let deployments: Api<Deployment> = Api::namespaced(namespace.client.clone(), SYSTEM);
        let scale = async |count: u32| {
            let count = Patch::Merge(json!({"spec": {"replicas": count}}));
            let scaled = deployments.patch_scale("injector", &PatchParams::default(), &count).await;
            scaled.expect("a person may scale them");
        };
        scale(0).await;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let pods = namespace.api::<Pod>();
        let containers =
            json!([{"name": "app", "image": "test-app:test", "ports": [{"containerPort": 8080}]}]);
        let pod = |labels: Value| -> Pod {
            let pod =
                json!({"metadata": {"name": "p", "labels": labels}, "spec": {"containers": containers}});
            serde_json::from_value(pod).expect("a Pod")
        };
        // They answer for some seconds after they were told to stop.
        eventually("a pod that asks is refused", PATIENCE, || async {
            match pods.create(&dry_run, &pod(json!({INJECT_LABEL: "true"}))).await {
                Err(error) if error.to_string().contains("injector.ebb.dev") => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        pods.create(&dry_run, &pod(json!({}))).await.expect("who does not ask is made");
        let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers}});
        let wrong = json!({
            "metadata": {"name": "x", "annotations": {"autoscaling.knative.dev/window": "5"}},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        });
        let wrong: Deployment = serde_json::from_value(wrong).expect("a Deployment");
        let made = namespace.api::<Deployment>().create(&dry_run, &wrong).await;
        made.expect("nobody is there to check it");
        scale(2).await;
        eventually("a pod that asks gets its queue-proxy", PATIENCE, || async {
            let made = pods.create(&dry_run, &pod(json!({INJECT_LABEL: "true"}))).await;
            made.map(drop).map_err(|error| error.to_string())
        })
        .await;
        // So that other suites find as many as they know.
        eventually("both injectors are back", PATIENCE, || async {
            let status = deployments.get("injector").await.expect("it is there").status;
            let ready = status.and_then(|status| status.ready_replicas).unwrap_or_default();
            if ready == 2 { Ok(()) } else { Err(format!("{ready} are ready")) }
        })
        .await;
    });
}
