//! Plays activators: pods of ebb's namespace, and at their addresses somebody who takes the autoscaler's
//! link, acts upon every assignment at once, and holds a request for whom it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use link::{ActivatorOrder, ByteStream, Identity, LinkTlsAcceptor};
use serde_json::json;
use tests::bench::clock;
use tests::cluster::{SYSTEM, TestNamespace};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, LinkVersion, PresentCount, ReplicaName, RevisionName, Routing,
};

const LINK_PORT: u16 = 8024;
const WAITS: PresentCount = PresentCount { in_flight: 1, waiting: 1 };

/// For whom a request waits at every activator of this process, from now on.
pub(crate) type Waiting = Arc<Mutex<BTreeSet<RevisionName>>>;
/// What an activator acts upon, which outlives its links.
type Routings = Arc<Mutex<BTreeMap<RevisionName, Routing>>>;

/// One that is there. Dropping it ends it, and not its pod.
pub(crate) struct PlayedActivator {
    pub(crate) name: String,
    /// Its links end with it.
    _links: JoinSet<()>,
}

impl PlayedActivator {
    /// Its address is added to the bridge of the cluster of tests.
    pub(crate) async fn start(
        namespace: &TestNamespace,
        number: u8,
        waiting: &Waiting,
    ) -> anyhow::Result<Self> {
        let (name, address) = (format!("activator-{number}"), Ipv4Addr::new(172, 30, 0, 100 + number));
        add_address(address)?;
        let secret = namespace.system_secret("ebb-activator-tls").await;
        let part =
            |key: &str| secret.get(key).map(String::as_bytes).with_context(|| format!("{key} is missing"));
        let identity = Identity::from_pem(part("tls.crt")?, part("tls.key")?, part("ca.crt")?)?;
        let door = LinkTlsAcceptor::new(&identity)?;
        let listener = TcpListener::bind(SocketAddr::from((address, LINK_PORT))).await?;
        let (waiting, known) = (Arc::clone(waiting), ReplicaName::new(&name));
        let mut links = JoinSet::new();
        links.spawn(async move {
            // A task of this one's own, so that its links end when it does.
            let (routings, mut links) = (Routings::default(), JoinSet::new());
            while let Ok((stream, _)) = listener.accept().await {
                let (door, name) = (door.clone(), known.clone());
                let (routings, waiting) = (Arc::clone(&routings), Arc::clone(&waiting));
                links.spawn(async move {
                    if let Ok(stream) = door.accept(stream).await {
                        play(stream, name, &routings, &waiting).await;
                    }
                });
            }
        });
        make_pod(namespace, &name, address).await?;
        Ok(Self { name, _links: links })
    }

    /// As if its node had died, and the API server knew.
    pub(crate) async fn vanish(self, namespace: &TestNamespace) -> anyhow::Result<()> {
        pods(namespace).delete(&self.name, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }
}

/// Idempotent: a former run may have left it.
fn add_address(address: Ipv4Addr) -> anyhow::Result<()> {
    let replaced =
        Command::new("ip").args(["addr", "replace", &format!("{address}/32"), "dev", "bridge"]).status();
    ensure!(
        replaced.context("running ip (apt-get install iproute2)")?.success(),
        "{address} is not to be had"
    );
    Ok(())
}

fn pods(namespace: &TestNamespace) -> Api<Pod> {
    Api::namespaced(namespace.client.clone(), SYSTEM)
}

async fn make_pod(namespace: &TestNamespace, name: &str, address: Ipv4Addr) -> anyhow::Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(namespace.client.clone(), SYSTEM);
    if accounts.get_opt("default").await?.is_none() {
        let account = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
        accounts.create(&PostParams::default(), &account).await?;
    }
    let labels = json!({"app.kubernetes.io/name": "ebb", "app.kubernetes.io/component": "activator"});
    let security = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let container = json!({"name": "activator", "image": "ebb", "securityContext": security});
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": "nowhere", "automountServiceAccountToken": false, "containers": [container]},
    }))?;
    pods(namespace).create(&PostParams::default(), &pod).await?;
    let now = Timestamp::now().to_string();
    let status = json!({"status": {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
    }});
    pods(namespace).patch_status(name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(())
}

/// Every activator has run for as long as this process and an hour.
fn second() -> u64 {
    clock::now().as_secs() + 3600
}

async fn play(stream: ByteStream, name: ReplicaName, routings: &Routings, waiting: &Waiting) {
    let (mut reader, mut writer) = link::accept::<ActivatorOrder, ActivatorWord>(stream);
    let known = routings.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let held = || waiting.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let hello = ActivatorHello {
        speaks: LinkVersion::CURRENT,
        activator: name,
        boot: BootId(1),
        current_second: second(),
        history: Vec::new(),
        present: held().into_iter().map(|revision| (revision, WAITS)).collect(),
        routings: known.into_iter().collect(),
    };
    if writer.send(&ActivatorWord::Hello(hello)).await.is_err() {
        return;
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        // Cancelling a read in the midst of a frame is the reader's affair, which keeps what it has.
        let words = tokio::select! {
            order = reader.next() => match order {
                Ok(Some(ActivatorOrder::Assign(assignment))) => {
                    let revision = assignment.revision.clone();
                    routings
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(revision.clone(), assignment.routing);
                    vec![ActivatorWord::Acknowledged { revision, version: assignment.version }]
                }
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => return,
            },
            _ = ticks.tick() => {
                let held = held().into_iter().map(|revision| ActivatorWord::Present {
                    revision,
                    count: WAITS,
                    oldest_wait: Duration::from_secs(1),
                });
                held.chain([ActivatorWord::Loads { second: second(), loads: Vec::new() }]).collect()
            }
        };
        for word in words {
            if writer.send(&word).await.is_err() {
                return;
            }
        }
    }
}
