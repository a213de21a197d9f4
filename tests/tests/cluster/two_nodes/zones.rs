//! Connections stay in their zone where the Service says so.

use k8s_openapi::api::discovery::v1::Endpoint;
use serde_json::json;
use tests::cluster::{PATIENCE, Workload, WorkloadPlan, in_namespace, kubectl};
use tests::eventually;

const ZONES: [(&str, &str); 2] = [("n1", "east"), ("n2", "west")];

/// The node, zone and zone to prefer of each address.
async fn near(workload: &Workload) -> Vec<[String; 3]> {
    let endpoints = workload.slices().await.into_iter().flat_map(|slice| slice.endpoints);
    let zones = |endpoint: &Endpoint| -> Vec<String> {
        let hints = endpoint.hints.clone().unwrap_or_default();
        hints.for_zones.into_iter().flatten().map(|zone| zone.name).collect()
    };
    let near = endpoints.map(|endpoint| {
        let zones = zones(&endpoint).join(",");
        [endpoint.node_name.unwrap_or_default(), endpoint.zone.unwrap_or_default(), zones]
    });
    let mut near: Vec<[String; 3]> = near.collect();
    near.sort();
    near
}

#[test]
fn a_service_that_prefers_its_zone_has_hints_on_its_pods_and_still_serves() {
    in_namespace("zones", async |namespace| {
        let plan = WorkloadPlan::new("hello").annotated("autoscaling.knative.dev/min-scale", "2");
        let plan = plan.annotated("autoscaling.knative.dev/target-burst-capacity", "0");
        let hello = plan.create(&namespace).await;
        hello.has_pods(2).await;
        hello.is_served_directly().await;
        for (node, zone) in ZONES {
            let label = format!("topology.kubernetes.io/zone={zone}");
            kubectl(&["label", "node", node, &label, "--overwrite"]).await;
        }
        hello.patch_service(json!({"spec": {"trafficDistribution": "PreferSameZone"}})).await;
        let expected = ZONES.map(|(node, zone)| [node, zone, zone].map(str::to_owned));
        eventually("each address says its zone, and who is to prefer it", PATIENCE, || async {
            let near = near(&hello).await;
            if near == expected { Ok(()) } else { Err(format!("{near:?}")) }
        })
        .await;
        hello.load().with_own_connections().burst(50).await.assert_all_answered();
        hello.patch_service(json!({"spec": {"trafficDistribution": null}})).await;
        let expected = ZONES.map(|(node, zone)| [node, zone, ""].map(str::to_owned));
        eventually("and nobody any more", PATIENCE, || async {
            let near = near(&hello).await;
            if near == expected { Ok(()) } else { Err(format!("{near:?}")) }
        })
        .await;
    });
}
