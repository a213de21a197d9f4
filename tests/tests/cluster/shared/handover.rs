//! A Service changes hands under load: Kubernetes' to ebb's, and back.

use std::time::Duration;

use k8s_openapi::api::core::v1::Endpoints;
use serde_json::json;
use tests::cluster::{PATIENCE, TestNamespace, Workload, WorkloadPlan, in_namespace};
use tests::eventually;

const OURS: &str = "ebb.dev";
const KUBERNETES: &str = "endpointslice-controller.k8s.io";

async fn labels_of_endpoints(namespace: &TestNamespace) -> Vec<String> {
    let endpoints = namespace.api::<Endpoints>().get("hello").await.expect("Kubernetes made one");
    endpoints.metadata.labels.unwrap_or_default().into_values().collect()
}

/// Nothing of ours is on a Service that was given back.
async fn nothing_stays_behind(hello: &Workload, namespace: &TestNamespace) {
    hello.has_only_slices_of(KUBERNETES).await;
    hello.has_event("GivenBack").await;
    eventually("Kubernetes keeps its Endpoints again", PATIENCE, || async {
        let labels = labels_of_endpoints(namespace).await;
        if labels.iter().any(|label| label == OURS || label == "true") {
            Err(format!("{labels:?}"))
        } else {
            Ok(())
        }
    })
    .await;
}

#[test]
fn a_running_deployment_is_adopted_and_given_back_under_load_and_nothing_is_lost() {
    in_namespace("handover", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "2");
        let hello = plan.served_by_kubernetes().create(&namespace).await;
        hello.scale_by_hand(2).await;
        hello.has_pods(2).await;
        hello.load().one().await.assert_all_answered();
        let load = hello.load().path("/?sleep=50").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(30, Duration::from_secs(25)).await });

        hello.name_revision(Some("deployment/hello")).await;
        hello.has_event("SelectorPresent").await;
        assert_eq!(hello.slice_writers().await, [KUBERNETES], "nothing is touched yet");
        hello.select(None).await;
        hello.has_event("Adopted").await;
        hello.has_only_slices_of(OURS).await;
        let labels = labels_of_endpoints(&namespace).await;
        assert!(labels.contains(&OURS.to_owned()), "readers of Endpoints stay served: {labels:?}");

        hello.select(Some("hello")).await;
        nothing_stays_behind(&hello, &namespace).await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_nothing_missing();
        hello.has_pods(2).await;
    });
}

#[test]
fn an_old_file_that_is_applied_at_zero_while_requests_wait_loses_none_of_them() {
    in_namespace("old-file", async |namespace| {
        let plan = WorkloadPlan::new("hello").app_args(&["--start-delay-ms", "3000"]);
        let hello = plan.served_by_kubernetes().create(&namespace).await;
        hello.name_revision(Some("deployment/hello")).await;
        hello.select(None).await;
        hello.has_event("Adopted").await;
        hello.has_pods(0).await;
        let load = hello.load();
        let waiting = tokio::spawn(async move { load.burst(20).await });
        eventually("a pod is asked for", PATIENCE, || async {
            if hello.count().await == 1 { Ok(()) } else { Err("none is".to_owned()) }
        })
        .await;
        // Neither annotation nor missing selector, as before; and who wrote it had no pods in mind.
        hello.patch_service(json!({"metadata": {"annotations": {"ebb.dev/revision": null}}, "spec": {"selector": {"app": "hello"}}})).await;
        hello.scale_by_hand(0).await;
        waiting.await.expect("the client does not panic").assert_all_answered();
        nothing_stays_behind(&hello, &namespace).await;
        let later = hello.load().steady(5, Duration::from_secs(20)).await;
        later.assert_all_answered();
        hello.has_pods(1).await;
    });
}

#[test]
fn an_old_file_with_a_count_of_one_leaves_as_many_pods_as_the_load_needs() {
    in_namespace("old-count", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target", "2");
        let plan = plan.annotated("autoscaling.knative.dev/max-scale", "4").served_by_kubernetes();
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        hello.name_revision(Some("deployment/hello")).await;
        hello.select(None).await;
        hello.has_event("Adopted").await;
        let load = hello.load().path("/?sleep=300").with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(40, Duration::from_secs(75)).await });
        hello.has_pods(4).await;
        hello.patch_service(json!({"metadata": {"annotations": {"ebb.dev/revision": null}}, "spec": {"selector": {"app": "hello"}}})).await;
        hello.scale_by_hand(1).await;
        nothing_stays_behind(&hello, &namespace).await;
        hello.has_pods(4).await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
        // Longer than its window, and than activators linger.
        hello.load().steady(2, Duration::from_secs(75)).await.assert_all_answered();
        hello.has_pods(4).await;
    });
}

