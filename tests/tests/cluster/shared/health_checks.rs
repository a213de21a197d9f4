//! Health checks and scrapes come for ever: they are answered, wake no pod and keep none.

use std::time::Duration;

use http::header::USER_AGENT;
use tests::cluster::{RequestPath, WorkloadPlan, in_namespace};

/// Three stable windows, and the grace period.
const LONG: Duration = Duration::from_secs(24);

#[test]
fn health_checks_of_a_service_are_answered_at_zero_and_keep_no_pod() {
    in_namespace("checks", async |namespace| {
        let checked = async |path: RequestPath| {
            let plan = WorkloadPlan::new(path.name()).by(path).annotated("ebb.dev/routing-dwell", "0s");
            let app = plan.create(&namespace).await;
            app.has_pods(0).await;
            let checks = app.load().header(USER_AGENT, "kube-probe/1.37").in_background(10);
            let before = app.generation().await;
            tokio::time::sleep(LONG).await;
            assert_eq!((app.count().await, app.generation().await), (0, before), "nobody else asked");
            app.load().one().await.assert_all_answered();
            app.has_pods(1).await;
            app.is_served_by(path).await;
            app.has_pods(0).await;
            checks.end().await.assert_nothing_missing();
        };
        tokio::join!(checked(RequestPath::Direct), checked(RequestPath::ThroughActivator));
    });
}
