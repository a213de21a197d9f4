//! A smaller count ends the pods that serve no request, whichever Kubernetes would have chosen: the component
//! `pod-deletion-cost` is installed.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tests::client::Load;
use tests::cluster::{PATIENCE, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;

/// So long that what they hold fills the stable window, and ends within a drain's limit after that.
const REQUESTS_TAKE: Duration = Duration::from_secs(15);
const WINDOW: Duration = Duration::from_secs(6);
/// Kubernetes ends those first that became ready last, and compares only how many digits ages have, in
/// binary: twice the age of the young ones as their end comes, and some more.
const OLDER_BY: Duration = Duration::from_secs(45);

/// What says to Kubernetes whose end costs least, and is still there on pods that it passed over.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What came of a smaller count.
#[derive(Debug)]
struct Fall {
    /// Requests that were under way in pods that were to end.
    drained: usize,
    /// Pods that were left although they were marked to end first.
    passed_over: usize,
}

/// Two of four pods hold a request each, and the count falls to two.
async fn fall(namespace: &TestNamespace, name: &str, idle_first: &str) -> Fall {
    let plan = WorkloadPlan::new(name).annotated("ebb.dev/idle-first-scale-down", idle_first);
    let plan = plan.annotated("autoscaling.knative.dev/target", "1");
    let plan = plan.annotated("autoscaling.knative.dev/target-utilization-percentage", "100");
    let plan = plan.annotated("autoscaling.knative.dev/target-burst-capacity", "0");
    let plan = plan.annotated("autoscaling.knative.dev/min-scale", "2");
    let app = plan.create(namespace).await;
    app.has_pods(2).await;
    let old: Vec<IpAddr> = app.pod_addresses().await;
    tokio::time::sleep(OLDER_BY).await;
    app.annotate("autoscaling.knative.dev/min-scale", Some("4")).await;
    app.has_pods(4).await;

    // The ones that Kubernetes would end are the ones to be busy.
    let young: Vec<IpAddr> =
        app.pod_addresses().await.into_iter().filter(|address| !old.contains(address)).collect();
    assert_eq!(young.len(), 2);
    let host = format!("{name}.{}.svc", namespace.name);
    let path = format!("/?sleep={}", REQUESTS_TAKE.as_millis());
    let busy: Vec<_> = young
        .iter()
        .map(|&address| {
            let load = Load::new(SocketAddr::new(address, 8012), &host).path(&path);
            tokio::spawn(async move { load.one().await })
        })
        .collect();
    tokio::time::sleep(WINDOW + Duration::from_secs(1)).await;
    app.annotate("autoscaling.knative.dev/min-scale", Some("2")).await;
    let left = eventually("two pods", PATIENCE, || async {
        let left = app.pod_addresses().await;
        if left.len() == 2 { Ok(left) } else { Err(format!("{left:?}")) }
    })
    .await;
    for request in busy {
        request.await.expect("the client does not panic").assert_all_answered();
    }
    let annotations = app.pod_annotations().await;
    Fall {
        drained: young.iter().filter(|address| !left.contains(address)).count(),
        passed_over: annotations.iter().filter(|pod| pod.contains_key(DELETION_COST)).count(),
    }
}

#[test]
fn a_smaller_count_ends_the_pods_that_serve_nobody_and_without_the_hint_those_that_serve() {
    in_namespace("idle-first", async |namespace| {
        let (with, without) =
            tokio::join!(fall(&namespace, "hinted", "true"), fall(&namespace, "unhinted", "false"));
        // Were those marked that serve no request, and ended the others all the same?
        println!("with the hint: {with:?}; without it: {without:?}");
        assert_eq!((with.drained, without.drained), (0, 2));
        assert_eq!((with.passed_over, without.passed_over), (0, 0));
    });
}
