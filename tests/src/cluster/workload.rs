//! A Deployment with its Service, as a user would write them, and what becomes of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use injector::{INJECT_LABEL, InjectorSettings, Outcome, inject};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
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
    ports: Vec<(String, u16, Value)>,
}

impl WorkloadPlan {
    /// The test app, with windows that a test can wait for.
    pub fn new(name: &str) -> Self {
        let window = ("autoscaling.knative.dev/window".to_owned(), "6s".to_owned());
        let ports = vec![("http".to_owned(), 80, json!(8080))];
        Self { name: name.to_owned(), annotations: [window].into(), app_args: Vec::new(), ports }
    }

    /// One more port of the Service, and where it leads. The app listens on 8080 (`http`) and 9090 (`more`), which its pods declare, and on 7070, which they do
    /// not.
    #[must_use]
    pub fn port(mut self, name: &str, number: u16, target: Value) -> Self {
        self.ports.push((name.to_owned(), number, target));
        self
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
        let address = self.create_service(namespace, &self.name).await;
        let deployment = from(self.deployment());
        let made = namespace.api::<Deployment>().create(&PostParams::default(), &deployment).await;
        made.expect("a Deployment is made");
        Workload { namespace: namespace.clone(), name: self.name, address }
    }

    /// Makes only a Service, of somebody else's Deployment.
    pub async fn create_service_of(self, namespace: &TestNamespace, workload: &Workload) -> Workload {
        let address = self.create_service(namespace, &workload.name).await;
        Workload { namespace: namespace.clone(), name: self.name, address }
    }

    async fn create_service(&self, namespace: &TestNamespace, workload: &str) -> SocketAddr {
        let service = from(self.service(workload));
        let made = namespace.api::<Service>().create(&PostParams::default(), &service).await;
        let ip = made.expect("a Service is made").spec.and_then(|spec| spec.cluster_ip);
        let ip = ip.and_then(|ip| ip.parse().ok()).expect("it has an address");
        SocketAddr::new(ip, 80)
    }

    fn service(&self, workload: &str) -> Value {
        json!({
            "metadata": {
                "name": self.name,
                "annotations": {"ebb.dev/revision": format!("deployment/{workload}")},
            },
            "spec": {"ports": service_ports(&self.ports)},
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
        let args: Vec<&str> =
            ["--bind", "0.0.0.0"].into_iter().chain(self.app_args.iter().map(String::as_str)).collect();
        let app = json!({
            "name": "app",
            "image": "test-app:test",
            // Beside what its queue-proxy stands before, the pod's own ports are asked.
            "args": args,
            "env": [{"name": "PORT", "value": "8080,9090,7070"}],
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "more", "containerPort": 9090}],
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

/// The ports of a Service: name, number, and where it leads.
fn service_ports(ports: &[(String, u16, Value)]) -> Value {
    let port = |(name, number, target): &(String, u16, Value)| json!({"name": name, "port": number, "targetPort": target});
    ports.iter().map(port).collect()
}

fn from<Object: serde::de::DeserializeOwned>(value: Value) -> Object {
    serde_json::from_value(value).expect("what stands here is such an object")
}

/// What was made.
#[derive(Clone)]
pub struct Workload {
    namespace: TestNamespace,
    name: String,
    /// Its Service's first port.
    pub address: SocketAddr,
}

impl Workload {
    /// Requests to its Service by the name that clients in the cluster use, over connections of their own.
    pub fn load(&self) -> Load {
        self.load_at(self.address.port())
    }

    /// The same to another port of it.
    pub fn load_at(&self, port: u16) -> Load {
        Load::new(self.at(port), &format!("{}.{}.svc", self.name, self.namespace.name))
    }

    /// Another port of its Service.
    pub fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address.ip(), port)
    }

    /// The Service has these ports from now on, and no others.
    pub async fn set_service_ports(&self, ports: &[(String, u16, Value)]) {
        let patch = json!([{"op": "replace", "path": "/spec/ports", "value": service_ports(ports)}]);
        let patch = Patch::Json::<()>(from(patch));
        let api = self.namespace.api::<Service>();
        api.patch(&self.name, &PatchParams::default(), &patch).await.expect("its ports may be changed");
    }

    /// Takes the Service and the Deployment away.
    pub async fn delete(&self) {
        let parameters = DeleteParams::default();
        let service = self.namespace.api::<Service>().delete(&self.name, &parameters).await;
        service.expect("the Service is deleted");
        let deployment = self.namespace.api::<Deployment>().delete(&self.name, &parameters).await;
        deployment.expect("the Deployment is deleted");
    }

    /// The slices of its Service, as they are written.
    pub async fn slices(&self) -> Vec<EndpointSlice> {
        let selected = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.name));
        self.namespace.api::<EndpointSlice>().list(&selected).await.expect("slices can be listed").items
    }

    /// The activators' ports before its Service's, as its slices say; waits until they do.
    pub async fn activator_ports(&self) -> Vec<u16> {
        eventually("its slices say which ports activators have", PATIENCE, || async {
            let ports = self.noted_ports().await;
            if ports.is_empty() { Err("none".to_owned()) } else { Ok(()) }
        })
        .await;
        self.noted_ports().await
    }

    async fn noted_ports(&self) -> Vec<u16> {
        let first = self.slices().await.into_iter().next();
        let annotations = first.and_then(|slice| slice.metadata.annotations).unwrap_or_default();
        let text = annotations.get("ebb.dev/activator-ports").map_or("", String::as_str);
        text.split(',').filter_map(|port| port.split_once('=')?.1.parse().ok()).collect()
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
        let endpoints = self.slices().await.into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter_map(|endpoint| endpoint.target_ref?.name).collect()
    }
}

fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
