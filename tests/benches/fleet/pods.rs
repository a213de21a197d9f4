//! Plays every queue-proxy and one activator.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use link::{ActivatorOrder, ByteStream, LinkTlsAcceptor, PodOrder};
use tests::bench::clock;
use tokio::net::{TcpListener, TcpStream};
use vocabulary::{
    ActivatorHello, ActivatorWord, BootId, LinkRole, LinkVersion, PodHello, PodState, PodWord, ReplicaName,
    RequestTimeouts, RevisionName, Routing, Sample,
};

use crate::fleet::shape::{FleetLinks, Shape};
use crate::fleet::trust::TrustFolder;

/// Seconds that a pod remembers when it is dialled.
const HISTORY: u64 = 60;

/// Every pod has run for as long as this process and an hour.
fn second() -> u64 {
    clock::now().as_secs() + 3600
}

/// Serves until it is killed.
pub(crate) fn play(shape: Shape, trust: &TrustFolder) -> anyhow::Result<()> {
    tests::bench::machine::raise_open_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(shape, trust))
}

/// What callers have to show, if links are TLS.
#[derive(Clone)]
struct Doors {
    pods: Option<LinkTlsAcceptor>,
    activator: Option<LinkTlsAcceptor>,
}

impl Doors {
    fn of(shape: Shape, trust: &TrustFolder) -> anyhow::Result<Self> {
        Ok(match shape.links {
            FleetLinks::Plain => Self { pods: None, activator: None },
            // One key for all pods: what it costs to make ten thousand is no affair of the autoscaler's.
            FleetLinks::Tls => Self {
                pods: Some(LinkTlsAcceptor::of_pod(&trust.roots()?)?),
                activator: Some(LinkTlsAcceptor::new(&trust.identity(LinkRole::Activator)?)?),
            },
        })
    }
}

/// The connection once the caller has proved who it is; `None`: it has not.
async fn let_in(door: Option<LinkTlsAcceptor>, stream: TcpStream) -> Option<ByteStream> {
    match door {
        None => Some(stream.into()),
        Some(door) => door.accept(stream).await.ok(),
    }
}

async fn serve(shape: Shape, trust: &TrustFolder) -> anyhow::Result<()> {
    let doors = Doors::of(shape, trust)?;
    let pods = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    let activator = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let control = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let ports = serde_json::json!({
        "pods": pods.local_addr()?.port(),
        "activator": activator.local_addr()?.port(),
        "control": control.local_addr()?.port(),
    });
    println!("{ports}");
    let links = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&links);
    let router =
        Router::new().route("/links", get(async move || counted.load(Ordering::Relaxed).to_string()));
    tokio::spawn(async move { axum::serve(control, router).await });
    tokio::spawn(accept_activator_links(activator, doors.activator));
    loop {
        let (stream, _) = pods.accept().await?;
        let IpAddr::V4(address) = stream.local_addr()?.ip() else { continue };
        let (links, door) = (Arc::clone(&links), doors.pods.clone());
        tokio::spawn(async move {
            let Some(stream) = let_in(door, stream).await else { return };
            let _counted = Counted::one_more(links);
            play_pod(shape, Shape::pod_at(address), stream).await;
        });
    }
}

/// A link that is up.
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn one_more(links: Arc<AtomicU64>) -> Self {
        links.fetch_add(1, Ordering::Relaxed);
        Self(links)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn play_pod(shape: Shape, pod: u32, stream: ByteStream) {
    let (mut reader, mut writer) = link::accept::<PodOrder, PodWord>(stream);
    let current = second();
    let sample = |second| Sample { second, load: shape.load(pod, second) };
    let hello = PodHello {
        speaks: LinkVersion::CURRENT,
        pod: Shape::pod(pod),
        boot: BootId(u64::from(pod)),
        state: PodState::Ready,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: current,
        history: (current - HISTORY..current).map(sample).collect(),
    };
    // The autoscaler speaks first; without that the connection is no link.
    if !matches!(reader.next().await, Ok(Some(_))) || writer.send(&PodWord::Hello(hello)).await.is_err() {
        return;
    }
    // Pods do not tick together.
    tokio::time::sleep(Duration::from_millis(u64::from(pod) * 7 % 1000)).await;
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let mut next = current;
    loop {
        tokio::select! {
            order = reader.next() => if !matches!(order, Ok(Some(_))) { return },
            _ = ticks.tick() => {
                let (sample, usage) = (sample(next), shape.usage());
                if writer.send(&PodWord::Load { sample, usage, late_bytes: None }).await.is_err() {
                    return;
                }
                next += 1;
            }
        }
    }
}

/// What an activator acts upon, which outlives its links.
type Routings = Arc<Mutex<BTreeMap<RevisionName, Routing>>>;

async fn accept_activator_links(listener: TcpListener, door: Option<LinkTlsAcceptor>) {
    let routings = Routings::default();
    while let Ok((stream, _)) = listener.accept().await {
        let (routings, door) = (Arc::clone(&routings), door.clone());
        tokio::spawn(async move {
            if let Some(stream) = let_in(door, stream).await {
                play_activator(stream, routings).await;
            }
        });
    }
}

async fn play_activator(stream: ByteStream, routings: Routings) {
    let (mut reader, mut writer) = link::accept::<ActivatorOrder, ActivatorWord>(stream);
    let known = routings.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let hello = ActivatorHello {
        speaks: LinkVersion::CURRENT,
        activator: ReplicaName::new("activator-1"),
        boot: BootId(1),
        current_second: second(),
        history: Vec::new(),
        present: Vec::new(),
        routings: known.into_iter().collect(),
    };
    if writer.send(&ActivatorWord::Hello(hello)).await.is_err() {
        return;
    }
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        let report = tokio::select! {
            order = reader.next() => match order {
                Ok(Some(ActivatorOrder::Assign(assignment))) => {
                    let revision = assignment.revision.clone();
                    routings
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(revision.clone(), assignment.routing);
                    ActivatorWord::Acknowledged { revision, version: assignment.version }
                }
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => return,
            },
            _ = ticks.tick() => ActivatorWord::Loads { second: second(), loads: Vec::new() },
        };
        if writer.send(&report).await.is_err() {
            return;
        }
    }
}
