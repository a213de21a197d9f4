//! `kubectl ebb dashboard`: the pages at a port of this machine, with the answers of the cluster's
//! autoscalers.

use tests::cluster::{PluginDashboard, WorkloadPlan, in_namespace};

#[test]
fn the_dashboard_of_a_cluster_shows_its_revisions_to_a_reader_with_the_token_alone() {
    in_namespace("dashboard", async |namespace| {
        let hello = WorkloadPlan::new("hello").create(&namespace).await;
        hello.has_event("Adopted").await;
        let dashboard = PluginDashboard::open(&namespace).await;
        let name = format!("{}/deployment/hello", namespace.name);
        let revision = format!("/v1/revisions/{name}");
        dashboard.asked("/v1/stream", &name).await;
        dashboard.asked(&revision, "\"decisions\"").await;
        dashboard.asked(&format!("{revision}/series?range=15m"), "\"step_ms\":1000").await;
        dashboard.asked(&format!("{revision}/forecast"), "\"hours\"").await;
        dashboard.asked("/v1/ledger?since=7d", &name).await;
        dashboard.asked_by_stranger("/", "/dashboard/app.js").await;
        let refused = dashboard.asked_by_stranger("/v1/revisions", "this needs the token").await;
        assert!(refused.starts_with("HTTP/1.1 401") && !refused.contains(&name), "{refused}");
    });
}
