//! Who decides: one autoscaler at a time, and nobody fights a person.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, in_namespace};
use tests::eventually;

async fn owner(namespace: &TestNamespace) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let lease = leases.get_opt("ebb-autoscaler").await.expect("leases can be read")?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

#[test]
fn a_person_who_writes_zero_under_load_loses_nobody_a_request() {
    in_namespace("by-hand", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(1).await;
        let load = hello.load();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(15)).await });
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
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    });
}

#[test]
fn an_owner_that_leaves_is_followed_and_no_request_is_lost() {
    in_namespace("leaves", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(0).await;
        let load = hello.load();
        let traffic = tokio::spawn(async move { load.steady(20, Duration::from_secs(10)).await });
        hello.has_pods(1).await;
        let former = owner(&namespace).await.expect("somebody decides");
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
        pods.delete(&former, &DeleteParams::default()).await.expect("the owner can be deleted");
        eventually("another autoscaler decides", PATIENCE, || async {
            match owner(&namespace).await {
                Some(present) if present != former => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        traffic.await.expect("the client does not panic").assert_all_answered();
        hello.has_pods(0).await;
        hello.load().one().await.assert_all_answered();
    });
}
