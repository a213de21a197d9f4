//! What ebb's autoscaler asks of the API server, and the Leases that it holds: contract §4.2 and §4.6.

use std::collections::BTreeSet;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use tests::cluster::{KNATIVE_SYSTEM, PATIENCE, audit_log};
use tests::eventually;

use crate::app::{KnativeApp, KnativeAppPlan, in_knative};

const ACCOUNT: &str = "system:serviceaccount:knative-serving:ebb-autoscaler";
/// All that is written, and nothing else: no Service, no Endpoints, no spec of a `PodAutoscaler`, no Metric.
const WRITTEN: [&str; 6] =
    ["podautoscalers/status", "serverlessservices", "deployments/scale", "leases", "events", "secrets"];

#[test]
fn nothing_is_written_but_what_the_contract_names_and_nothing_is_forbidden() {
    in_knative("knative-writes", async |namespace| {
        // Also when this test runs alone something is written.
        let app = KnativeAppPlan::default().apply(&namespace).await;
        app.is_ready(1).await;
        app.has_count(&KnativeApp::revision(1), |count| count == 0).await;
        let (mut foreign, mut forbidden, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for line in audit_log().lines() {
            let entry: Value = serde_json::from_str(line).expect("the log has one object a line");
            if entry["user"]["username"] != ACCOUNT {
                continue;
            }
            let about = &entry["objectRef"];
            // A question about its own rights writes nothing.
            if about["apiGroup"] == "authorization.k8s.io" {
                continue;
            }
            let resource = about["resource"].as_str().unwrap_or_default();
            let resource = match about["subresource"].as_str() {
                Some(subresource) => format!("{resource}/{subresource}"),
                None => resource.to_owned(),
            };
            let verb = entry["verb"].as_str().unwrap_or_default();
            if entry["annotations"]["authorization.k8s.io/decision"] == "forbid" {
                forbidden.insert(format!("{verb} {resource}"));
            }
            if ["create", "update", "patch", "delete", "deletecollection"].contains(&verb) {
                seen.insert(resource.clone());
                if !WRITTEN.contains(&resource.as_str()) {
                    foreign.insert(format!("{verb} {resource}"));
                }
            }
        }
        assert!(seen.contains("podautoscalers/status"), "the log is of this autoscaler: {seen:?}");
        assert!(foreign.is_empty() && forbidden.is_empty(), "written {foreign:?}, forbidden {forbidden:?}");
    });
}

#[test]
fn each_bucket_has_knatives_lease_with_the_pod_and_its_address() {
    in_knative("knative-leases", async |namespace| {
        let leases: Api<Lease> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
        let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
        eventually("both buckets are held by the pod", PATIENCE, || async {
            let selected = ListParams::default().labels("app=autoscaler");
            let pods = pods.list(&selected).await.map_err(|error| error.to_string())?.items;
            let [pod] = pods.as_slice() else { return Err(format!("{} pods", pods.len())) };
            let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default();
            let wanted = format!("{}_{address}", pod.metadata.name.as_deref().unwrap_or_default());
            for bucket in 0..2 {
                let lease = leases.get(&format!("autoscaler-bucket-0{bucket}-of-02")).await;
                let spec = lease.map_err(|error| error.to_string())?.spec.unwrap_or_default();
                let is_long = spec.lease_duration_seconds.is_some_and(|seconds| seconds >= 15);
                if spec.holder_identity.as_deref() != Some(&wanted) || !is_long {
                    return Err(format!("{wanted}: {spec:?}"));
                }
            }
            Ok(())
        })
        .await;
    });
}
