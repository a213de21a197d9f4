//! Nodes are drained one after the other, as before an upgrade of each.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tests::cluster::{SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace, kubectl};

const NODES: [&str; 2] = ["n1", "n2"];

/// Where pods are that do not end.
async fn nodes_of(namespace: &TestNamespace, name: &str) -> BTreeSet<String> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), name);
    let pods = pods.list(&ListParams::default()).await.expect("pods can be listed").items;
    let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    pods.into_iter().filter(stays).filter_map(|pod| pod.spec?.node_name).collect()
}

async fn workload(namespace: &TestNamespace, name: &str, pods: &str, capacity: &str) -> Workload {
    let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/min-scale", pods);
    let plan = plan.annotated("autoscaling.knative.dev/target-burst-capacity", capacity);
    plan.create(namespace).await
}

#[test]
fn two_nodes_are_drained_in_turn_under_load_and_nothing_is_lost() {
    in_namespace("drain", async |namespace| {
        let one = workload(&namespace, "one", "1", "0").await;
        let two = workload(&namespace, "two", "2", "0").await;
        let through = workload(&namespace, "through", "1", "-1").await;
        let asleep = WorkloadPlan::new("asleep").create(&namespace).await;
        one.has_pods(1).await;
        two.has_pods(2).await;
        through.has_pods(1).await;
        asleep.has_pods(0).await;
        for name in [SYSTEM, &namespace.name] {
            let nodes = nodes_of(&namespace, name).await;
            assert_eq!(
                nodes.len(),
                NODES.len(),
                "pods of {name} are spread before anything is drained: {nodes:?}"
            );
        }
        let traffic =
            [&one, &two, &through].map(|workload| workload.load().path("/?sleep=500").in_background(10));

        for node in NODES {
            kubectl(&["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m"]).await;
            let other: BTreeSet<String> =
                NODES.iter().filter(|other| **other != node).map(|&other| other.to_owned()).collect();
            for name in [SYSTEM, &namespace.name] {
                assert_eq!(
                    nodes_of(&namespace, name).await,
                    other,
                    "pods of {name} after {node} was drained"
                );
            }
            asleep.load().one().await.assert_all_answered();
            one.has_pods(1).await;
            two.has_pods(2).await;
            through.has_pods(1).await;
            for deployment in ["autoscaler", "activator", "injector"] {
                kubectl(&[
                    "-n",
                    SYSTEM,
                    "rollout",
                    "status",
                    &format!("deployment/{deployment}"),
                    "--timeout=2m",
                ])
                .await;
            }
            kubectl(&["uncordon", node]).await;
            asleep.has_pods(0).await;
        }

        for traffic in traffic {
            traffic.end().await.assert_nothing_missing();
        }
    });
}
