//! The API server, etcd, kubelet or containerd are away: traffic goes on, and afterwards scaling does.

use std::time::Duration;

use tests::client::Tally;
use tests::cluster::{RequestPath, TestNamespace, Workload, WorkloadPlan, component, in_namespace};
use tokio::task::JoinHandle;

/// Sends requests in the background for so many seconds.
fn traffic(app: &Workload, seconds: u64) -> JoinHandle<Tally> {
    let load = app.load().path("/?sleep=100").with_own_connections();
    tokio::spawn(async move { load.steady(20, Duration::from_secs(seconds)).await })
}

async fn is_all_answered(traffic: JoinHandle<Tally>) {
    traffic.await.expect("the client does not panic").assert_all_answered();
}

/// What every suite here begins with: one pod that is kept.
async fn kept(namespace: &TestNamespace, name: &str) -> Workload {
    kept_as(namespace, WorkloadPlan::new(name)).await
}

async fn kept_as(namespace: &TestNamespace, plan: WorkloadPlan) -> Workload {
    let app = plan.annotated("autoscaling.knative.dev/min-scale", "1").create(namespace).await;
    app.has_pods(1).await;
    app.load().one().await.assert_all_answered();
    app
}

#[test]
fn while_the_api_server_is_away_for_a_minute_traffic_goes_on_and_then_scaling_does() {
    in_namespace("no-api", async |namespace| {
        let (busy, resting) = (kept(&namespace, "busy").await, kept(&namespace, "resting").await);
        let direct = kept_as(&namespace, WorkloadPlan::new("direct").by(RequestPath::Direct)).await;
        direct.is_served_directly().await;
        let asleep = WorkloadPlan::new("asleep").create(&namespace).await;
        asleep.has_pods(0).await;
        let traffic = [&busy, &direct].map(|app| traffic(app, 75));
        component("stop", "kube-apiserver").await;
        // Longer than a lease.
        tokio::time::sleep(Duration::from_secs(50)).await;
        resting.load().burst(5).await.assert_all_answered();
        // It needs a pod, so it waits for the API server.
        let load = asleep.load().with_own_connections();
        let woken = tokio::spawn(async move { load.burst(5).await });
        tokio::time::sleep(Duration::from_secs(10)).await;
        component("start", "kube-apiserver").await;
        is_all_answered(woken).await;
        for traffic in traffic {
            is_all_answered(traffic).await;
        }
        asleep.has_pods(0).await;
        asleep.load().one().await.assert_all_answered();
    });
}

#[test]
fn etcd_is_killed_and_started_and_nothing_is_lost() {
    in_namespace("etcd", async |namespace| {
        let busy = kept(&namespace, "busy").await;
        let asleep = WorkloadPlan::new("asleep").create(&namespace).await;
        asleep.has_pods(0).await;
        let traffic = traffic(&busy, 20);
        component("stop", "etcd").await;
        let load = asleep.load().with_own_connections();
        let woken = tokio::spawn(async move { load.burst(5).await });
        component("start", "etcd").await;
        is_all_answered(woken).await;
        is_all_answered(traffic).await;
        asleep.has_pods(0).await;
    });
}

/// A pod is asked for while a part of its node is started again.
async fn goes_on_without(namespace: TestNamespace, part: &str) {
    let busy = kept(&namespace, "busy").await;
    let asleep = WorkloadPlan::new("asleep").create(&namespace).await;
    asleep.has_pods(0).await;
    let traffic = traffic(&busy, 20);
    component("stop", part).await;
    asleep.load().burst(5).await.assert_all_answered();
    is_all_answered(traffic).await;
    asleep.has_pods(0).await;
}

#[test]
fn a_kubelet_that_is_killed_is_followed_and_nothing_is_lost() {
    in_namespace("kubelet", async |namespace| goes_on_without(namespace, "n1/kubelet").await);
}

#[test]
fn a_containerd_that_is_killed_is_followed_and_nothing_is_lost() {
    in_namespace("containerd", async |namespace| goes_on_without(namespace, "n1/containerd").await);
}
