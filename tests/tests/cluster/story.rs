//! What a user sees: traffic brings pods, idleness takes them away, and no request is lost on the way.

use std::time::Duration;

use tests::cluster::{WorkloadPlan, in_namespace};

#[test]
fn a_request_through_the_cluster_ip_wakes_a_deployment_and_idle_takes_it_back_to_zero() {
    in_namespace("story", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        // Nobody asks for it, so what Kubernetes gave it at first goes.
        hello.has_pods(0).await;
        let served_by = hello.served_by().await;
        assert!(
            !served_by.is_empty() && served_by.iter().all(|pod| pod.starts_with("activator-")),
            "{served_by:?}"
        );

        let woken = hello.load().one().await;
        woken.assert_all_answered();
        assert_eq!(hello.count().await, 1);
        let steady = hello.load().steady(20, Duration::from_secs(5)).await;
        steady.assert_all_answered();

        hello.has_pods(0).await;
        let again = hello.load().burst(10).await;
        again.assert_all_answered();
    });
}

#[test]
fn no_request_is_lost_while_pods_come_and_go_under_load() {
    in_namespace("swings", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target", "4");
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "3").create(&namespace).await;
        hello.has_pods(0).await;
        let load = hello.load().path("/?sleep=100");
        // From zero to three, and, while a few still ask, down again.
        let crowd = load.clone().with_own_connections().closed_loop(24, Duration::from_secs(12)).await;
        crowd.assert_all_answered();
        assert_eq!(hello.count().await, 3, "24 at once, 4 for each pod, and no more than 3 pods");
        let few = load.with_own_connections().steady(10, Duration::from_secs(20)).await;
        few.assert_none_lost();
        assert_eq!(few.refused(), 0, "{:?}", few.outcomes);
        hello.has_pods(0).await;
    });
}

#[test]
fn a_new_service_without_activators_in_its_path_is_served_once_a_pod_is_ready() {
    in_namespace("direct", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "1");
        let hello =
            plan.annotated("autoscaling.knative.dev/target-burst-capacity", "0").create(&namespace).await;
        // Says how soon that must be.
        hello.has_pods(1).await;
        hello.load().steady(20, Duration::from_secs(2)).await.assert_all_answered();
        let served_by = hello.served_by().await;
        assert!(served_by.iter().all(|pod| pod.starts_with("hello-")), "{served_by:?}");
    });
}
