//! Pods are replaced under load by those of a new template, and by those of the same: nothing is lost.

use tests::cluster::{PATIENCE, PlanKind, RequestPath, TestNamespace, Workload, WorkloadPlan, in_namespace};
use tests::eventually;

/// The number of requests in each second.
const RATE: u32 = 20;

/// Waits until it has so many pods, none of which it had then; returns which.
async fn has_other_pods(app: &Workload, count: usize, former: &[String]) -> Vec<String> {
    eventually("other pods alone", PATIENCE, || async {
        let present = app.pod_uids().await;
        let is_so = present.len() == count && !present.iter().any(|pod| former.contains(pod));
        if is_so { Ok(present) } else { Err(format!("{present:?}")) }
    })
    .await
}

/// A new template, and then, as `kubectl rollout restart` does it, one that says the same.
async fn is_rolled_without_loss(
    namespace: &TestNamespace,
    plan: WorkloadPlan,
    path: RequestPath,
    pods: usize,
) {
    let plan = plan.by(path).annotated("autoscaling.knative.dev/min-scale", &pods.to_string());
    let app = plan.create(namespace).await;
    app.has_pods(pods).await;
    app.is_served_by(path).await;
    let first = app.pod_uids().await;
    let traffic = app.load().path("/?sleep=200").in_background(RATE);
    app.set_app_args(&["--bind", "0.0.0.0", "--start-delay-ms", "500"]).await;
    let second = has_other_pods(&app, pods, &first).await;
    app.has_pods(pods).await;
    app.restart().await;
    has_other_pods(&app, pods, &second).await;
    app.has_pods(pods).await;
    app.is_served_by(path).await;
    traffic.end().await.assert_nothing_missing();
}

#[test]
fn a_deployment_of_one_pod_or_of_three_is_rolled_out_and_restarted_without_loss() {
    in_namespace("rolled", async |namespace| {
        let rolls =
            |name, path, pods| is_rolled_without_loss(&namespace, WorkloadPlan::new(name), path, pods);
        tokio::join!(
            rolls("one-direct", RequestPath::Direct, 1),
            rolls("one-through", RequestPath::ThroughActivator, 1),
            rolls("three-direct", RequestPath::Direct, 3),
            rolls("three-through", RequestPath::ThroughActivator, 3),
        );
    });
}

/// Its pods end before others of their names begin.
#[test]
fn a_stateful_set_is_rolled_out_and_restarted_without_loss() {
    in_namespace("rolled-set", async |namespace| {
        let rolls = |name, path, pods| {
            let plan = WorkloadPlan::new(name).of_kind(PlanKind::StatefulSet);
            is_rolled_without_loss(&namespace, plan, path, pods)
        };
        tokio::join!(
            rolls("one-direct", RequestPath::Direct, 1),
            rolls("two-through", RequestPath::ThroughActivator, 2),
        );
    });
}
