//! A workload with its Service, as a user would write them, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use injector::{ClusterConfig, InjectorSettings, Outcome, inject};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use vocabulary::{INJECT_LABEL, QUEUE_PROXY};

use super::{PATIENCE, TestNamespace, fleet};
use crate::client::Load;
use crate::wait::eventually;

/// Says whose a slice is.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// From a ready pod until its Service takes connections: a decision each two seconds, and kube-proxy, which
/// gathers changes for one; the rest is for a busy machine. Half of what `routing-dwell` is, so that no test
/// waits for that unnoticed.
const SERVED_WITHIN: Duration = Duration::from_secs(15);
/// As many as the manifests ask for.
const ACTIVATORS: usize = 2;

/// What is to be made.
#[derive(Clone, Debug)]
pub struct WorkloadPlan {
    name: String,
    annotations: BTreeMap<String, String>,
    app_args: Vec<String>,
    ports: Vec<(String, u16, Value)>,
    app_fields: BTreeMap<String, Value>,
    /// Additional fields of the pod's spec.
    pod_fields: BTreeMap<String, Value>,
    /// Additional containers beside the app's.
    containers: Vec<Value>,
    template_annotations: BTreeMap<String, String>,
    injection: InjectionWay,
    service: ServicePlan,
    /// Of its queue-proxies, instead of what injection says.
    variables: BTreeMap<String, String>,
    /// The same, of their container.
    sidecar_fields: BTreeMap<String, Value>,
    service_fields: BTreeMap<String, Value>,
    /// What its Service says that ports speak, by their names.
    protocols: BTreeMap<String, String>,
    kind: PlanKind,
}

/// The kind of workload that is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// A Deployment, the usual kind of workload.
    Deployment,
    /// With a headless Service by which its pods know each other.
    StatefulSet,
    /// A ReplicaSet that no Deployment controls.
    ReplicaSet,
    /// Older than all of them.
    ReplicationController,
    /// A resource that another project has brought, with a scale (`Fleet`, of the group `tests.ebb.dev`).
    Custom,
}

impl PlanKind {
    /// As it stands in `ebb.dev/revision`.
    fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::ReplicaSet => "replicaset",
            Self::ReplicationController => "replicationcontroller",
            Self::Custom => "fleets.tests.ebb.dev",
        }
    }

    fn resource(self) -> ApiResource {
        match self {
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::StatefulSet => ApiResource::erase::<StatefulSet>(&()),
            Self::ReplicaSet => ApiResource::erase::<ReplicaSet>(&()),
            Self::ReplicationController => ApiResource::erase::<ReplicationController>(&()),
            Self::Custom => fleet::resource(),
        }
    }
}

/// Who gives its pods their queue-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InjectionWay {
    /// The command `ebb inject` gives the sidecar.
    Command,
    /// Nothing gives the pods a sidecar yet.
    None,
    Webhook,
}

/// Who serves it at first.
#[derive(Clone, Copy, Debug)]
enum ServicePlan {
    /// ebb: the Service names the workload and has no selector.
    Adopted,
    /// Kubernetes: it has a selector, as usual.
    Selecting,
}

impl WorkloadPlan {
    /// The test app, with windows that a test can wait for.
    pub fn new(name: &str) -> Self {
        let window = ("autoscaling.knative.dev/window".to_owned(), "6s".to_owned());
        let ports = vec![("http".to_owned(), 80, json!(8080))];
        Self {
            name: name.to_owned(),
            annotations: [window].into(),
            app_args: Vec::new(),
            app_fields: BTreeMap::new(),
            pod_fields: BTreeMap::new(),
            containers: Vec::new(),
            // So that a pod that hangs fails the test, and not its time limit.
            template_annotations: [("ebb.dev/drain-limit".to_owned(), "10s".to_owned())].into(),
            ports,
            injection: InjectionWay::Command,
            service: ServicePlan::Adopted,
            variables: BTreeMap::new(),
            sidecar_fields: BTreeMap::new(),
            // So that a pod that hangs fails the test, and not its time limit.
            service_fields: BTreeMap::new(),
            protocols: BTreeMap::new(),
            kind: PlanKind::Deployment,
        }
    }

