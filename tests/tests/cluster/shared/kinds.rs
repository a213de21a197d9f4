//! Workloads of every kind go from zero and back, and what a person or another autoscaler decides is left
//! alone.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tests::cluster::{
    PATIENCE, PlanKind, TestNamespace, WorkloadPlan, bring_fleets, in_namespace, kubectl, look_after_fleet,
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
fn another_service_to_the_same_port_holds_the_count_until_it_is_called_a_bypass() {
    in_namespace("bypass", async |namespace| {
        let min_scale = "autoscaling.knative.dev/min-scale";
        let hello = WorkloadPlan::new("hello").annotated(min_scale, "1").create(&namespace).await;
        hello.has_pods(1).await;
        let api = namespace.api::<Service>();
        // What leads to no port of requests keeps no pod.
        for (name, port) in
            [("metrics", json!({"port": 19091})), ("other", json!({"port": 80, "targetPort": 8080}))]
        {
            let spec = json!({"selector": {"app": "hello"}, "ports": [port]});
            let service = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}));
            api.create(&PostParams::default(), &service.expect("a Service")).await.expect("it is made");
        }
        hello.has_event("NotRoutable").await;
        hello.annotate(min_scale, None).await;
        hello.load().steady(1, Duration::from_secs(1)).await.assert_all_answered();
        // Three windows.
        tokio::time::sleep(Duration::from_secs(18)).await;
        assert_eq!(hello.count().await, 1);
        let bypass = Patch::Merge(json!({"metadata": {"annotations": {"ebb.dev/bypass": "true"}}}));
        api.patch("other", &PatchParams::default(), &bypass).await.expect("it is changed");
        hello.has_pods(0).await;
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

/// What follows within a minute is written when that is over, as a number.
const SERIES_LASTS: Duration = Duration::from_secs(60);

#[test]
fn an_event_says_why_the_count_changed_and_how_often_within_a_minute() {
    in_namespace("events", async |namespace| {
        let min_scale = "autoscaling.knative.dev/min-scale";
        let hello = WorkloadPlan::new("hello").annotated(min_scale, "1").create(&namespace).await;
        hello.has_pods(1).await;
        for wanted in 2..=4 {
            hello.annotate(min_scale, Some(&wanted.to_string())).await;
            eventually(&format!("{wanted} are wanted"), PATIENCE, || async {
                let count = hello.count().await;
                if count == wanted { Ok(()) } else { Err(count.to_string()) }
            })
            .await;
        }
        let rises = eventually("they are counted", SERIES_LASTS + PATIENCE, || async {
            let mut events = hello.events().await;
            events.retain(|event| event.reason.as_deref() == Some("ScaledUp"));
            if events.iter().any(|event| event.series.is_some()) {
                Ok(events)
            } else {
                Err(format!("{events:?}"))
            }
        })
        .await;
        let [rise] = &rises[..] else { panic!("not one Event: {rises:?}") };
        let note = rise.note.as_deref().unwrap_or_default();
        let why = "never below 2 (min-scale)";
        assert!(note.starts_with("from 1 to 2 pods: ") && note.contains(why), "{note}");
        assert_eq!(rise.series.as_ref().map(|series| series.count), Some(3), "{rise:?}");
        let told = kubectl(&["-n", &namespace.name, "describe", "deployment", "hello"]).await;
        assert!(told.contains(note) && told.contains("(x3 over "), "{told}");
    });
}

/// Kubernetes names variables in every pod after the Services of its namespace: `EBB_METRICS_PORT`, here,
/// which is also a setting of queue-proxies.
#[test]
fn a_service_whose_name_begins_as_our_settings_do_is_served() {
    in_namespace("names", async |namespace| {
        let workload = WorkloadPlan::new("ebb-metrics").create(&namespace).await;
        workload.has_pods(0).await;
        workload.load().burst(3).await.assert_all_answered();
    });
}
