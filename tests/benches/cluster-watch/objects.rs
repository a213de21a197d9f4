//! Thousands of objects, as a cluster would have them, without anybody who acts upon them.

use std::net::Ipv4Addr;

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::cluster::TestNamespace;

/// How many requests are under way at once.
const AT_ONCE: usize = 48;

/// The number of workloads, and of pods in each.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    pub(crate) workloads: usize,
    pub(crate) pods_each: usize,
}

impl Crowd {
    pub(crate) fn workload(number: usize) -> String {
        format!("workload-{number:04}")
    }

    fn pod(workload: usize, number: usize) -> String {
        format!("{}-{number}", Self::workload(workload))
    }

    fn pods(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.workloads).flat_map(move |workload| (0..self.pods_each).map(move |pod| (workload, pod)))
    }

    /// Services that name their Deployments, and these with their pods, all ready.
    pub(crate) async fn make(self, namespace: &TestNamespace) -> anyhow::Result<()> {
        // Nobody is there who would make it.
        create::<ServiceAccount>(namespace, json!({"metadata": {"name": "default"}})).await?;
        concurrently(0..self.workloads, async |number| {
            let name = Self::workload(number);
            create::<Service>(namespace, service(&name)).await?;
            create::<Deployment>(namespace, deployment(&name, self.pods_each)).await
        })
        .await?;
        concurrently(self.pods(), async |(workload, number)| {
            let name = Self::pod(workload, number);
            create::<Pod>(namespace, pod(&name, &Self::workload(workload))).await?;
            let address =
                Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 200, 0, 1)) + index(self, workload, number)?);
            patch_status(namespace, &name, status(Some(address), "True")).await
        })
        .await
    }

    /// Whether the pod with this number, of all of them, is ready from now on.
    pub(crate) async fn turn(
        self,
        namespace: &TestNamespace,
        number: usize,
        ready: &str,
    ) -> anyhow::Result<()> {
        let (workload, pod) = (number / self.pods_each % self.workloads, number % self.pods_each);
        patch_status(namespace, &Self::pod(workload, pod), status(None, ready)).await
    }

    /// No pod is left, and none is wanted.
    pub(crate) async fn put_to_rest(self, namespace: &TestNamespace) -> anyhow::Result<()> {
        concurrently(0..self.workloads, async |number| {
            let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
            let api = namespace.api::<Deployment>();
            api.patch(&Self::workload(number), &PatchParams::default(), &none).await?;
            Ok(())
        })
        .await?;
        let at_once = DeleteParams::default().grace_period(0);
        concurrently(self.pods(), async |(workload, number)| {
            namespace.api::<Pod>().delete(&Self::pod(workload, number), &at_once).await?;
            Ok(())
        })
        .await?;
        let left = namespace.api::<Pod>().list(&ListParams::default().limit(1)).await?.items;
        anyhow::ensure!(left.is_empty(), "pods are left");
        Ok(())
    }
}

fn index(crowd: Crowd, workload: usize, number: usize) -> anyhow::Result<u32> {
    u32::try_from(workload * crowd.pods_each + number).context("there are not so many")
}

async fn concurrently<Item, Work>(
    items: impl IntoIterator<Item = Item>,
    work: impl Fn(Item) -> Work,
) -> anyhow::Result<()>
where
    Work: Future<Output = anyhow::Result<()>>,
{
    stream::iter(items).map(work).buffer_unordered(AT_ONCE).try_collect().await
}

async fn create<Object>(namespace: &TestNamespace, object: Value) -> anyhow::Result<()>
where
    Object: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object: Object = serde_json::from_value(object)?;
    namespace.api::<Object>().create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn patch_status(namespace: &TestNamespace, pod: &str, status: Value) -> anyhow::Result<()> {
    let patch = Patch::Strategic(json!({"status": status}));
    namespace.api::<Pod>().patch_status(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn status(address: Option<Ipv4Addr>, ready: &str) -> Value {
    let now = Timestamp::now().to_string();
    let condition =
        |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
    let mut status = json!({
        "phase": "Running",
        "conditions": [condition("Ready", ready), condition("ContainersReady", ready), condition("PodScheduled", "True")],
    });
    if let Some(address) = address {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    status
}

fn service(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"ebb.dev/revision": format!("deployment/{name}")}},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

/// A container as many have it, without a queue-proxy: what links cost is measured elsewhere (`fleet`).
fn containers() -> Value {
    let variable = |number: usize| json!({"name": format!("SETTING_{number}"), "value": "x".repeat(40)});
    json!([{
        "name": "app",
        "image": "registry.example.com/app:1.2.3",
        "env": (0..12).map(variable).collect::<Vec<_>>(),
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }])
}

fn deployment(name: &str, pods: usize) -> Value {
    let labels = json!({"app": name, "ebb.dev/inject": "true"});
    json!({
        "metadata": {"name": name, "annotations": {"autoscaling.knative.dev/target": "10"}},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers()}},
        },
    })
}

fn pod(name: &str, workload: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": workload, "pod-template-hash": "6d5f7c9b8"}},
        "spec": {"nodeName": "nowhere", "automountServiceAccountToken": false, "containers": containers()},
    })
}