    /// Another kind than a Deployment.
    #[must_use]
    pub fn of_kind(mut self, kind: PlanKind) -> Self {
        self.kind = kind;
        self
    }

    /// With a usual Service, which Kubernetes serves until it is adopted.
    #[must_use]
    pub fn served_by_kubernetes(mut self) -> Self {
        self.service = ServicePlan::Selecting;
        self
    }

    /// Its pods have no queue-proxy and do not ask for one.
    #[must_use]
    pub fn not_injected(mut self) -> Self {
        self.injection = InjectionWay::None;
        self
    }

    /// The template has the label alone; the webhook does the rest.
    #[must_use]
    pub fn through_webhook(mut self) -> Self {
        self.injection = InjectionWay::Webhook;
        self
    }

    /// A variable of its queue-proxies' environment, as a stranger might forge it.
    #[must_use]
    pub fn sidecar_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A field of its queue-proxies' container.
    #[must_use]
    pub fn sidecar_field(mut self, name: &str, value: Value) -> Self {
        self.sidecar_fields.insert(name.to_owned(), value);
        self
    }

    /// A field of its Service's spec.
    #[must_use]
    pub fn service_field(mut self, name: &str, value: Value) -> Self {
        self.service_fields.insert(name.to_owned(), value);
        self
    }

    /// Its Service says that a port of this name speaks that (`appProtocol`).
    #[must_use]
    pub fn speaking(mut self, port: &str, protocol: &str) -> Self {
        self.protocols.insert(port.to_owned(), protocol.to_owned());
        self
    }

