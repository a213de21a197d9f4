//! A Service of Knative's as a user applies it, and what becomes of it.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Pod, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};
use tests::cluster::{KNATIVE_SYSTEM, PATIENCE, TestNamespace, in_namespace};
use tests::knative::PlayedKind;
use tests::{Load, eventually};

use crate::installing::begin_at_step_one;

/// The name of a Service that is alone: each test has a namespace of its own.
pub(crate) const NAME: &str = "hello";

/// A Service of Knative's in the namespace of a test.
#[derive(Clone)]
pub(crate) struct KnativeApp {
    pub(crate) namespace: TestNamespace,
    pub(crate) name: String,
}

/// What is to be applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnativeAppPlan {
    annotations: Map<String, Value>,
    args: Vec<String>,
    port_name: Option<&'static str>,
    container_concurrency: u32,
}

impl KnativeAppPlan {
    /// One more setting of the autoscaler, without the prefix that all have.
    pub(crate) fn scaled(self, key: &str, value: &str) -> Self {
        self.annotated(&format!("autoscaling.knative.dev/{key}"), value)
    }

    /// One more annotation of the template.
    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), json!(value));
        self
    }

    /// One more argument of the app.
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// The app refuses HTTP/1.1, and says so by the name of its port.
    pub(crate) fn h2c(self) -> Self {
        Self { port_name: Some("h2c"), ..self.arg("--only").arg("h2c") }
    }

    /// The most requests in a pod at once; 0, which is the default, means no limit.
    pub(crate) fn container_concurrency(self, container_concurrency: u32) -> Self {
        Self { container_concurrency, ..self }
    }

    fn template(&self) -> Value {
        let mut port = json!({"containerPort": 8080});
        if let Some(name) = self.port_name {
            port["name"] = json!(name);
        }
        let app = json!({"image": "test-app:test", "args": self.args, "ports": [port]});
        let spec = json!({"containerConcurrency": self.container_concurrency, "containers": [app]});
        json!({"metadata": {"annotations": self.annotations}, "spec": spec})
    }

    /// Applies the Service to the namespace, where it is alone.
    pub(crate) async fn apply(self, namespace: &TestNamespace) -> KnativeApp {
        self.apply_as(NAME, namespace).await
    }

    /// Applies the Service to the namespace under this name.
    pub(crate) async fn apply_as(self, name: &str, namespace: &TestNamespace) -> KnativeApp {
        let service = json!({
            "apiVersion": "serving.knative.dev/v1", "kind": "Service",
            "metadata": {"name": name}, "spec": {"template": self.template()},
        });
        let service: DynamicObject = serde_json::from_value(service).expect("an object");
        let api = namespace.api_of(&PlayedKind::KnativeService.resource());
        api.create(&PostParams::default(), &service).await.expect("the Service is made");
        KnativeApp { namespace: namespace.clone(), name: name.to_owned() }
    }
}

impl KnativeApp {
    /// The name of the revision of a generation, of a Service that is alone.
    pub(crate) fn revision(generation: u32) -> String {
        format!("{NAME}-{generation:05}")
    }

    /// The name of a revision of this Service by its generation.
    pub(crate) fn own_revision(&self, generation: u32) -> String {
        format!("{}-{generation:05}", self.name)
    }

    /// The host by which clients of users ask for the Service.
    pub(crate) fn users_host(&self) -> String {
        format!("{}.{}.example.com", self.name, self.namespace.name)
    }

    /// Applies another template, of which a new revision is made.
    pub(crate) async fn change(&self, plan: &KnativeAppPlan) {
        self.patch(json!({"spec": {"template": plan.template()}})).await;
    }

    /// Changes the traffic alone, as `kn service update --traffic` does.
    pub(crate) async fn change_traffic(&self, targets: &Value) {
        self.patch(json!({"spec": {"traffic": targets}})).await;
    }

    async fn patch(&self, patch: Value) {
        let api = self.namespace.api_of(&PlayedKind::KnativeService.resource());
        let patched = api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("the Service is changed");
    }

    /// Changes an annotation of a revision that runs.
    pub(crate) async fn annotate(&self, revision: &str, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let api = self.namespace.api_of(&PlayedKind::Revision.resource());
        api.patch(revision, &PatchParams::default(), &patch).await.expect("the revision is annotated");
    }

    /// An object as JSON; null while it is not there.
    pub(crate) async fn object(&self, kind: PlayedKind, name: &str) -> Value {
        let found = self.namespace.api_of(&kind.resource()).get_opt(name).await.expect("it can be read");
        found.map_or(Value::Null, |object| serde_json::to_value(object).expect("an object is JSON"))
    }

    /// Status and reason of a condition.
    pub(crate) async fn condition(&self, kind: PlayedKind, name: &str, condition: &str) -> [String; 2] {
        status_and_reason(&self.object(kind, name).await, condition)
    }

