//! How are the autoscalers asked that decide? Each holds Leases under its pod's name; a port-forward reaches
//! its API whatever lies between the person and the cluster's network. In the place of an installed Knative's
//! autoscalers Leases, namespace and port are others.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use autoscaler::api_types::OwnersAnswer;
use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use vocabulary::{BUCKETS_ANNOTATION, Bucket, OWNER_LEASE, ReplicaName, owner_lease};

use super::Cluster;
use super::knative_leases::{LeaseHolders, holders};
use crate::cli::{EBBS_SYSTEM, KNATIVES_SYSTEM};
use crate::client::{self, UpQuestion};

/// Where each autoscaler's API listens in its pod.
const API_PORT: u16 = 8080;
/// Where it listens in Knative's place: Knative's activators push their load to port 8080 there.
const API_PORT_IN_KNATIVES_PLACE: u16 = 8081;

/// Where the APIs of the autoscalers are that decide, whoever of them does.
#[derive(Clone, Debug)]
pub(crate) struct OwnersPlace {
    /// The namespace of their pods.
    namespace: String,
    /// The port of their API.
    port: u16,
}

/// The autoscalers that own the buckets of revisions.
struct Owners {
    place: OwnersPlace,
    /// The names of their pods, from the Leases.
    named: BTreeSet<String>,
    /// Owners that could not be found: buckets without a holder.
    missing: Vec<ReplicaName>,
}