    /// An annotation of the pod template.
    #[must_use]
    pub fn template_annotated(mut self, key: &str, value: &str) -> Self {
        self.template_annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Windows as long as they are by default.
    #[must_use]
    pub fn with_default_windows(mut self) -> Self {
        self.annotations.remove("autoscaling.knative.dev/window");
        self
    }

    /// One more port of the Service, and where it leads. The app listens on 8080 (`http`) and 9090 (`more`),
    /// which its pods declare, and on 7070, which they do not.
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

    /// Starts the app with these arguments.
    #[must_use]
    pub fn app_args(mut self, args: &[&str]) -> Self {
        self.app_args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// A field of the app's container.
    #[must_use]
    pub fn app_field(mut self, name: &str, value: Value) -> Self {
        self.app_fields.insert(name.to_owned(), value);
        self
    }

    /// A field of its pods' spec.
    #[must_use]
    pub fn pod_field(mut self, name: &str, value: Value) -> Self {
        self.pod_fields.insert(name.to_owned(), value);
        self
    }

    /// One more container of its pods, after the app's.
    #[must_use]
    pub fn container(mut self, container: Value) -> Self {
        self.containers.push(container);
        self
    }

    /// Makes the workload and its Service in this namespace.
    pub async fn create(self, namespace: &TestNamespace) -> Workload {
        let address = self.create_service(namespace, &format!("{}/{}", self.kind.word(), self.name)).await;
        if self.kind == PlanKind::StatefulSet {
            let spec =
                json!({"clusterIP": "None", "selector": {"app": self.name}, "ports": [{"port": 8080}]});
            let peers = from(json!({"metadata": {"name": format!("{}-peers", self.name)}, "spec": spec}));
            let made = namespace.api::<Service>().create(&PostParams::default(), &peers).await;
            made.expect("its governing Service is made");
        }
        let object = from(self.object(&namespace.link_ca().await));
        let made = namespace.api_of(&self.kind.resource()).create(&PostParams::default(), &object).await;
        made.expect("a workload is made");
        Workload { namespace: namespace.clone(), name: self.name, kind: self.kind, address }
    }

    /// Makes only a Service, of another workload's Deployment.
    pub async fn create_service_of(self, namespace: &TestNamespace, workload: &Workload) -> Workload {
        let address =
            self.create_service(namespace, &format!("{}/{}", workload.kind.word(), workload.name)).await;
        Workload { namespace: namespace.clone(), name: self.name, kind: workload.kind, address }
    }

    /// Makes only a Service, whose annotation says this.
    pub async fn create_service_naming(self, namespace: &TestNamespace, target: &str) -> Workload {
        let address = self.create_service(namespace, target).await;
        Workload { namespace: namespace.clone(), name: self.name, kind: self.kind, address }
    }

    async fn create_service(&self, namespace: &TestNamespace, target: &str) -> SocketAddr {
        let service = from(self.service(target));
        let made = namespace.api::<Service>().create(&PostParams::default(), &service).await;
        let ip = made.expect("a Service is made").spec.and_then(|spec| spec.cluster_ip);
        let ip = ip.and_then(|ip| ip.parse().ok()).expect("it has an address");
        SocketAddr::new(ip, 80)
    }

    /// Of the workload that its target names.
    fn service(&self, target: &str) -> Value {
        let mut ports = service_ports(&self.ports);
        for port in ports.as_array_mut().into_iter().flatten() {
            let protocol = port["name"].as_str().and_then(|name| self.protocols.get(name));
            if let Some(protocol) = protocol {
                port["appProtocol"] = json!(protocol);
            }
        }
        let mut service = match self.service {
            ServicePlan::Adopted => json!({
                "metadata": {"name": self.name, "annotations": {"ebb.dev/revision": target}},
                "spec": {"ports": ports},
            }),
            ServicePlan::Selecting => json!({
                "metadata": {"name": self.name},
                "spec": {"ports": ports, "selector": {"app": self.name}},
            }),
        };
        for (name, value) in &self.service_fields {
            service["spec"][name] = value.clone();
        }
        service
    }

    fn object(&self, link_ca: &str) -> Value {
        let resource = self.kind.resource();
        let mut spec = json!({"template": self.template(link_ca)});
        spec["selector"] = match self.kind {
            PlanKind::ReplicationController => json!({"app": self.name}),
            PlanKind::Custom => json!(format!("app={}", self.name)),
            PlanKind::Deployment | PlanKind::StatefulSet | PlanKind::ReplicaSet => {
                json!({"matchLabels": {"app": self.name}})
            }
        };
        if self.kind == PlanKind::Custom {
            // No default is written into it.
            spec["replicas"] = json!(1);
        }
        if self.kind == PlanKind::StatefulSet {
            spec["serviceName"] = json!(format!("{}-peers", self.name));
        }
        json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": self.name, "annotations": self.annotations},
            "spec": spec,
        })
    }

