//! Workloads of every kind go from zero and back, and what a person or another autoscaler decides is left
//! alone.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use tests::cluster::{
    PATIENCE, PlanKind, TestNamespace, WorkloadPlan, bring_fleets, in_namespace, look_after_fleet,
};
use tests::eventually;

/// 0 → N under load → 0 → 1, and nothing lost.
async fn goes_up_and_down(namespace: TestNamespace, kind: PlanKind) {
    let plan = WorkloadPlan::new("hello").of_kind(kind).annotated("autoscaling.knative.dev/target", "2");
    let hello = plan.annotated("autoscaling.knative.dev/max-scale", "3").create(&namespace).await;
    hello.has_event("Adopted").await;
    hello.has_pods(0).await;
    let load = hello.load().path("/?sleep=200");
    let traffic = tokio::spawn(async move { load.steady(40, Duration::from_secs(15)).await });
    hello.has_pods(3).await;
    traffic.await.expect("the client does not panic").assert_all_answered();
    hello.has_pods(0).await;
    hello.load().one().await.assert_all_answered();
    hello.has_event("ScaledUp").await;
    hello.has_event("ScaledDown").await;
}

#[test]
fn a_stateful_set_goes_up_and_down_beside_its_governing_service() {
    in_namespace("stateful", async |namespace| goes_up_and_down(namespace, PlanKind::StatefulSet).await);
}

#[test]
fn a_replica_set_that_nobody_controls_goes_up_and_down() {
    in_namespace("replicas", async |namespace| goes_up_and_down(namespace, PlanKind::ReplicaSet).await);
}

#[test]
fn a_replication_controller_goes_up_and_down() {
    in_namespace("controller", async |namespace| {
        goes_up_and_down(namespace, PlanKind::ReplicationController).await;
    });
}

#[test]
fn a_custom_resource_with_a_scale_goes_up_and_down_once_ebb_may_scale_it() {
    in_namespace("custom", async |namespace| {
        bring_fleets(&namespace.client).await;
        let controller = tokio::spawn(look_after_fleet(namespace.clone(), "hello".to_owned()));
        goes_up_and_down(namespace, PlanKind::Custom).await;
        controller.abort();
    });
}

#[test]
fn a_replica_set_of_a_deployment_is_left_to_that() {
    in_namespace("controlled", async |namespace| {
        let hello = WorkloadPlan::new("hello").served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        let names = hello.pod_names().await;
        let set = names.first().and_then(|pod| pod.rsplit_once('-')).expect("it is named after its owner").0;
        hello.name_revision(Some(&format!("replicaset/{set}"))).await;
        hello.has_event("NotScalable").await;
        hello.has_only_slices_of("endpointslice-controller.k8s.io").await;
    });
}

#[test]
fn a_paused_workload_keeps_its_count_and_goes_on_when_asked_to() {
    in_namespace("paused", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(0).await;
        hello.annotate("ebb.dev/paused", Some("true")).await;
        hello.has_event("Paused").await;
        eventually("requests are refused at once", PATIENCE, || async {
            let refused = hello.load().one().await.refused();
            if refused == 1 { Ok(()) } else { Err("one was answered".to_owned()) }
        })
        .await;
        assert_eq!(hello.count().await, 0);
        // A person decides now.
        hello.scale_by_hand(2).await;
        hello.has_pods(2).await;
        hello.load().steady(5, Duration::from_secs(12)).await.assert_all_answered();
        hello.has_pods(2).await;
        hello.annotate("ebb.dev/paused", None).await;
        hello.has_pods(0).await;
        hello.load().one().await.assert_all_answered();
    });
}

#[test]
fn beside_a_horizontal_pod_autoscaler_nothing_is_written_until_it_is_gone() {
    in_namespace("beside-hpa", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(0).await;
        hello.scale_by_hand(1).await;
        let hpa = json!({
            "metadata": {"name": "hello"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hello"},
                "minReplicas": 1, "maxReplicas": 1,
            },
        });
        let hpa = serde_json::from_value(hpa).expect("a HorizontalPodAutoscaler");
        let api = namespace.api::<HorizontalPodAutoscaler>();
        api.create(&PostParams::default(), &hpa).await.expect("it is made");
        hello.has_event("OtherAutoscaler").await;
        hello.scale_by_hand(1).await;
        hello.has_pods(1).await;
        hello.load().steady(5, Duration::from_secs(15)).await.assert_all_answered();
        assert_eq!(hello.count().await, 1, "idle longer than its window would have been");
        api.delete("hello", &DeleteParams::default()).await.expect("it is deleted");
        hello.has_pods(0).await;
    });
}
