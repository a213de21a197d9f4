//! A smaller count ends the pods that serve nobody, whichever Kubernetes would have chosen: the component
//! `pod-deletion-cost` is installed.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tests::client::Load;
use tests::cluster::{PATIENCE, WorkloadPlan, in_namespace};
use tests::eventually;

/// So long that what they hold fills the stable window, and ends within a drain's limit after that.
const REQUESTS_TAKE: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_secs(6);

#[test]
fn a_smaller_count_ends_the_pods_that_serve_nobody() {
    in_namespace("idle-first", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target", "1");
        let plan = plan.annotated("autoscaling.knative.dev/target-utilization-percentage", "100");
        let plan = plan.annotated("autoscaling.knative.dev/target-burst-capacity", "0");
        let plan = plan.annotated("autoscaling.knative.dev/min-scale", "2");
        let hello = plan.create(&namespace).await;
        hello.has_pods(2).await;
        let old: Vec<IpAddr> = hello.pod_addresses().await;
        hello.annotate("autoscaling.knative.dev/min-scale", Some("4")).await;
        hello.has_pods(4).await;

        // Kubernetes likes to end those that became ready last, so these are the ones to be busy.
        let young: Vec<IpAddr> =
            hello.pod_addresses().await.into_iter().filter(|address| !old.contains(address)).collect();
        assert_eq!(young.len(), 2);
        let host = format!("hello.{}.svc", namespace.name);
        let path = format!("/?sleep={}", REQUESTS_TAKE.as_millis());
        let busy: Vec<_> = young
            .iter()
            .map(|&address| {
                let load = Load::new(SocketAddr::new(address, 8012), &host).path(&path);
                tokio::spawn(async move { load.one().await })
            })
            .collect();
        tokio::time::sleep(WINDOW + Duration::from_secs(1)).await;
        hello.annotate("autoscaling.knative.dev/min-scale", Some("2")).await;
        eventually("two pods", PATIENCE, || async {
            let left = hello.pod_addresses().await;
            if left.len() == 2 { Ok(()) } else { Err(format!("{left:?}")) }
        })
        .await;
        let (mut left, mut young) = (hello.pod_addresses().await, young);
        left.sort_unstable();
        young.sort_unstable();
        assert_eq!(left, young, "those that served nobody have ended, and nothing was drained");
        for request in busy {
            request.await.expect("the client does not panic").assert_all_answered();
        }
    });
}