#[test]
fn a_service_that_becomes_what_is_not_taken_over_is_served_on_from_zero_and_back() {
    in_namespace("udp", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_event("Adopted").await;
        hello.has_pods(0).await;
        let ports = json!([
            {"name": "http", "port": 80, "targetPort": 8080},
            {"name": "dns", "port": 53, "protocol": "UDP"},
        ]);
        hello.patch_service(json!({"spec": {"ports": ports}})).await;
        hello.has_event("NotServable").await;
        let load = hello.load().path("/?sleep=50").with_own_connections();
        load.steady(20, Duration::from_secs(10)).await.assert_all_answered();
        // Its slices follow its pods.
        hello.restart().await;
        load.steady(20, Duration::from_secs(15)).await.assert_all_answered();
        hello.has_pods(0).await;
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn without_annotation_and_selector_ebb_serves_on_and_lets_go_once_there_is_a_selector() {
    in_namespace("no-selector", async |namespace| {
        let hello = WorkloadPlan::new("hello").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        hello.name_revision(Some("deployment/hello")).await;
        hello.select(None).await;
        hello.has_event("Adopted").await;
        let load = hello.load().with_own_connections();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(15)).await });
        hello.name_revision(None).await;
        hello.has_event("NoSelector").await;
        hello.has_only_slices_of(OURS).await;
        hello.select(Some("hello")).await;
        nothing_stays_behind(&hello, &namespace).await;
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_nothing_missing();
        hello.has_pods(1).await;
    });
}

/// An app as it is without ebb: pods without a sidecar, which say goodbye by a hook that sleeps.
fn plain_plan() -> WorkloadPlan {
    let hook = json!({"preStop": {"sleep": {"seconds": 3}}});
    WorkloadPlan::new("hello").not_injected().app_field("lifecycle", hook).served_by_kubernetes()
}

/// Waits until so many pods are there, each with a queue-proxy, and both its containers ready.
pub(crate) async fn is_injected(hello: &Workload, pods: usize) {
    eventually("each pod has two ready containers", PATIENCE, || async {
        let ready = hello.ready_containers().await;
        if ready == vec![2; pods] { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await;
}

#[test]
fn a_deployment_that_nobody_has_injected_is_adopted_service_first_then_injected_and_given_back() {
    in_namespace("plain", async |namespace| {
        let hello = plain_plan().create(&namespace).await;
        hello.scale_by_hand(2).await;
        hello.has_pods(2).await;
        // Such an app closes kept connections without a word.
        let load = hello.load().path("/?sleep=50").one_connection_each();
        let traffic = load.in_background(20);

        hello.name_revision(Some("deployment/hello")).await;
        hello.has_event("SelectorPresent").await;
        hello.select(None).await;
        hello.has_event("Adopted").await;
        hello.has_only_slices_of(OURS).await;
        hello.is_served_directly().await;
        hello.has_event("NotInjected").await;
        let quiet = hello.generation().await;
        // Three stable windows, in which there was work for one pod at most.
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(
            (hello.count().await, hello.generation().await),
            (2, quiet),
            "nobody could hold its requests"
        );

        hello.label_template().await;
        is_injected(&hello, hello.count().await.try_into().expect("no negative number")).await;
        traffic.end().await.assert_nothing_missing();
        hello.has_pods(0).await;
        hello.load().burst(5).await.assert_all_answered();
        hello.select(Some("hello")).await;
        nothing_stays_behind(&hello, &namespace).await;
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn annotation_selector_and_label_changed_at_once_end_in_a_workload_that_goes_to_zero_and_back() {
    in_namespace("at-once", async |namespace| {
        let hello = plain_plan().create(&namespace).await;
        hello.has_pods(1).await;
        let traffic = hello.load().path("/?sleep=50").one_connection_each().in_background(20);
        let service = json!({
            "metadata": {"annotations": {"ebb.dev/revision": "deployment/hello"}},
            "spec": {"selector": null},
        });
        tokio::join!(hello.patch_service(service), hello.label_template());
        hello.has_event("Adopted").await;
        hello.has_only_slices_of(OURS).await;
        is_injected(&hello, 1).await;
        traffic.end().await.assert_nothing_missing();
        hello.has_pods(0).await;
        hello.load().burst(5).await.assert_all_answered();
    });
}
