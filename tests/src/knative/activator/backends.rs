//! Which pods of a revision answer? Revisions and Endpoints are watched; each pod that is new, or was not
//! ready, is probed until it answers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use kube::Client;
use serde_json::Value;

use super::served_revisions::{RevisionKey, ServedRevision, ServedRevisions};
use crate::knative::forwarding::probe_connection;
use crate::knative::keys;
use crate::knative::kind_watch::watch_kind;
use crate::knative::objects::{PlayedKind, label, list, number, text};
use crate::knative::request_gate::NETWORK_PROBE;
use crate::knative::revision_spec::{is_h2c, request_port, timeout_seconds};

/// Between two rounds of probes, as in Knative.
const PROBE_EVERY: Duration = Duration::from_millis(200);
/// The limit of one probe, as in Knative.
const PROBE_LIMIT: Duration = Duration::from_millis(300);

/// Watches until the process ends.
pub(super) async fn watch_objects(client: Client, revisions: Arc<ServedRevisions>) {
    let (for_revisions, for_endpoints) = (Arc::clone(&revisions), revisions);
    tokio::join!(
        watch_kind(client.clone(), PlayedKind::Revision, move |object, is_there| {
            note_revision(&for_revisions, object, is_there);
        }),
        watch_kind(client, PlayedKind::Endpoints, move |object, is_there| {
            note_endpoints(&for_endpoints, object, is_there);
        }),
    );
}

fn note_revision(revisions: &Arc<ServedRevisions>, object: &Value, is_there: bool) {
    let key = RevisionKey::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if !is_there {
        return revisions.remove(&key);
    }
    let port = request_port(is_h2c(object));
    let timeout = Duration::from_secs(timeout_seconds(object));
    let limit = u32::try_from(number(object, "/spec/containerConcurrency")).unwrap_or(0);
    if let Some(revision) = revisions.add(key, port, timeout, limit) {
        // Ends with the revision; tests notice requests that find no pod.
        tokio::spawn(look_after(Arc::clone(revisions), revision));
    }
}

fn note_endpoints(revisions: &ServedRevisions, object: &Value, is_there: bool) {
    let name = label(object, keys::SERVERLESS_SERVICE);
    if name.is_empty() {
        return;
    }
    let key = RevisionKey::new(text(object, "/metadata/namespace"), name);
    let of = |lists: &[&str]| if is_there { addresses(object, lists) } else { BTreeSet::new() };
    match label(object, keys::SERVICE_TYPE) {
        "Private" => revisions.put_pods(&key, of(&["addresses", "notReadyAddresses"])),
        "Public" => revisions.put_public(&key, &of(&["addresses"])),
        _ => {}
    }
}

fn addresses(endpoints: &Value, lists: &[&str]) -> BTreeSet<IpAddr> {
    let of_subset = |subset: &Value| -> Vec<IpAddr> {
        let addresses = lists.iter().flat_map(|name| subset[*name].as_array().into_iter().flatten());
        addresses.filter_map(|address| address["ip"].as_str()?.parse().ok()).collect()
    };
    list(endpoints, "/subsets").iter().flat_map(of_subset).collect()
}

/// Probes the pods of a revision as long as it is there.
async fn look_after(revisions: Arc<ServedRevisions>, revision: Arc<ServedRevision>) {
    let mut shown = revision.addresses.subscribe();
    let mut healthy = BTreeSet::new();
    while revisions.is_present(&revision) {
        let pods = shown.borrow_and_update().pods.clone();
        healthy.retain(|pod| pods.contains(pod));
        let unknown: Vec<IpAddr> = pods.iter().copied().filter(|pod| !healthy.contains(pod)).collect();
        let probes = unknown.iter().map(|pod| is_ready(SocketAddr::new(*pod, revision.port)));
        let answers = join_all(probes).await;
        healthy.extend(unknown.iter().zip(answers).filter(|(_, is_ready)| *is_ready).map(|(pod, _)| *pod));
        revision.assign(&healthy);
        // With every pod healthy only other pods, or the end of the revision, are news.
        let pause = if healthy.len() == pods.len() { Duration::from_secs(1) } else { PROBE_EVERY };
        let _ = tokio::time::timeout(pause, shown.changed()).await;
    }
}

/// Whether the queue-proxy of a pod says that the app is ready.
async fn is_ready(pod: SocketAddr) -> bool {
    matches!(tokio::time::timeout(PROBE_LIMIT, probe(pod)).await, Ok(Ok(true)))
}

async fn probe(to: SocketAddr) -> anyhow::Result<bool> {
    let mut sender = probe_connection(to).await?;
    let request = Request::get("/healthz")
        .header("host", to.to_string())
        .header("user-agent", "Knative-Activator-Probe")
        .header(NETWORK_PROBE, "queue")
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    let is_ok = response.status().is_success();
    Ok(is_ok && response.into_body().collect().await?.to_bytes() == "queue")
}
