//! A namespace of a real cluster for a test: made when it begins, taken away when it ends, however it ends.
//!
//! The cluster is that of `tests/cluster/up`, with ebb in it (`tests/cluster/install`), unless `$KUBECONFIG`
//! names another. Of ours the test's thread enters the network, so that it reaches Services' addresses as a
//! node does; on another it must run where they are reached, and the images must be there.

mod autoscalers;
mod breakage;
mod buckets;
mod counts;
mod dashboard;
mod dials;
mod fleet;
mod plain;
mod process_end;
mod programs;
mod request_path;
mod workload;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};
use nix::sched::{CloneFlags, setns};
use serde_json::json;
use tokio::task::JoinError;

pub use autoscalers::{DecidingAutoscaler, FrozenContainer};
pub use breakage::{FrozenProcess, PodProcess, audit_log, audit_log_path, component, kubectl, process_of};
pub use counts::CountWatch;
pub use dashboard::PluginDashboard;
pub use dials::Dials;
pub use fleet::{bring, bring_fleets, look_after_fleet};
pub use plain::{KubeletProbe, PlainWorkload};
pub use process_end::{ProcessEnd, RequestSender};
pub use programs::{ebb, hey, plugin_of_kubectl, succeeds, text};
pub use request_path::RequestPath;
pub use workload::{PlanKind, Workload, WorkloadPlan};

use crate::client::{Load, Tally};
use crate::wait::eventually;

/// Where ebb's own programs are.
pub const SYSTEM: &str = "ebb-system";

/// Where the programs of an installed Knative are, and ebb's in their place.
pub const KNATIVE_SYSTEM: &str = "knative-serving";

/// A namespace of one test alone, deleted at its end.
#[derive(Clone)]
pub struct TestNamespace {
    /// Speaks to the cluster as its administrator.
    pub client: Client,
    /// The name of the namespace in the cluster.
    pub name: String,
    /// By which others speak to the cluster as its administrator, too.
    pub kubeconfig: PathBuf,
}

/// Held by tests that need a decider all the time, and alone by those that see to it that no autoscaler
/// does for a while.
static SOMEBODY_DECIDES: RwLock<()> = RwLock::new(());

/// Runs a test in a namespace of its own, whose name begins with `prefix`.
pub fn in_namespace<Test>(prefix: &str, test: impl FnOnce(TestNamespace) -> Test)
where
    Test: Future<Output = ()> + Send + 'static,
{
    let _shared = SOMEBODY_DECIDES.read().unwrap_or_else(PoisonError::into_inner);
    run(prefix, test);
}

/// The same, while no other test runs: for what it does to autoscalers, or for the time that it measures.
pub fn in_namespace_alone<Test>(prefix: &str, test: impl FnOnce(TestNamespace) -> Test)
where
    Test: Future<Output = ()> + Send + 'static,
{
    let _alone = SOMEBODY_DECIDES.write().unwrap_or_else(PoisonError::into_inner);
    run(prefix, test);
}

fn run<Test>(prefix: &str, test: impl FnOnce(TestNamespace) -> Test)
where
    Test: Future<Output = ()> + Send + 'static,
{
    let kubeconfig = enter();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let namespace = TestNamespace::make(&kubeconfig, prefix).await;
        let began = Timestamp::now();
        // A task, so that its panic ends here and the namespace goes all the same.
        let ended = tokio::spawn(test(namespace.clone())).await;
        let failure = ended.err().map(JoinError::into_panic);
        if let Some(failure) = &failure {
            namespace.show(began).await;
            // Once more, where a reader of the end sees it.
            let words = failure.downcast_ref::<String>().map(String::as_str);
            eprintln!(
                "{prefix} failed: {}",
                words.or(failure.downcast_ref::<&str>().copied()).unwrap_or_default()
            );
        }
        namespace.delete().await;
        if let Some(failure) = failure {
            std::panic::resume_unwind(failure);
        }
    });
}