    /// As `ebb inject` prints it.
    fn template(&self, link_ca: &str) -> Value {
        let args: Vec<&str> =
            ["--bind", "0.0.0.0"].into_iter().chain(self.app_args.iter().map(String::as_str)).collect();
        let mut app = json!({
            "name": "app",
            "image": "test-app:test",
            // Beside what its queue-proxy stands before, the pod's own ports are asked.
            "args": args,
            "env": [{"name": "PORT", "value": "8080,9090,7070"}],
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "more", "containerPort": 9090}],
        });
        for (name, value) in &self.app_fields {
            app[name] = value.clone();
        }
        let containers: Vec<Value> = std::iter::once(app).chain(self.containers.iter().cloned()).collect();
        let mut template = json!({
            "metadata": {
                "labels": {"app": self.name, INJECT_LABEL: "true"},
                "annotations": self.template_annotations,
            },
            "spec": {"containers": containers},
        });
        for (name, value) in &self.pod_fields {
            template["spec"][name] = value.clone();
        }
        match self.injection {
            InjectionWay::Command => {}
            InjectionWay::Webhook => return template,
            InjectionWay::None => {
                template["metadata"]["labels"] = json!({"app": self.name});
                return template;
            }
        }
        let settings = InjectorSettings {
            image: "ebb-queue-proxy:test".to_owned(),
            link_ca: link_ca.to_owned(),
            cluster: ClusterConfig::default(),
            observability: None,
        };
        match inject(&template, &settings) {
            Outcome::Injected(injection) => self.forged(injection.pod),
            other @ (Outcome::NotAsked | Outcome::Refused(_)) => panic!("{other:?}"),
        }
    }

    fn forged(&self, mut template: Value) -> Value {
        let containers = template["spec"]["containers"].as_array_mut().into_iter().flatten();
        for sidecar in containers.filter(|container| container["name"] == QUEUE_PROXY) {
            for (name, value) in &self.sidecar_fields {
                sidecar[name] = value.clone();
            }
            for variable in sidecar["env"].as_array_mut().into_iter().flatten() {
                let forged = variable["name"].as_str().and_then(|name| self.variables.get(name));
                if let Some(value) = forged {
                    variable["value"] = json!(value);
                }
            }
        }
        template
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

/// A workload and its Service that were made.
#[derive(Clone)]
pub struct Workload {
    namespace: TestNamespace,
    name: String,
    kind: PlanKind,
    /// The address and the first port of its Service.
    pub address: SocketAddr,
}

impl Workload {
    /// Its own, and its Service's.
    pub fn name(&self) -> &str {
        &self.name
    }

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
        let workload = self.api().delete(&self.name, &parameters).await;
        workload.expect("the workload is deleted");
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

    fn api(&self) -> Api<DynamicObject> {
        self.namespace.api_of(&self.kind.resource())
    }

    /// Puts an annotation on the workload itself, or takes it away.
    pub async fn annotate(&self, key: &str, value: Option<&str>) {
        let change = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        let patched = self.api().patch(&self.name, &PatchParams::default(), &change).await;
        patched.expect("a person may annotate it");
    }

    /// The count that is written.
    pub async fn count(&self) -> i32 {
        let scale = self.api().get_scale(&self.name).await.expect("it is there");
        scale.spec.and_then(|spec| spec.replicas).unwrap_or_default()
    }

    /// How often what is wanted of it was changed.
    pub async fn generation(&self) -> i64 {
        let object = self.api().get(&self.name).await.expect("it is there");
        object.metadata.generation.unwrap_or_default()
    }

    /// Writes a count, as `kubectl scale` does.
    pub async fn scale_by_hand(&self, count: u32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": count}}));
        let written = self.api().patch_scale(&self.name, &PatchParams::default(), &patch).await;
        written.expect("a person may write it");
    }

    /// Waits until this many pods are there, all of them ready, and as many are wanted; and until its Service
    /// takes connections if there is one, for kube-proxy may hear of a new Service later than a pod is ready.
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
        if count > 0 {
            self.accepts_at(self.address, SERVED_WITHIN).await;
        }
    }

    /// Waits until all of its pods are gone, as after it was deleted.
    pub async fn has_no_pods(&self) {
        eventually(&format!("{} has no pods", self.name), PATIENCE, || async {
            let pods = self.pod_names().await;
            if pods.is_empty() { Ok(()) } else { Err(format!("{pods:?}")) }
        })
        .await;
    }

    /// Waits until a program accepts connections to its Service.
    pub async fn takes_connections(&self) {
        self.accepts_at(self.address, PATIENCE).await;
    }

    /// Waits until a program accepts connections to a port of its Service: the node hears of that a little
    /// later than it stands in a slice.
    pub async fn takes_connections_at(&self, port: u16) {
        self.accepts_at(self.at(port), PATIENCE).await;
    }

    async fn accepts_at(&self, address: SocketAddr, limit: Duration) {
        eventually(&format!("{} takes connections at {address}", self.name), limit, || async {
            match tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(address)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no answer within 5 s".to_owned()),
            }
        })
        .await;
    }

    async fn pods(&self) -> Vec<Pod> {
        let selected = ListParams::default().labels(&format!("app={}", self.name));
        self.namespace.api::<Pod>().list(&selected).await.expect("pods can be listed").items
    }

    /// Deletes a pod as `kubectl delete pod` does; returns its name.
    pub async fn delete_a_pod(&self) -> String {
        let name = self.pod_names().await.into_iter().next().expect("it has a pod");
        let deleted = self.namespace.api::<Pod>().delete(&name, &DeleteParams::default()).await;
        deleted.expect("the pod is deleted");
        name
    }

    /// Waits until it has no pod of this name.
    pub async fn has_lost(&self, pod: &str) {
        eventually(&format!("{pod} is gone"), PATIENCE, || async {
            let present = self.pod_names().await;
            if present.iter().any(|name| name == pod) { Err(format!("{present:?}")) } else { Ok(()) }
        })
        .await;
    }

    /// Its pods are replaced, as `kubectl rollout restart` does it.
    pub async fn restart(&self) {
        let template = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}});
        let change = Patch::Merge(json!({"spec": {"template": template}}));
        let patched = self.api().patch(&self.name, &PatchParams::default(), &change).await;
        patched.expect("a person may restart it");
    }

    /// Another template: the app is started with these arguments.
    pub async fn set_app_args(&self, args: &[&str]) {
        self.patch_template(json!({"spec": {"containers": [{"name": "app", "args": args}]}})).await;
    }

    /// From now on its pods ask for a queue-proxy.
    pub async fn label_template(&self) {
        self.patch_template(json!({"metadata": {"labels": {INJECT_LABEL: "true"}}})).await;
    }

    async fn patch_template(&self, template: Value) {
        let change = Patch::Strategic(json!({"spec": {"template": template}}));
        let patched = self.api().patch(&self.name, &PatchParams::default(), &change).await;
        patched.expect("a person may change its template");
    }

    /// How often kubelet has started the app anew, in all its pods.
    pub async fn app_restarts(&self) -> i32 {
        let statuses = self.pods().await.into_iter().filter_map(|pod| pod.status?.container_statuses);
        let apps = statuses.flatten().filter(|status| status.name == "app");
        apps.map(|status| status.restart_count).sum()
    }

    /// Waits until its Service leads straight to its pods, and to all of them.
    pub async fn is_served_directly(&self) {
        eventually(&format!("{} is served by its pods", self.name), PATIENCE, || async {
            let (mut pods, mut serving) = (self.pod_names().await, self.served_by().await);
            pods.sort();
            serving.sort();
            if !pods.is_empty() && pods == serving { Ok(()) } else { Err(format!("{pods:?}, {serving:?}")) }
        })
        .await;
    }

    /// Waits until its Service leads to activators: to all that there are, for one may acknowledge before the
    /// other.
    pub async fn is_served_through_activators(&self) {
        eventually(&format!("{} is served by activators", self.name), PATIENCE, || async {
            let serving = self.served_by().await;
            let is_so =
                serving.len() == ACTIVATORS && serving.iter().all(|pod| pod.starts_with("activator-"));
            if is_so { Ok(()) } else { Err(format!("{serving:?}")) }
        })
        .await;
    }

    /// The addresses of its pods, as they are now.
    pub async fn pod_addresses(&self) -> Vec<IpAddr> {
        let pods = self.pods().await.into_iter();
        pods.filter_map(|pod| pod.status?.pod_ip?.parse().ok()).collect()
    }

    /// The names of its pods, those on their way out too.
    pub async fn pod_names(&self) -> Vec<String> {
        self.pods().await.into_iter().filter_map(|pod| pod.metadata.name).collect()
    }

    /// What tells its pods from those of the same names before them.
    pub async fn pod_uids(&self) -> Vec<String> {
        self.pods().await.into_iter().filter_map(|pod| pod.metadata.uid).collect()
    }

    /// The annotations of its pods.
    pub async fn pod_annotations(&self) -> Vec<BTreeMap<String, String>> {
        let pods = self.pods().await.into_iter();
        pods.map(|pod| pod.metadata.annotations.unwrap_or_default()).collect()
    }

    /// How many containers of each of its pods are ready.
    pub async fn ready_containers(&self) -> Vec<usize> {
        let statuses = self.pods().await.into_iter().filter_map(|pod| pod.status?.container_statuses);
        statuses.map(|containers| containers.iter().filter(|container| container.ready).count()).collect()
    }

    /// Changes its Service, as `kubectl patch` does.
    pub async fn patch_service(&self, change: Value) {
        let parameters = PatchParams::default();
        let patched =
            self.namespace.api::<Service>().patch(&self.name, &parameters, &Patch::Merge(change)).await;
        patched.expect("a person may change it");
    }

    /// The Service names the workload, or none any more.
    pub async fn name_revision(&self, revision: Option<&str>) {
        self.patch_service(json!({"metadata": {"annotations": {"ebb.dev/revision": revision}}})).await;
    }

    /// Kubernetes is to serve its pods, or not.
    pub async fn select(&self, label: Option<&str>) {
        let selector = label.map_or(Value::Null, |label| json!({"app": label}));
        self.patch_service(json!({"spec": {"selector": selector}})).await;
    }

    /// Waits for an Event of this reason about the Service or the Deployment.
    pub async fn has_event(&self, reason: &str) {
        eventually(&format!("an Event {reason}"), PATIENCE, || async {
            let events = self.events().await;
            let found = events.iter().any(|event| event.reason.as_deref() == Some(reason));
            if found { Ok(()) } else { Err(format!("{:?}", reasons(&events))) }
        })
        .await;
    }

    /// All Events about the Service and the Deployment.
    pub async fn events(&self) -> Vec<Event> {
        let events = self.namespace.api::<Event>().list(&ListParams::default()).await;
        let events = events.expect("Events can be listed").items;
        let is_ours = |event: &Event| {
            let regarding = event.regarding.as_ref();
            regarding.is_some_and(|about| about.name.as_deref() == Some(self.name.as_str()))
        };
        events.into_iter().filter(is_ours).collect()
    }

    /// Who writes its Service's slices: `managed-by` of each.
    pub async fn slice_writers(&self) -> Vec<String> {
        let slices = self.slices().await;
        let writer = |slice: EndpointSlice| {
            slice.metadata.labels.and_then(|labels| labels.get(MANAGED_BY).cloned()).unwrap_or_default()
        };
        slices.into_iter().map(writer).collect()
    }

    /// Waits until no other writer than this one has slices of its Service.
    pub async fn has_only_slices_of(&self, writer: &str) {
        eventually(&format!("only slices of {writer}"), PATIENCE, || async {
            let writers = self.slice_writers().await;
            let is_so = !writers.is_empty() && writers.iter().all(|other| other == writer);
            if is_so { Ok(()) } else { Err(format!("{writers:?}")) }
        })
        .await;
    }

    /// The names of the pods that a port of its Service leads to, in order.
    pub async fn served_at(&self, port: &str) -> Vec<String> {
        let leads_there = |slice: &EndpointSlice| {
            slice.ports.iter().flatten().any(|found| found.name.as_deref() == Some(port))
        };
        let endpoints = self.slices().await.into_iter().filter(leads_there);
        let endpoints = endpoints.flat_map(|slice| slice.endpoints);
        let names: BTreeSet<String> = endpoints.filter_map(|endpoint| endpoint.target_ref?.name).collect();
        names.into_iter().collect()
    }

    /// The port of each node at which its Service is reached, too.
    pub async fn node_port(&self) -> u16 {
        let service = self.namespace.api::<Service>().get(&self.name).await.expect("it is there");
        let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
        let port = ports.first().and_then(|port| port.node_port?.try_into().ok());
        port.expect("its type is NodePort")
    }

    /// The names of the pods that its Service leads to.
    pub async fn served_by(&self) -> Vec<String> {
        let endpoints = self.slices().await.into_iter().flat_map(|slice| slice.endpoints);
        endpoints.filter_map(|endpoint| endpoint.target_ref?.name).collect()
    }
}

fn reasons(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.reason.as_deref()).collect()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
