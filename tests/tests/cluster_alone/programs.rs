//! Our own programs end under load.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, in_namespace, process_of};
use tests::eventually;

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
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    });
}

#[test]
fn an_injector_that_is_killed_while_pods_are_made_costs_nobody_a_request() {
    in_namespace("injector", async |namespace| {
        let plan = WorkloadPlan::new("hello").through_webhook();
        let plan = plan.annotated("autoscaling.knative.dev/target", "2");
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "4").create(&namespace).await;
        hello.has_pods(0).await;
        let injectors = pods_of(&namespace, "injector").await;
        let load = hello.load().path("/?sleep=500").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(25)).await });
        process_of(injectors.first().expect("there are two"), "ebb-injector").kill();
        hello.has_pods(4).await;
        traffic.await.expect("the client does not panic").assert_all_answered();
        hello.has_pods(0).await;
    });
}
