//! Whoever decides fights no person.

use std::time::Duration;

use tests::cluster::{PATIENCE, WorkloadPlan, in_namespace};
use tests::eventually;

#[test]
fn a_person_who_writes_zero_under_load_loses_nobody_a_request() {
    in_namespace("by-hand", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_pods(1).await;
        let load = hello.load();
        // Longer than a pod goes on with its connections whom nobody tells that it is released.
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
        let tally = traffic.await.expect("the client does not panic");
        tally.assert_none_lost();
        assert_eq!(tally.refused(), 0, "{:?}", tally.outcomes);
    });
}
