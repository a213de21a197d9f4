//! The shortest whole story of a cluster: `.ci/run` ends with this program. A Deployment that Kubernetes
//! serves is injected and adopted, goes to zero, and gets eight pods under `hey` while the autoscaler that
//! decides is killed. Then it goes to zero again and is given back. Every request is accounted for.

use std::time::Duration;

use tests::cluster::{PATIENCE, WorkloadPlan, hey, in_namespace, succeeds};
use tests::eventually;

const KUBERNETES: &str = "endpointslice-controller.k8s.io";
/// Long enough for another autoscaler to take over 16 s after the kill, and to decide twice.
const LOAD_SECONDS: u32 = 25;

#[test]
fn a_deployment_is_injected_adopted_scaled_by_load_while_its_owner_is_killed_and_given_back() {
    in_namespace("smoke", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/target", "10");
        let hello = plan.not_injected().served_by_kubernetes().create(&namespace).await;
        hello.has_pods(1).await;
        hello.label_template().await;
        eventually("the pod has a queue-proxy", PATIENCE, || async {
            let ready = hello.ready_containers().await;
            if ready == [2] { Ok(()) } else { Err(format!("{ready:?} containers are ready")) }
        })
        .await;

        let traffic = hello.load().path("/?sleep=50").with_own_connections().in_background(10);
        succeeds(&namespace, &["adopt", "service/hello"]).await;
        traffic.end().await.assert_nothing_missing();
        hello.has_pods(0).await;

        let counts = hello.watch_counts();
        let owner = namespace.settled_owner().await;
        let load = async { hey(&hello, &namespace, LOAD_SECONDS).await };
        let kill = async {
            eventually("the load has its eight pods", PATIENCE, || async {
                let count = hello.count().await;
                if count == 8 { Ok(()) } else { Err(format!("{count} pods are wanted")) }
            })
            .await;
            namespace.kill_autoscaler(&owner.name).await;
            eventually("another autoscaler decides", PATIENCE, || namespace.successor_of(&owner)).await;
        };
        tokio::join!(load, kill);
        let seen: Vec<i32> = counts.end().into_iter().map(|(_, count)| count).collect();
        // Fifty clients at ten requests in flight for each pod, of which 70 % are aimed at.
        assert_eq!(seen.iter().max(), Some(&8), "{seen:?}");
        hello.has_pods(0).await;

        let explained = succeeds(&namespace, &["explain", "hello"]).await;
        assert!(explained.contains("deployment/hello"), "{explained}");
        succeeds(&namespace, &["release", "service/hello"]).await;
        hello.has_only_slices_of(KUBERNETES).await;
        hello.has_pods(1).await;
        hello.load().steady(10, Duration::from_secs(2)).await.assert_all_answered();
    });
}
