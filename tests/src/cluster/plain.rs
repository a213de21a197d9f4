//! The same app as people have it: a Deployment and a Service with a selector, and nothing of ebb.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::TestNamespace;
use crate::bench::{api, clock};
use crate::wait::eventually;

/// Whether kubelet asks the app when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletProbe {
    /// Its containers run: then it is ready.
    None,
    /// The most often that kubelet asks.
    EachSecond,
}

/// A container of the app in a pod.
struct AppContainer<'a> {
    name: &'a str,
    port: u16,
    args: &'a [&'a str],
    probe: KubeletProbe,
}

/// The objects that were made, by their names.
#[derive(Clone)]
pub struct PlainWorkload {
    namespace: TestNamespace,
    name: String,
    address: SocketAddr,
}

impl PlainWorkload {
    /// Makes it, without a pod.
    pub async fn create(
        namespace: &TestNamespace,
        name: &str,
        app_args: &[&str],
        probe: KubeletProbe,
    ) -> anyhow::Result<Self> {
        let app = AppContainer { name: "app", port: 8080, args: app_args, probe };
        Self::of_containers(namespace, name, &[app]).await
    }

    /// The same with a second container of the app in each pod, both without a probe: what Kubernetes alone
    /// takes for pods of as many containers as ours have.
    pub async fn of_two_containers(namespace: &TestNamespace, name: &str) -> anyhow::Result<Self> {
        let containers = [("app", 8080), ("second", 8081)].map(|(name, port)| AppContainer {
            name,
            port,
            args: &[],
            probe: KubeletProbe::None,
        });
        Self::of_containers(namespace, name, &containers).await
    }

    async fn of_containers(
        namespace: &TestNamespace,
        name: &str,
        containers: &[AppContainer<'_>],
    ) -> anyhow::Result<Self> {
        let service = json!({
            "metadata": {"name": name},
            "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}], "selector": {"app": name}},
        });
        let service: Service = serde_json::from_value(service)?;
        let made = namespace.api::<Service>().create(&PostParams::default(), &service).await?;
        let ip = made.spec.and_then(|spec| spec.cluster_ip).context("a Service has an address")?;
        let deployment: Deployment = serde_json::from_value(deployment(name, containers))?;
        namespace.api::<Deployment>().create(&PostParams::default(), &deployment).await?;
        let address = SocketAddr::new(ip.parse::<IpAddr>()?, 80);
        Ok(Self { namespace: namespace.clone(), name: name.to_owned(), address })
    }

    /// From the order for one pod to the first answer through the Service, in ms. It is at zero before and
    /// after.
    pub async fn woken(&self, patience: Duration) -> anyhow::Result<f64> {
        let took = self.first_answer(patience).await?;
        self.rests(patience).await?;
        Ok(took)
    }

    /// The same, and its pod stays.
    pub async fn first_answer(&self, patience: Duration) -> anyhow::Result<f64> {
        let began = clock::now();
        self.scale(1).await?;
        let address = self.address;
        // Connections are refused until a node knows of an endpoint, so who asks asks again.
        let asked =
            tokio::task::spawn_blocking(move || api::until(patience, || api::get(address, "hello", "/")));
        asked.await??;
        Ok(clock::millis(clock::since(began)))
    }

    /// Takes its pods away, and waits until they are gone.
    pub async fn rests(&self, patience: Duration) -> anyhow::Result<()> {
        self.scale(0).await?;
        let pods = ListParams::default().labels(&format!("app={}", self.name));
        eventually("its pod is gone", patience, || async {
            let left = self.namespace.api::<Pod>().list(&pods).await.map_err(|error| error.to_string())?;
            if left.items.is_empty() { Ok(()) } else { Err(format!("{} are there", left.items.len())) }
        })
        .await;
        Ok(())
    }

    /// Writes a count, as `kubectl scale` does.
    pub async fn scale(&self, count: u32) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": count}}));
        self.namespace.api::<Deployment>().patch_scale(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

fn deployment(name: &str, containers: &[AppContainer<'_>]) -> Value {
    let containers: Vec<Value> = containers.iter().map(AppContainer::spec).collect();
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": containers, "terminationGracePeriodSeconds": 2},
            },
        },
    })
}

impl AppContainer<'_> {
    fn spec(&self) -> Value {
        let args: Vec<&str> = ["--bind", "0.0.0.0"].into_iter().chain(self.args.iter().copied()).collect();
        let asks = json!({"httpGet": {"port": self.port}, "periodSeconds": 1});
        json!({
            "name": self.name,
            "image": "test-app:test",
            "args": args,
            "env": [{"name": "PORT", "value": self.port.to_string()}],
            "ports": [{"name": self.name, "containerPort": self.port}],
            "readinessProbe": (self.probe == KubeletProbe::EachSecond).then_some(asks),
        })
    }
}
