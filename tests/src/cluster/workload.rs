//! A Deployment with its Service, as a user would write them, and what becomes of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use injector::{INJECT_LABEL, InjectorSettings, Outcome, inject};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{PATIENCE, TestNamespace};
use crate::client::Load;
use crate::wait::eventually;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    name: String,
    annotations: BTreeMap<String, String>,
    app_args: Vec<String>,
}

impl WorkloadPlan {
    /// The test app, with windows that a test can wait for.
    pub fn new(name: &str) -> Self {
        let window = ("autoscaling.knative.dev/window".to_owned(), "6s".to_owned());
        Self { name: name.to_owned(), annotations: [window].into(), app_args: Vec::new() }
    }

    /// An annotation of the Deployment itself.
    #[must_use]
    pub fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Arguments of the app.
    #[must_use]
    pub fn app_args(mut self, args: &[&str]) -> Self {
        self.app_args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// Makes both objects.
    pub async fn create(self, namespace: &TestNamespace) -> Workload {
        let service = self.service();
        let deployment = self.deployment();
        let parameters = PostParams::default();
        let made =
            namespace.api::<Service>().create(&parameters, &from(service)).await.expect("a Service is made");
        let ip = made.spec.and_then(|spec| spec.cluster_ip).expect("it has an address");
        let address = SocketAddr::new(ip.parse().expect("an address"), 80);
        namespace
            .api::<Deployment>()
            .create(&parameters, &from(deployment))
            .await
            .expect("a Deployment is made");
        Workload { namespace: namespace.clone(), name: self.name, address }
    }

    fn service(&self) -> Value {
        json!({
            "metadata": {
                "name": self.name,
                "annotations": {"ebb.dev/revision": format!("deployment/{}", self.name)},
            },
            "spec": {"ports": [{"name": "http", "port": 80}]},
        })
    }

    fn deployment(&self) -> Value {
        json!({
            "metadata": {"name": self.name, "annotations": self.annotations},
            "spec": {"selector": {"matchLabels": {"app": self.name}}, "template": self.template()},
        })
    }

    /// As `ebb inject` prints it.
    fn template(&self) -> Value {
        let app = json!({
            "name": "app",
            "image": "test-app:test",
            "args": self.app_args,
            "env": [{"name": "PORT", "value": "8080"}],
            "ports": [{"containerPort": 8080}],
        });
        let template = json!({
            "metadata": {
                "labels": {"app": self.name, INJECT_LABEL: "true"},
                // So that a pod that hangs fails the test, and not its time limit.
                "annotations": {"ebb.dev/drain-limit": "10s"},
            },
            "spec": {"containers": [app]},
        });
        let link_token = "000102030405060708090a0b0c0d0e0f".parse().expect("a token");
        let settings = InjectorSettings { image: "ebb-queue-proxy:test".to_owned(), link_token };
        match inject(&template, &settings) {
            Outcome::Injected(injection) => injection.pod,
            other @ (Outcome::NotAsked | Outcome::Refused(_)) => panic!("{other:?}"),
        }
    }
}

fn from<Object: serde::de::DeserializeOwned>(value: Value) -> Object {
    serde_json::from_value(value).expect("what stands here is such an object")
}

/// What was made.
#[derive(Clone)]
pub struct Workload {
    namespace: TestNamespace,
    name: String,
    /// Its Service's.
    pub address: SocketAddr,
}

impl Workload {
    /// Requests to its Service by the name that clients in the cluster use, over connections of their own.
    pub fn load(&self) -> Load {
        Load::new(self.address, &format!("{}.{}.svc", self.name, self.namespace.name))
    }

    /// The count that is written.
    pub async fn count(&self) -> i32 {
        let deployment = self.namespace.api::<Deployment>().get(&self.name).await.expect("it is there");
        deployment.spec.and_then(|spec| spec.replicas).unwrap_or_default()
    }

    /// Writes a count, as `kubectl scale` does.
    pub async fn scale_by_hand(&self, count: u32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": count}}));
        let written =
            self.namespace.api::<Deployment>().patch_scale(&self.name, &PatchParams::default(), &patch).await;
        written.expect("a person may write it");
    }

    /// Waits until this many pods are there, all of them ready, and as many are wanted.
    pub async fn has_pods(&self, count: usize) {
        let what = format!("{} has {count} pods", self.name);
        eventually(&what, PATIENCE, || async {
            let pods = self.pods().await;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            let wanted = self.count().await;
            let seen = format!("{wanted} wanted, {} there, {ready} ready", pods.len());
            let is_so = usize::try_from(wanted) == Ok(count) && pods.len() == count && ready == count;
            if is_so { Ok(()) } else { Err(seen) }
        })
        .await;
    }

    async fn pods(&self) -> Vec<Pod> {
        let selected = ListParams::default().labels(&format!("app={}", self.name));
        self.namespace.api::<Pod>().list(&selected).await.expect("pods can be listed").items
    }

    /// The names of its pods, those on their way out too.
    pub async fn pod_names(&self) -> Vec<String> {
        self.pods().await.into_iter().filter_map(|pod| pod.metadata.name).collect()
    }

    /// The names of the pods that its Service leads to.
    pub async fn served_by(&self) -> Vec<String> {
        let api: Api<EndpointSlice> = self.namespace.api();
        let selected = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.name));
        let slices = api.list(&selected).await.expect("slices can be listed");
        let endpoints = slices.items.into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter_map(|endpoint| endpoint.target_ref?.name).collect()
    }
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
