//! Clients that wait for each answer ask for the pods that they need, and for no more while the path changes
//! under them.

use std::time::Duration;

use serde_json::{Value, json};
use tests::cluster::{Workload, WorkloadPlan, in_namespace};

/// A count that was raised stays so for a whole stable window, so no look misses one.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const CLIENTS: usize = 20;

/// One pod has room for a burst of five, and serves directly until more than that come.
fn plan(name: &str) -> WorkloadPlan {
    let plan = WorkloadPlan::new(name).annotated("autoscaling.knative.dev/target-burst-capacity", "5");
    plan.annotated("ebb.dev/routing-dwell", "0s")
}

fn with_target(plan: WorkloadPlan) -> WorkloadPlan {
    plan.annotated("autoscaling.knative.dev/target", "5")
        .annotated("autoscaling.knative.dev/target-utilization-percentage", "100")
        .annotated("autoscaling.knative.dev/min-scale", "1")
}

fn document() -> Value {
    let target = json!({ "type": "AverageValue", "averageValue": "5" });
    let metric =
        json!({ "type": "Pods", "pods": { "metric": { "name": "ebb.concurrency" }, "target": target } });
    json!({ "minReplicas": 1, "maxReplicas": 20, "metrics": [metric] })
}

/// Meets pods that serve directly with all clients at once, each on a connection of its own, and watches
/// what is wanted.
async fn check(app: &Workload) {
    app.has_pods(1).await;
    app.is_served_directly().await;
    app.load().one().await.assert_all_answered();
    let load = app.load().path("/?sleep=300").with_own_connections();
    let traffic = tokio::spawn(async move { load.closed_loop(CLIENTS, Duration::from_secs(15)).await });
    let mut most = 0;
    while !traffic.is_finished() {
        most = most.max(app.count().await);
        assert!(most <= 5, "{}: {most} pods were wanted", app.name());
        tokio::time::sleep(LOOK_EVERY).await;
    }
    traffic.await.expect("the client does not panic").assert_none_lost();
    assert!(most >= 4, "{}: only {most} pods were wanted", app.name());
}

#[test]
fn twenty_clients_that_bring_activators_into_the_path_want_at_most_one_pod_too_many() {
    in_namespace("one-count", async |namespace| {
        let plans = [
            with_target(plan("crowd")).with_default_windows(),
            with_target(plan("short-windows")),
            // Its document says what the window is.
            plan("class-hpa").annotated("ebb.dev/hpa", &document().to_string()).with_default_windows(),
        ];
        for plan in plans {
            check(&plan.create(&namespace).await).await;
        }
    });
}
