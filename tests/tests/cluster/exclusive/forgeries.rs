//! A tenant that may write `EndpointSlice`s in a namespace of its own forges one of ebb's, and takes no port
//! of another tenant, whatever is restarted.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tests::cluster::{PATIENCE, SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace, kubectl};
use tests::eventually;

const PORTS: &str = "ebb.dev/activator-ports";
const PROOF: &str = "ebb.dev/activator-ports-proof";

fn annotation(slice: &EndpointSlice, key: &str) -> Option<String> {
    slice.metadata.annotations.as_ref()?.get(key).cloned()
}

/// Writes on all slices of a workload's Service that it has this port of activators, with this proof.
async fn forge(namespace: &TestNamespace, workload: &Workload, port: u16, proof: Option<&str>) {
    for slice in workload.slices().await {
        let name = slice.metadata.name.expect("it has a name");
        let annotations = json!({PORTS: format!("http:80={port}"), PROOF: proof});
        let change = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let patched = namespace.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &change).await;
        patched.expect("a tenant may write it");
    }
}

/// Waits until the slices say again what ebb wrote.
async fn is_written_anew(workload: &Workload, before: &[EndpointSlice]) {
    eventually("ebb has written its slices anew", PATIENCE, || async {
        let texts = |slices: &[EndpointSlice]| -> Vec<Option<String>> {
            slices.iter().map(|slice| annotation(slice, PORTS)).collect()
        };
        let present = workload.slices().await;
        let is_signed = present.iter().all(|slice| annotation(slice, PROOF).is_some());
        if is_signed && texts(&present) == texts(before) { Ok(()) } else { Err(format!("{present:?}")) }
    })
    .await;
}

async fn restart(program: &str) {
    let deployment = format!("deployment/{program}");
    kubectl(&["-n", SYSTEM, "rollout", "restart", &deployment]).await;
    kubectl(&["-n", SYSTEM, "rollout", "status", &deployment, "--timeout=5m"]).await;
}

/// Each answers for itself alone: an app says which one it is.
async fn answer(workloads: &[&Workload]) {
    for workload in workloads {
        workload.load().burst(5).await.assert_all_answered();
        workload.has_pods(0).await;
    }
}

#[test]
fn a_forged_slice_takes_no_port_of_another_tenant_across_restarts_of_activators_and_autoscalers() {
    in_namespace("bank", async |namespace| {
        let bank = WorkloadPlan::new("bank").create(&namespace).await;
        bank.has_pods(0).await;
        let banks_port = bank.activator_ports().await[0];
        namespace
            .beside("thief", async |thiefs| {
                let thief = WorkloadPlan::new("thief").create(&thiefs).await;
                thief.has_pods(0).await;
                let (own, own_port) = (thief.slices().await, thief.activator_ports().await[0]);
                assert_ne!(own_port, banks_port);
                let proof = annotation(&bank.slices().await[0], PROOF).expect("it is signed");
                // The bank's own signature is for the bank's Service.
                for proof in [Some(proof.as_str()), None] {
                    forge(&thiefs, &thief, banks_port, proof).await;
                    thief.has_event("ForgedSlice").await;
                    is_written_anew(&thief, &own).await;
                }
                answer(&[&bank, &thief]).await;

                // The next owner finds the forged one, for no autoscaler is there to write it anew.
                kubectl(&["-n", SYSTEM, "scale", "deployment/autoscaler", "--replicas=0"]).await;
                let gone = ["-n", SYSTEM, "wait", "pod", "--for=delete", "--timeout=2m", "-l"];
                let gone = [&gone[..], &["app.kubernetes.io/component=autoscaler"]].concat();
                kubectl(&gone).await;
                forge(&thiefs, &thief, banks_port, Some(&proof)).await;
                kubectl(&["-n", SYSTEM, "rollout", "restart", "deployment/activator"]).await;
                kubectl(&["-n", SYSTEM, "scale", "deployment/autoscaler", "--replicas=2"]).await;
                kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/autoscaler", "--timeout=2m"]).await;
                kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/activator", "--timeout=5m"]).await;
                namespace.settled_owner().await;
                eventually("the thief has a port of its own", PATIENCE, || async {
                    let ports = thief.activator_ports().await;
                    if ports.contains(&banks_port) { Err(format!("{ports:?}")) } else { Ok(()) }
                })
                .await;
                assert_eq!(bank.activator_ports().await, [banks_port], "the bank's is its own still");
                answer(&[&bank, &thief]).await;

                restart("activator").await;
                answer(&[&bank, &thief]).await;
            })
            .await;
    });
}
