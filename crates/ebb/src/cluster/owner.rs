//! How is the autoscaler asked that decides? It holds a Lease under its pod's name; a port-forward reaches
//! its API whatever lies between the person and the cluster's network.

use anyhow::{Context, bail};
use bytes::Bytes;
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use vocabulary::OWNER_LEASE;

use super::Cluster;
use crate::client;

/// Where each autoscaler's API listens in its pod.
const API_PORT: u16 = 8080;
/// How the API knows itself there; it refuses names that are not its own.
const API_HOST: &str = "127.0.0.1:8080";

impl Cluster {
    /// `GET path` of the API of the autoscaler that decides, read as JSON.
    pub(crate) async fn get<Answer: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Answer> {
        let owner = self.owner().await?;
        let asked = tokio::time::timeout(client::PATIENCE, self.ask(&owner, path));
        let body = asked.await.with_context(|| {
            format!("autoscaler {owner} did not answer {path} within {:?}", client::PATIENCE)
        })??;
        serde_json::from_slice(&body)
            .with_context(|| format!("{path} of {owner} is something else than this version of ebb expects"))
    }

    /// The pod of the autoscaler that decides.
    pub(crate) async fn owner(&self) -> anyhow::Result<String> {
        let lease = self.system_api::<Lease>().get_opt(OWNER_LEASE).await.with_context(|| {
            format!(
                "who decides in cluster {} could not be read (Lease {OWNER_LEASE} in {})",
                self.context, self.system
            )
        })?;
        let holder = lease.and_then(|lease| lease.spec).and_then(|spec| spec.holder_identity);
        match holder.filter(|holder| !holder.is_empty()) {
            Some(holder) => Ok(holder),
            None => bail!(
                "no autoscaler decides in cluster {} (Lease {OWNER_LEASE} in {} names nobody); is ebb installed? `ebb check` says what is wrong",
                self.context,
                self.system
            ),
        }
    }

    async fn ask(&self, pod: &str, path: &str) -> anyhow::Result<Bytes> {
        let opened = self.system_api::<Pod>().portforward(pod, &[API_PORT]).await;
        let mut forwarder = opened.with_context(|| {
            format!(
                "no port-forward to {}/{pod}; that takes the right to create pods/portforward there",
                self.system
            )
        })?;
        let stream = forwarder.take_stream(API_PORT).context("the port was asked for")?;
        // The forwarder ends with what it forwards; it is kept until then.
        let body = client::exchange(stream, API_HOST, (Method::GET, path)).await?;
        client::whole(body).await
    }
}