/// Enters the network of the cluster of tests; returns where its kubeconfig is. Threads that this one starts
/// are in there too.
fn enter() -> PathBuf {
    if let Some(path) = std::env::var_os("KUBECONFIG") {
        return path.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace");
    let kubeconfig = root.join("target/cluster/run/pki/admin.conf");
    let network = std::fs::File::open("/run/netns/ebb").ok().filter(|_| kubeconfig.exists());
    let network = network.expect(
        "no cluster is up: tests/cluster/run does all, or set KUBECONFIG to a cluster with ebb in it",
    );
    setns(network, CloneFlags::CLONE_NEWNET).expect("entering another network needs root");
    kubeconfig
}

/// The network of the only node of the cluster of tests.
pub fn network_of_node() -> PathBuf {
    PathBuf::from("/run/netns/ebb-n1")
}

/// What a client in another network is answered: a node's, or a pod's.
pub async fn load_from(network: &Path, load: Load) -> Tally {
    let network = std::fs::File::open(network).expect("there is such a network");
    let (answer, answered) = tokio::sync::oneshot::channel();
    // A thread of its own, for it stays in that network. If it panics, no answer comes.
    std::thread::spawn(move || {
        setns(network, CloneFlags::CLONE_NEWNET).expect("root may enter it");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let _ = answer.send(runtime.block_on(load.with_own_connections().burst(5)));
    });
    answered.await.expect("the client does not panic")
}

impl TestNamespace {
    async fn make(path: &Path, prefix: &str) -> Self {
        let kubeconfig = Kubeconfig::read_from(path).expect("the kubeconfig can be read");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("the kubeconfig names a cluster")).expect("a client");
        Self::make_by(client, path, prefix).await
    }

    async fn make_by(client: Client, path: &Path, prefix: &str) -> Self {
        let namespace = json!({"metadata": {"generateName": format!("{prefix}-")}});
        let namespace = serde_json::from_value(namespace).expect("a Namespace");
        let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await;
        let name = made.expect("the cluster makes a namespace").metadata.name.expect("it has a name");
        Self { client, name, kubeconfig: path.to_owned() }
    }

    /// Runs something in one more namespace, which goes with it.
    pub async fn beside(&self, prefix: &str, test: impl AsyncFnOnce(Self)) {
        let other = Self::make_by(self.client.clone(), &self.kubeconfig, prefix).await;
        // A panic ends the test only once the namespace goes.
        let ended = AssertUnwindSafe(test(other.clone())).catch_unwind().await;
        other.delete().await;
        if let Err(failure) = ended {
            std::panic::resume_unwind(failure);
        }
    }

    /// The API for objects of this namespace.
    pub fn api<Object>(&self) -> Api<Object>
    where
        Object: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Puts a label on it.
    pub async fn label(&self, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let api = Api::<Namespace>::all(self.client.clone());
        api.patch(&self.name, &PatchParams::default(), &patch).await.expect("it is labelled");
    }

    /// The addresses of the activators' pods, as they are now.
    pub async fn activators(&self) -> Vec<IpAddr> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), SYSTEM);
        let selected = ListParams::default().labels("app.kubernetes.io/component=activator");
        let pods = pods.list(&selected).await.expect("pods can be listed").items;
        pods.into_iter().filter_map(|pod| pod.status?.pod_ip?.parse().ok()).collect()
    }

    /// Objects of this namespace, of a kind that is known only now.
    pub fn api_of(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.name, resource)
    }

    /// A Secret of ebb's own. Another test may have deleted it a moment ago, to see it come again.
    pub async fn system_secret(&self, name: &str) -> BTreeMap<String, String> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), SYSTEM);
        eventually(&format!("Secret {name} is there"), PATIENCE, || async {
            let found = secrets.get_opt(name).await.map_err(|error| error.to_string())?;
            found.map(|_| ()).ok_or_else(|| "none yet".to_owned())
        })
        .await;
        let data = secrets.get(name).await.expect("it was there a moment ago").data.unwrap_or_default();
        let text = |bytes: ByteString| String::from_utf8(bytes.0).expect("it is text");
        data.into_iter().map(|(key, value)| (key, text(value))).collect()
    }

    /// By which queue-proxies know the autoscaler.
    pub async fn link_ca(&self) -> String {
        self.system_secret("ebb-ca").await.remove("ca.crt").expect("the authority has certificates")
    }

    /// What a person would look at after a failure: how its pods are, and what ebb's have said since then.
    async fn show(&self, since: Timestamp) {
        let pods =
            self.api::<Pod>().list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for pod in pods {
            let (name, status) = (pod.metadata.name.unwrap_or_default(), pod.status.unwrap_or_default());
            eprintln!(
                "pod {name} {:?} {:?}",
                status.phase.unwrap_or_default(),
                status.pod_ip.unwrap_or_default()
            );
            for container in status.container_statuses.unwrap_or_default() {
                let state = serde_json::to_string(&[&container.state, &container.last_state]);
                let (name, restarts) = (container.name, container.restart_count);
                eprintln!(
                    "  {name} ready={} restarts={restarts} {}",
                    container.ready,
                    state.unwrap_or_default()
                );
            }
        }
        let last = LogParams { tail_lines: Some(30), since_time: Some(since), ..LogParams::default() };
        for system in [SYSTEM, KNATIVE_SYSTEM] {
            let system: Api<Pod> = Api::namespaced(self.client.clone(), system);
            for pod in system.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default() {
                let name = pod.metadata.name.unwrap_or_default();
                eprintln!("--- {name}\n{}", system.logs(&name, &last).await.unwrap_or_default());
            }
        }
    }

    async fn delete(&self) {
        let api = Api::<Namespace>::all(self.client.clone());
        let deleted = api.delete(&self.name, &DeleteParams::default()).await;
        if let Err(error) = deleted {
            eprintln!("the namespace {} could not be deleted: {error}", self.name);
        }
    }
}

/// How long a cluster may take for anything. It only bounds how long a failing test takes.
pub const PATIENCE: Duration = Duration::from_secs(90);
