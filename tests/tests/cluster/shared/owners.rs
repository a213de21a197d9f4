//! The autoscaler that decides fights no person.

use std::time::Duration;

use tests::cluster::{PATIENCE, RequestPath, Workload, WorkloadPlan, in_namespace};
use tests::eventually;

/// A person writes zero in the midst of requests, which bring other pods.
async fn survives_zero(hello: &Workload) {
    hello.has_pods(1).await;
    let load = hello.load();
    // Longer than a pod goes on with its connections without the word that it is released.
    let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(60)).await });
    tokio::task::yield_now().await;
    let first = hello.pod_names().await;
    hello.scale_by_hand(0).await;
    eventually("another pod serves", PATIENCE, || async {
        let present = hello.pod_names().await;
        if present.is_empty() || present.iter().any(|pod| first.contains(pod)) {
            Err(format!("{present:?}"))
        } else {
            Ok(())
        }
    })
    .await;
    hello.has_pods(1).await;
    traffic.await.expect("the client does not panic").assert_nothing_missing();
}

#[test]
fn a_person_who_writes_zero_under_load_loses_nobody_a_request() {
    in_namespace("by-hand", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        survives_zero(&hello).await;
        hello.has_event("ForeignCount").await;
    });
}

#[test]
fn a_person_who_writes_zero_while_pods_are_served_directly_loses_nobody_a_request() {
    in_namespace("by-hand-direct", async |namespace| {
        let plan = WorkloadPlan::new("hello").by(RequestPath::Direct);
        let plan = plan.annotated("autoscaling.knative.dev/min-scale", "1");
        let hello = plan.create(&namespace).await;
        hello.has_pods(1).await;
        hello.is_served_directly().await;
        survives_zero(&hello).await;
        hello.is_served_directly().await;
    });
}

#[test]
fn a_person_who_writes_more_and_then_fewer_under_load_loses_nobody_a_request() {
    in_namespace("up-and-down", async |namespace| {
        let goes = async |path: RequestPath| {
            let plan = WorkloadPlan::new(path.name()).by(path);
            let plan = plan.annotated("autoscaling.knative.dev/min-scale", "1");
            let app = plan.create(&namespace).await;
            app.has_pods(1).await;
            app.is_served_by(path).await;
            let traffic = app.load().path("/?sleep=200").in_background(20);
            for _ in 0..2 {
                app.scale_by_hand(3).await;
                // As long as pods take; one is enough, so the autoscaler may take them away before the
                // person does.
                tokio::time::sleep(Duration::from_secs(3)).await;
                app.scale_by_hand(1).await;
                app.has_pods(1).await;
                app.is_served_by(path).await;
            }
            traffic.end().await.assert_nothing_missing();
        };
        tokio::join!(goes(RequestPath::Direct), goes(RequestPath::ThroughActivator));
    });
}
