//! What a user sees: traffic brings pods, idleness takes them away, and no request is lost on the way.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tests::client::Load;
use tests::cluster::{
    PATIENCE, RequestPath, Workload, WorkloadPlan, hey, in_namespace, kubectl, load_from, network_of_node,
    process_of,
};
use tests::eventually;

#[test]
fn a_request_through_the_cluster_ip_wakes_a_deployment_and_idle_takes_it_back_to_zero() {
    in_namespace("story", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        // No request comes for it, so what Kubernetes gave it at first goes.
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
        assert_eq!(hello.count().await, 1);
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
        few.assert_nothing_missing();
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

/// With the windows of a revision that sets none.
const DEFAULT_WINDOW: Duration = Duration::from_secs(60);

async fn has_count_after_a_default_window(workload: &Workload, count: i32) {
    let limit = DEFAULT_WINDOW + PATIENCE;
    eventually(&format!("{count} are wanted"), limit, || async {
        let present = workload.count().await;
        if present == count { Ok(()) } else { Err(present.to_string()) }
    })
    .await;
    workload.has_pods(usize::try_from(count).expect("no negative number")).await;
}

/// The counts that Knative comes to, too, with its defaults.
#[test]
fn fifty_clients_at_a_target_of_ten_bring_eight_pods_and_no_more_which_go_to_zero_and_come_again() {
    in_namespace("seed", async |namespace| {
        let plan = WorkloadPlan::new("hello").through_webhook().with_default_windows();
        let plan = plan.annotated("autoscaling.knative.dev/target", "10");
        let hello = plan.service_field("type", json!("NodePort")).create(&namespace).await;
        has_count_after_a_default_window(&hello, 0).await;
        let counts = hello.watch_counts();
        hey(&hello, &namespace, 30).await;
        let seen = counts.end();
        assert_eq!(seen.iter().map(|(_, count)| *count).max(), Some(8), "{seen:?}");
        has_count_after_a_default_window(&hello, 0).await;

        // From outside, by a port of the node.
        let door = SocketAddr::from(([172, 30, 0, 11], hello.node_port().await));
        Load::new(door, "hello").one().await.assert_all_answered();
        assert_eq!(hello.count().await, 1);
        let told = kubectl(&["-n", &namespace.name, "describe", "deployment", "hello"]).await;
        for part in ["ScaledUp", "ScaledDown", "from 0 to "] {
            assert!(told.contains(part), "{part}: {told}");
        }
    });
}

#[test]
fn bounds_of_one_and_three_are_never_left() {
    in_namespace("bounds", async |namespace| {
        let plan = WorkloadPlan::new("hello").through_webhook().with_default_windows();
        let plan = plan.annotated("autoscaling.knative.dev/target", "10");
        let plan = plan.annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.annotated("autoscaling.knative.dev/max-scale", "3").create(&namespace).await;
        hello.has_pods(1).await;
        let counts = hello.watch_counts();
        hey(&hello, &namespace, 20).await;
        has_count_after_a_default_window(&hello, 1).await;
        let seen: Vec<i32> = counts.end().into_iter().map(|(_, count)| count).collect();
        assert!(seen.iter().all(|count| (1..=3).contains(count)) && seen.contains(&3), "{seen:?}");
    });
}

#[test]
fn clients_in_pods_and_on_nodes_are_answered_from_zero_and_by_pods_themselves() {
    in_namespace("clients", async |namespace| {
        let plan = WorkloadPlan::new("client").annotated("autoscaling.knative.dev/min-scale", "1");
        let client = plan.create(&namespace).await;
        client.has_pods(1).await;
        let pod = process_of(&client.pod_names().await[0], "test-app").network();
        for network in [pod, network_of_node()] {
            let plan = WorkloadPlan::new("hello").by(RequestPath::Direct);
            let plan = plan.annotated("ebb.dev/routing-dwell", "0s");
            let hello = plan.service_field("type", json!("NodePort")).create(&namespace).await;
            hello.has_pods(0).await;
            let door = SocketAddr::from(([172, 30, 0, 11], hello.node_port().await));
            // Held by activators.
            load_from(&network, hello.load()).await.assert_all_answered();
            // Keeps the pod for what follows.
            let traffic = hello.load().in_background(5);
            hello.is_served_directly().await;
            load_from(&network, hello.load()).await.assert_all_answered();
            load_from(&network, Load::new(door, "hello")).await.assert_all_answered();
            traffic.end().await.assert_nothing_missing();
            hello.delete().await;
            hello.has_no_pods().await;
        }
    });
}
