//! Who decides, and what may happen to his process: it is killed, or frozen. Nodes of the cluster of tests
//! are on this machine, so that a container's processes are found by its number in their control groups.

use std::collections::BTreeMap;
use std::fs;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::workload::is_ready;
use super::{PATIENCE, SYSTEM, TestNamespace};
use crate::wait::eventually;

/// As many as the manifests ask for.
const AUTOSCALERS: usize = 2;

/// The autoscaler that holds the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingAutoscaler {
    /// The name of the autoscaler's pod.
    pub name: String,
    /// How often the lease had changed its holder by then.
    pub transitions: i32,
}

impl TestNamespace {
    /// The autoscaler that decides, if one does.
    pub async fn owner(&self) -> Option<DecidingAutoscaler> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), SYSTEM);
        let spec = leases.get_opt("ebb-autoscaler").await.expect("leases can be read")?.spec?;
        let name = spec.holder_identity.filter(|holder| !holder.is_empty())?;
        Some(DecidingAutoscaler { name, transitions: spec.lease_transitions.unwrap_or_default() })
    }

    /// `Ok` with who decides by now, if it is another one than this.
    pub async fn successor_of(&self, former: &DecidingAutoscaler) -> Result<DecidingAutoscaler, String> {
        let present = self.owner().await.ok_or("nobody decides")?;
        let is_another = present.name != former.name && present.transitions > former.transitions;
        if is_another { Ok(present) } else { Err(format!("{present:?}")) }
    }

    /// `Ok` with the autoscaler that decides by now, if one has begun to since then, of whatever name.
    pub async fn decider_after(&self, former: &DecidingAutoscaler) -> Result<DecidingAutoscaler, String> {
        let present = self.owner().await.ok_or("nobody decides")?;
        if present.transitions > former.transitions { Ok(present) } else { Err(format!("{present:?}")) }
    }

    /// Waits until all autoscalers are there and ready, so that there is one to follow; returns who decides.
    pub async fn settled_owner(&self) -> DecidingAutoscaler {
        let pods = self.system_pods();
        let selected = ListParams::default().labels("app.kubernetes.io/component=autoscaler");
        eventually("all autoscalers are ready, and one decides", PATIENCE, || async {
            let pods = pods.list(&selected).await.expect("pods can be listed").items;
            let (all, ready) = (pods.len(), pods.iter().filter(|pod| is_ready(pod)).count());
            let owner = self.owner().await;
            let is_there = owner.as_ref().is_some_and(|owner| {
                pods.iter().any(|pod| pod.metadata.name.as_deref() == Some(owner.name.as_str()))
            });
            let is_settled = (all, ready) == (AUTOSCALERS, AUTOSCALERS) && is_there;
            owner.filter(|_| is_settled).ok_or_else(|| format!("{ready} of {all} ready, {is_there}"))
        })
        .await
    }

    /// Ends the process of an autoscaler, and takes its pod away at once, so that nothing starts it again
    /// under its name.
    pub async fn kill_autoscaler(&self, name: &str) {
        let pods = self.system_pods();
        let pod = pods.get(name).await.expect("it is there");
        signal_all(&processes(&pod), Signal::SIGKILL);
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.expect("it can be deleted");
    }

    /// Ends the process of an autoscaler, which kubelet starts again in the same pod.
    pub async fn kill_process_of_autoscaler(&self, name: &str) {
        let pod = self.system_pods().get(name).await.expect("it is there");
        signal_all(&processes(&pod), Signal::SIGKILL);
    }

    /// Ends an autoscaler as a rollout does.
    pub async fn stop_autoscaler(&self, name: &str) {
        self.system_pods().delete(name, &DeleteParams::default()).await.expect("it can be deleted");
    }

    /// Where the pods of a program of ebb's run that do not end: their names by their nodes'.
    pub async fn nodes_of_program(&self, component: &str) -> BTreeMap<String, Vec<String>> {
        let selected = ListParams::default().labels(&format!("app.kubernetes.io/component={component}"));
        let pods = self.system_pods().list(&selected).await.expect("pods can be listed").items;
        let mut nodes = BTreeMap::<String, Vec<String>>::new();
        for pod in pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
            nodes.entry(node).or_default().extend(pod.metadata.name);
        }
        nodes
    }

    /// Stops the process of a program of ebb's, without a word, until it is let go.
    pub async fn freeze_program(&self, name: &str) -> FrozenContainer {
        let pod = self.system_pods().get(name).await.expect("it is there");
        let processes = processes(&pod);
        signal_all(&processes, Signal::SIGSTOP);
        FrozenContainer { processes }
    }

    /// Whether kubelet finds a pod of ebb's own ready.
    pub async fn system_pod_is_ready(&self, name: &str) -> bool {
        is_ready(&self.system_pods().get(name).await.expect("it is there"))
    }

    fn system_pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), SYSTEM)
    }
}

/// A container whose processes stand still until this is dropped.
pub struct FrozenContainer {
    processes: Vec<Pid>,
}

impl Drop for FrozenContainer {
    fn drop(&mut self) {
        // They may have been killed meanwhile.
        for process in &self.processes {
            let _ = kill(*process, Signal::SIGCONT);
        }
    }
}

fn signal_all(processes: &[Pid], signal: Signal) {
    for process in processes {
        kill(*process, signal).expect("the tests' user may signal it");
    }
}

/// Of the only container of a pod, as this machine numbers them.
fn processes(pod: &Pod) -> Vec<Pid> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let ids: Vec<&str> = statuses.filter_map(|status| status.container_id.as_deref()).collect();
    let id = match ids.as_slice() {
        [id] => id.rsplit('/').next().expect("a text has an end"),
        other => panic!("not one container: {other:?}"),
    };
    let numbers = fs::read_dir("/proc").expect("there is /proc").filter_map(|entry| {
        let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        // One that ended meanwhile is none of it.
        let groups = fs::read_to_string(format!("/proc/{number}/cgroup")).ok()?;
        groups.contains(id).then(|| Pid::from_raw(number))
    });
    let found: Vec<Pid> = numbers.collect();
    assert!(!found.is_empty(), "no process of the container {id} is on this machine: is its node?");
    found
}
