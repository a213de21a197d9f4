//! A namespace of a real cluster for a test: made when it begins, taken away when it ends, however it ends.
//!
//! The cluster is that of `tests/cluster/up`, with ebb in it (`tests/cluster/install`), unless `$KUBECONFIG` names another. Of ours the test's thread enters the
//! network, so that it reaches Services' addresses as a node does; on another it must run where they are reached, and the images must be there.

mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use nix::sched::{CloneFlags, setns};
use serde_json::json;

pub use workload::{Workload, WorkloadPlan};

/// Where ebb's own programs are.
pub const SYSTEM: &str = "ebb-system";

/// A test's own namespace.
#[derive(Clone)]
pub struct TestNamespace {
    /// Speaks to the cluster as its administrator.
    pub client: Client,
    /// Its name.
    pub name: String,
}

/// Runs a test in a namespace of its own, whose name begins with `prefix`.
pub fn in_namespace<Test>(prefix: &str, test: impl FnOnce(TestNamespace) -> Test)
where
    Test: Future<Output = ()> + Send + 'static,
{
    let kubeconfig = enter();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let namespace = TestNamespace::make(&kubeconfig, prefix).await;
        // A task, so that its panic ends here and the namespace goes all the same.
        let ended = tokio::spawn(test(namespace.clone())).await;
        if ended.is_err() {
            namespace.show().await;
        }
        namespace.delete().await;
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    });
}

/// Enters the network of the cluster of tests; returns where its kubeconfig is. Threads that this one starts are in there too.
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

impl TestNamespace {
    async fn make(kubeconfig: &Path, prefix: &str) -> Self {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig can be read");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("the kubeconfig names a cluster")).expect("a client");
        let namespace = json!({"metadata": {"generateName": format!("{prefix}-")}});
        let namespace = serde_json::from_value(namespace).expect("a Namespace");
        let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await;
        let name = made.expect("the cluster makes a namespace").metadata.name.expect("it has a name");
        Self { client, name }
    }

    /// Objects of this namespace.
    pub fn api<Object>(&self) -> Api<Object>
    where
        Object: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// What a person would look at after a failure.
    async fn show(&self) {
        let pods =
            self.api::<Pod>().list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for pod in pods {
            let (name, status) = (pod.metadata.name.unwrap_or_default(), pod.status.unwrap_or_default());
            eprintln!("pod {name}: {}", serde_json::to_string(&status).unwrap_or_default());
        }
        let system: Api<Pod> = Api::namespaced(self.client.clone(), SYSTEM);
        let last = LogParams { tail_lines: Some(50), ..LogParams::default() };
        for pod in system.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default() {
            let name = pod.metadata.name.unwrap_or_default();
            eprintln!("--- {name}\n{}", system.logs(&name, &last).await.unwrap_or_default());
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