impl Cluster {
    /// `GET path` of the APIs of the autoscalers that decide, read as JSON, as one answer.
    pub(crate) async fn get<Answer: OwnersAnswer>(&self, path: &str) -> anyhow::Result<Answer> {
        let owners = self.owners().await?;
        let asked = owners.named.iter().map(|owner| self.get_from(&owners.place, owner, path));
        let (mut answers, mut silent, mut first_error) = (Vec::new(), owners.missing.clone(), None);
        for (owner, answer) in owners.named.iter().zip(join_all(asked).await) {
            match answer {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    silent.push(ReplicaName::new(owner));
                    first_error.get_or_insert(error);
                }
            }
        }
        match (Answer::merged(answers, &silent), first_error) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            (None, None) => bail!("no autoscaler was asked for {path}"),
        }
    }

    /// Fails where no autoscaler decides, or a person may not find out.
    pub(crate) async fn find_owners(&self) -> anyhow::Result<()> {
        self.owners().await.map(|_| ())
    }

    /// Where the autoscalers that decide are to be asked. Fails as [`Cluster::find_owners`] does.
    pub(crate) async fn owners_place(&self) -> anyhow::Result<OwnersPlace> {
        Ok(self.owners().await?.place)
    }

    /// The bytes that `GET path` of the autoscaler `owner` answers.
    pub(crate) async fn bytes_from(
        &self,
        place: &OwnersPlace,
        owner: &str,
        path: &str,
    ) -> anyhow::Result<Bytes> {
        self.bytes_of(place, owner, UpQuestion::without_body(Method::GET, path)).await
    }

    /// `PUT path` of the autoscaler `owner` with this JSON; the answer is read as JSON.
    pub(crate) async fn put_to<Answer: DeserializeOwned>(
        &self,
        place: &OwnersPlace,
        owner: &str,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let question = UpQuestion { method: Method::PUT, path, body };
        answer_of(owner, path, &self.bytes_of(place, owner, question).await?)
    }

    async fn bytes_of(
        &self,
        place: &OwnersPlace,
        owner: &str,
        question: UpQuestion<'_>,
    ) -> anyhow::Result<Bytes> {
        let path = question.path;
        let asked = tokio::time::timeout(client::PATIENCE, self.ask(place, owner, question));
        asked.await.with_context(|| {
            format!("autoscaler {owner} did not answer {path} within {:?}", client::PATIENCE)
        })?
    }

    async fn get_from<Answer: OwnersAnswer>(
        &self,
        place: &OwnersPlace,
        owner: &str,
        path: &str,
    ) -> anyhow::Result<Answer> {
        answer_of(owner, path, &self.bytes_from(place, owner, path).await?)
    }

    /// The autoscalers that decide, each of which has one bucket or more.
    async fn owners(&self) -> anyhow::Result<Owners> {
        let first = self.lease(Bucket(0)).await?;
        if first.is_none()
            && let Some(owners) = self.owners_in_knatives_place().await
        {
            return Ok(owners);
        }
        let annotations = first.as_ref().and_then(|lease| lease.metadata.annotations.as_ref());
        // A Lease that does not say how many there are is the only one.
        let count = annotations.and_then(|all| all.get(BUCKETS_ANNOTATION)?.parse().ok()).unwrap_or(1);
        let others = try_join_all((1..count).map(|number| self.lease(Bucket(number)))).await?;
        let (mut named, mut missing) = (BTreeSet::new(), Vec::new());
        for (number, lease) in [first].into_iter().chain(others).enumerate() {
            let holder = lease.and_then(|lease| lease.spec).and_then(|spec| spec.holder_identity);
            if let Some(holder) = holder.filter(|holder| !holder.is_empty()) {
                named.insert(holder);
            } else {
                let vacant = format!("the owner of bucket {number} (there is none)");
                missing.push(ReplicaName::new(&vacant));
            }
        }
        if named.is_empty() {
            bail!(
                "no autoscaler decides in cluster {} (Lease {OWNER_LEASE} in {} names no holder); is ebb installed? `ebb check` says what is wrong",
                self.context,
                self.system
            );
        }
        let place = OwnersPlace { namespace: self.system.clone(), port: API_PORT };
        Ok(Owners { place, named, missing })
    }

    /// The autoscalers that hold Knative's Leases; `None` where no pod does, or a person may not find out:
    /// then the words about an installation by itself are the better ones.
    async fn owners_in_knatives_place(&self) -> Option<Owners> {
        let namespace = if self.system == EBBS_SYSTEM { KNATIVES_SYSTEM } else { &self.system };
        let leases = self.api_in::<Lease>(namespace).list(&ListParams::default()).await.ok()?.items;
        let LeaseHolders { pods, vacant } = holders(&leases);
        let missing =
            vacant.iter().map(|lease| ReplicaName::new(&format!("the holder of {lease} (there is none)")));
        let place = OwnersPlace { namespace: namespace.to_owned(), port: API_PORT_IN_KNATIVES_PLACE };
        (!pods.is_empty()).then(|| Owners { place, named: pods, missing: missing.collect() })
    }

    async fn lease(&self, bucket: Bucket) -> anyhow::Result<Option<Lease>> {
        let name = owner_lease(bucket);
        let lease = self.system_api::<Lease>().get_opt(&name).await;
        lease.with_context(|| {
            format!(
                "who decides in cluster {} could not be read (Lease {name} in {})",
                self.context, self.system
            )
        })
    }

    async fn ask(&self, place: &OwnersPlace, pod: &str, question: UpQuestion<'_>) -> anyhow::Result<Bytes> {
        let OwnersPlace { namespace, port } = place;
        let opened = self.api_in::<Pod>(namespace).portforward(pod, &[*port]).await;
        let mut forwarder = opened.with_context(|| {
            format!(
                "no port-forward to {namespace}/{pod}; that takes the right to create pods/portforward there"
            )
        })?;
        let stream = forwarder.take_stream(*port).context("the port was asked for")?;
        // The API refuses names that are not its own. The forwarder ends with what it forwards; it is kept
        // until then.
        let host = format!("127.0.0.1:{port}");
        let body = client::exchange(stream, &host, question).await?;
        client::whole(body).await
    }
}

/// The JSON that an autoscaler answered.
fn answer_of<Answer: DeserializeOwned>(owner: &str, path: &str, body: &[u8]) -> anyhow::Result<Answer> {
    serde_json::from_slice(body)
        .with_context(|| format!("{path} of {owner} is something else than this version of ebb expects"))
}
