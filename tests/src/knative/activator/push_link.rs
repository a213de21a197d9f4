//! How does the autoscaler hear of the load? Over a WebSocket, in frames: data plane §3.8 and §3.9.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use prost::Message as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::served_revisions::RevisionKey;
use crate::bench::clock;
use crate::knative::load_meter::{PeriodLoad, PushedLoad, RequestOrigin};
use crate::knative::stat_bytes::{PushedStat, PushedStatEntry, PushedStatFrame};

/// The Service of the autoscaler, with the port of its WebSockets.
const AUTOSCALER: (&str, u16) = ("autoscaler", 8080);
const REPORT_EVERY: Duration = Duration::from_secs(1);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(3);
const PING_EVERY: Duration = Duration::from_millis(3_333);
/// Without a pong for so long the connection is dead.
const SILENT_MAX: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The steps of the back-off; then it begins anew.
const PAUSES: i32 = 20;

/// The load of this activator, for each revision that has some.
pub(super) struct LoadReporter {
    pod: String,
    loads: Mutex<BTreeMap<RevisionKey, PushedLoad>>,
    frames: mpsc::Sender<Bytes>,
}

impl LoadReporter {
    pub(super) fn new(pod: &str, frames: mpsc::Sender<Bytes>) -> Arc<Self> {
        Arc::new(Self { pod: pod.to_owned(), loads: Mutex::default(), frames })
    }

    /// A request has arrived, and is in flight until what is returned is dropped. The first one of a revision
    /// is told at once.
    pub(super) fn arrived(self: &Arc<Self>, key: &RevisionKey) -> RequestInFlight {
        let now = clock::now();
        let is_first = {
            let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = !loads.contains_key(key);
            let load = loads.entry(key.clone()).or_insert_with(|| PushedLoad::new(now));
            load.meter.arrived(RequestOrigin::Client, now);
            is_first
        };
        if is_first {
            let load = PeriodLoad { concurrency: 1.0, requests: 1.0, ..PeriodLoad::default() };
            self.push(vec![self.entry(key, load)]);
        }
        RequestInFlight { key: key.clone(), reporter: Arc::clone(self) }
    }

    /// Whether a request is in flight.
    pub(super) fn is_busy(&self) -> bool {
        let loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        loads.values().any(|load| load.meter.is_busy())
    }

    /// Sends a frame of all revisions each second.
    pub(super) async fn report_for_ever(&self) {
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        loop {
            ticks.tick().await;
            let now = clock::now();
            let mut entries = Vec::new();
            {
                let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
                loads.retain(|key, load| {
                    let (load, is_kept) = load.report(now);
                    entries.push(self.entry(key, load));
                    is_kept
                });
            }
            if !entries.is_empty() {
                self.push(entries);
            }
        }
    }

    fn entry(&self, key: &RevisionKey, load: PeriodLoad) -> PushedStatEntry {
        let stat = PushedStat {
            pod_name: self.pod.clone(),
            concurrency: load.concurrency,
            requests: load.requests,
            ..PushedStat::default()
        };
        PushedStatEntry { namespace: key.namespace.clone(), name: key.name.clone(), stat: Some(stat) }
    }

    /// A frame that finds no room, or no connection, is lost.
    fn push(&self, entries: Vec<PushedStatEntry>) {
        let frame = PushedStatFrame { entries }.encode_to_vec();
        let _ = self.frames.try_send(frame.into());
    }
}

/// A request until it is dropped.
pub(super) struct RequestInFlight {
    key: RevisionKey,
    reporter: Arc<LoadReporter>,
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        let mut loads = self.reporter.loads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = loads.get_mut(&self.key) {
            load.meter.ended(RequestOrigin::Client, clock::now());
        }
    }
}

/// Keeps a connection to the autoscaler for ever, and says whether there is one.
pub(super) async fn keep(
    client: Client,
    system: &str,
    mut frames: mpsc::Receiver<Bytes>,
    is_linked: &AtomicBool,
) -> anyhow::Result<()> {
    let mut step = 0;
    loop {
        match connect(&client, system).await {
            Ok(socket) => {
                is_linked.store(true, Ordering::Relaxed);
                step = 0;
                let why = converse(socket, &mut frames).await;
                is_linked.store(false, Ordering::Relaxed);
                eprintln!("the autoscaler is not connected any more: {why}");
            }
            Err(error) => eprintln!("the autoscaler is not connected: {error:#}"),
        }
        // Frames of a time without a connection are lost.
        while frames.try_recv().is_ok() {}
        tokio::time::sleep(FIRST_PAUSE.mul_f64(1.3_f64.powi(step))).await;
        step = (step + 1) % PAUSES;
    }
}

async fn connect(client: &Client, system: &str) -> anyhow::Result<WebSocketStream<TcpStream>> {
    let (name, port) = AUTOSCALER;
    // No server of names runs in the cluster of tests.
    let service = Api::<Service>::namespaced(client.clone(), system).get(name).await?;
    let address = service.spec.and_then(|spec| spec.cluster_ip).context("its Service has no address")?;
    let connecting = async {
        let stream = TcpStream::connect(format!("{address}:{port}")).await?;
        let url = format!("ws://{name}.{system}.svc.cluster.local:{port}/");
        Ok::<_, anyhow::Error>(client_async(url, stream).await?.0)
    };
    tokio::time::timeout(HANDSHAKE_LIMIT, connecting).await.context("no handshake within 3 s")?
}

/// Sends frames and pings until the connection ends; says why it ended.
async fn converse(mut socket: WebSocketStream<TcpStream>, frames: &mut mpsc::Receiver<Bytes>) -> String {
    let mut pings = tokio::time::interval(PING_EVERY);
    let mut heard = clock::now();
    loop {
        // Cancelled: waits alone. A message that was half read or half sent stays in the socket.
        let sent = tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => socket.send(Message::Binary(frame)).await,
                None => return "the activator ends".to_owned(),
            },
            _ = pings.tick() => {
                if clock::since(heard) > SILENT_MAX {
                    return "no pong came".to_owned();
                }
                socket.send(Message::Ping(Bytes::new())).await
            }
            message = socket.next() => match message {
                Some(Ok(Message::Close(frame))) => return format!("it was closed: {frame:?}"),
                Some(Ok(_)) => {
                    heard = clock::now();
                    Ok(())
                }
                Some(Err(error)) => return error.to_string(),
                None => return "it has ended".to_owned(),
            },
        };
        if let Err(error) = sent {
            return error.to_string();
        }
    }
}