    /// Waits for status and reason of a condition.
    pub(crate) async fn reaches(&self, kind: PlayedKind, name: &str, condition: &str, wanted: [&str; 2]) {
        eventually(&format!("{condition} of {kind:?} {name} is {wanted:?}"), PATIENCE, || async {
            let found = self.condition(kind, name, condition).await;
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// Waits until the Service is ready with the revision of a generation.
    pub(crate) async fn is_ready(&self, generation: u32) {
        let revision = self.own_revision(generation);
        eventually(&format!("{revision} serves"), PATIENCE, || async {
            let service = self.object(PlayedKind::KnativeService, &self.name).await;
            let is_latest = service["status"]["latestReadyRevisionName"] == revision;
            let ready = status_and_reason(&service, "Ready");
            if is_latest && ready[0] == "True" { Ok(()) } else { Err(service["status"].to_string()) }
        })
        .await;
    }

    /// Status and reason of the condition Ready of the Service.
    pub(crate) async fn service_condition(&self) -> [String; 2] {
        self.condition(PlayedKind::KnativeService, &self.name, "Ready").await
    }

    /// The count that is wanted of a revision.
    pub(crate) async fn count(&self, revision: &str) -> i32 {
        let deployment = self.namespace.api::<Deployment>().get(&format!("{revision}-deployment")).await;
        deployment.expect("the controller made it").spec.and_then(|spec| spec.replicas).unwrap_or(1)
    }

    /// Waits for a count of a revision.
    pub(crate) async fn has_count(&self, revision: &str, wanted: impl Fn(i32) -> bool) {
        eventually(&format!("the count of {revision}"), PATIENCE, || async {
            let count = self.count(revision).await;
            if wanted(count) { Ok(()) } else { Err(format!("{count} pods are wanted")) }
        })
        .await;
    }

    /// The ready addresses behind the public Service of a revision, or behind its private one.
    pub(crate) async fn addresses(&self, service: &str) -> Vec<IpAddr> {
        let found = self.namespace.api::<Endpoints>().get_opt(service).await.expect("it can be read");
        let subsets = found.and_then(|found| found.subsets).unwrap_or_default();
        let addresses = subsets.into_iter().flat_map(|subset| subset.addresses.unwrap_or_default());
        let mut addresses: Vec<IpAddr> = addresses.filter_map(|address| address.ip.parse().ok()).collect();
        addresses.sort();
        addresses
    }

    /// Waits until clients of a revision reach the activators, and nothing else.
    pub(crate) async fn is_served_by_activators(&self, revision: &str) {
        eventually("the public Service leads to activators", PATIENCE, || async {
            let (found, activators) = (self.addresses(revision).await, self.activators().await);
            if !found.is_empty() && found == activators {
                Ok(())
            } else {
                Err(format!("{found:?} {activators:?}"))
            }
        })
        .await;
    }

    /// Waits until clients of a revision reach its pods, and nothing else.
    pub(crate) async fn is_served_by_pods(&self, revision: &str) {
        eventually("the public Service leads to pods", PATIENCE, || async {
            let found = self.addresses(revision).await;
            let pods = self.addresses(&format!("{revision}-private")).await;
            if !found.is_empty() && found == pods { Ok(()) } else { Err(format!("{found:?} {pods:?}")) }
        })
        .await;
    }

    /// The addresses of the activators.
    async fn activators(&self) -> Vec<IpAddr> {
        let pods: Api<Pod> = Api::namespaced(self.namespace.client.clone(), KNATIVE_SYSTEM);
        let selected = ListParams::default().labels("app=activator");
        let pods = pods.list(&selected).await.expect("pods can be listed").items;
        let mut addresses: Vec<IpAddr> =
            pods.into_iter().filter_map(|pod| pod.status?.pod_ip?.parse().ok()).collect();
        addresses.sort();
        addresses
    }

    /// The address and port of the public Service of a revision.
    pub(crate) async fn address(&self, revision: &str) -> SocketAddr {
        let service = self.namespace.api::<Service>().get(revision).await.expect("the controller made it");
        let address = service.spec.and_then(|spec| spec.cluster_ip).expect("it has an address");
        SocketAddr::new(address.parse::<IpAddr>().expect("it is one"), 80)
    }

    /// Requests to the public Service of a revision, by its own host.
    pub(crate) async fn load(&self, revision: &str) -> Load {
        let host = format!("{revision}.{}.svc.cluster.local", self.namespace.name);
        Load::new(self.address(revision).await, &host)
    }
}

/// A condition of an object as it is written, if it is.
pub(crate) fn written_condition<'o>(object: &'o Value, condition: &str) -> Option<&'o Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|found| found["type"] == condition)
}

/// Status and reason of a condition of an object; Unknown and empty where it is not written.
pub(crate) fn status_and_reason(object: &Value, condition: &str) -> [String; 2] {
    let found = written_condition(object, condition);
    let text =
        |key: &str, unset: &str| found.and_then(|found| found[key].as_str()).unwrap_or(unset).to_owned();
    [text("status", "Unknown"), text("reason", "")]
}

/// The steps of the controller that a test may have asked to wait.
const CONTROLLER_STEPS: [&str; 5] = ["revisions", "statuses", "services", "endpoints", "serverless-status"];

/// Runs a test in a namespace of its own, at step 1 of the roll-over and with the settings that the
/// installation began with: a test that failed half way may have left others.
pub(crate) fn in_knative<Test>(prefix: &str, test: impl FnOnce(TestNamespace) -> Test + Send + 'static)
where
    Test: Future<Output = ()> + Send + 'static,
{
    in_namespace(prefix, |namespace| async move {
        begin_at_step_one(&namespace).await;
        for step in CONTROLLER_STEPS {
            controller_step(&namespace, step, None).await;
        }
        write_setting(&namespace, "config-network", "system-internal-tls", Some("Disabled")).await;
        test(namespace).await;
    });
}

/// Asks the stand-in of the controller to wait before a step, to leave it out (`still`), or for neither.
pub(crate) async fn controller_step(namespace: &TestNamespace, step: &str, pace: Option<&str>) {
    write_setting(namespace, "stand-in-controller", step, pace).await;
}

/// Writes a key of a ConfigMap in Knative's namespace, or takes it away.
pub(crate) async fn write_setting(namespace: &TestNamespace, map: &str, key: &str, value: Option<&str>) {
    let maps: Api<ConfigMap> = Api::namespaced(namespace.client.clone(), KNATIVE_SYSTEM);
    let patch = Patch::Merge(json!({"data": {key: value}}));
    maps.patch(map, &PatchParams::default(), &patch).await.expect("a person may write it");
}
