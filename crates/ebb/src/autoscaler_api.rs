//! Which API does a command ask: that of an `ebb up` on this machine, or that of the autoscaler that decides
//! in a cluster?
//!
//! Options of a cluster mean that cluster, and an address means the API there. Without either it is the API
//! of this machine; only where nothing listens there, and a kubeconfig is known, it is that of the
//! kubeconfig's cluster, with a note that says so.

use anyhow::Context as _;
use autoscaler::api_types::{LedgerList, LedgerRange, OwnerView, OwnersAnswer, RevisionList};
use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::cli::{AutoscalerArguments, AutoscalerPlace};
use crate::client::UpClient;
use crate::cluster::problem::ProblemSubject;
use crate::cluster::{Cluster, OwnersPlace};
use crate::output;

/// Where `ebb up` has its API, unless it was told otherwise.
const ON_THIS_MACHINE: &str = "127.0.0.1:9000";

/// An API that was found.
pub(crate) enum AutoscalerApi {
    At(UpClient),
    Of(Box<ClusterView>),
}

/// A cluster, and how much of it is asked for.
pub(crate) struct ClusterView {
    cluster: Cluster,
    is_whole: bool,
    /// Found at the first question to a named autoscaler, and the same for all others.
    place: OnceCell<OwnersPlace>,
}

impl ClusterView {
    fn new(cluster: Cluster, is_whole: bool) -> Self {
        Self { cluster, is_whole, place: OnceCell::new() }
    }

    async fn owners_place(&self) -> anyhow::Result<&OwnersPlace> {
        self.place.get_or_try_init(|| self.cluster.owners_place()).await
    }

    /// The cluster itself, for more than one question.
    pub(crate) fn into_cluster(self) -> Cluster {
        self.cluster
    }
}

impl AutoscalerApi {
    pub(crate) async fn find(target: &AutoscalerArguments) -> anyhow::Result<Self> {
        Self::find_at(&target.place, target.all_namespaces).await
    }

    /// The API at this place. Of a cluster, `is_whole` asks for all namespaces; without it, for the one that
    /// was named.
    pub(crate) async fn find_at(place: &AutoscalerPlace, is_whole: bool) -> anyhow::Result<Self> {
        let up = |url| UpClient::at(url, place.credentials.token_file.clone());
        match &place.url {
            Some(url) if !place.cluster.is_given() => Ok(Self::At(up(url.clone()))),
            None if !place.cluster.is_given() && !is_cluster_meant().await => {
                Ok(Self::At(up(format!("http://{ON_THIS_MACHINE}"))))
            }
            Some(_) | None => {
                let cluster = Cluster::find(&place.cluster).await?;
                if !place.cluster.is_given() {
                    let context = &cluster.context;
                    output::print_warning(&format!(
                        "nothing answers at {ON_THIS_MACHINE}, so this is the cluster of context {context}"
                    ));
                }
                Ok(Self::Of(Box::new(ClusterView::new(cluster, is_whole))))
            }
        }
    }

    /// `GET path`, read as JSON.
    pub(crate) async fn get<Answer: OwnersAnswer>(&self, path: &str) -> anyhow::Result<Answer> {
        match self {
            Self::At(api) => api.get(path).await,
            Self::Of(view) => view.cluster.get(path).await,
        }
    }

    /// `PUT path` with this JSON, read as JSON. Of a cluster the owner of what the path is about is asked.
    pub(crate) async fn put<Answer: DeserializeOwned>(
        &self,
        owner: Option<&OwnerView>,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        match self {
            Self::At(api) => api.put(path, body).await,
            Self::Of(view) => {
                let owner = owner.with_context(|| {
                    format!("no autoscaler decides about {path} at the moment; try again in some seconds")
                })?;
                view.cluster.put_to(view.owners_place().await?, &owner.name, path, body).await
            }
        }
    }

    /// The bytes that `GET path` of one autoscaler answers. An `ebb up` answers for all of its autoscalers.
    pub(crate) async fn bytes_from(&self, autoscaler: &str, path: &str) -> anyhow::Result<Bytes> {
        match self {
            Self::At(api) => api.ask(Method::GET, path).await,
            Self::Of(view) => view.cluster.bytes_from(view.owners_place().await?, autoscaler, path).await,
        }
    }

    /// All revisions, and what there is to say of anything; of a cluster in the namespace that was named.
    pub(crate) async fn revisions(&self) -> anyhow::Result<RevisionList> {
        let mut list: RevisionList = self.get("/v1/revisions").await?;
        match self {
            Self::Of(view) if !view.is_whole => {
                let named = &view.cluster.namespace;
                list.revisions.retain(|one| one.name.namespace() == named);
                list.problems.retain(|problem| {
                    ProblemSubject::of(problem).is_none_or(|subject| subject.namespace == named)
                });
            }
            Self::At(_) | Self::Of(_) => {}
        }
        Ok(list)
    }

    /// The latest ready revision of a Service of an installed Knative in the cluster; `None` on one machine.
    pub(crate) async fn latest_ready_revision(&self, service: &str) -> Option<String> {
        match self {
            Self::At(_) => None,
            Self::Of(view) => view.cluster.latest_ready_revision(service).await,
        }
    }

    /// The ledgers of all revisions; of a cluster of those in the namespace that was named.
    pub(crate) async fn ledger(&self, range: LedgerRange) -> anyhow::Result<LedgerList> {
        let mut list: LedgerList = self.get(&format!("/v1/ledger?{}", range.query())).await?;
        match self {
            Self::Of(view) if !view.is_whole => {
                let named = &view.cluster.namespace;
                list.revisions.retain(|ledger| ledger.name.namespace() == named);
            }
            Self::At(_) | Self::Of(_) => {}
        }
        Ok(list)
    }
}

/// Whether nothing listens here and a cluster is known.
async fn is_cluster_meant() -> bool {
    Cluster::is_known() && TcpStream::connect(ON_THIS_MACHINE).await.is_err()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// A cluster whose one bucket has an owner that no port-forward reaches; how often its Lease was read.
    fn cluster() -> (Cluster, Arc<AtomicUsize>) {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let answers = tower::service_fn(move |request: Request<Body>| {
            let is_lease = request.uri().path().contains("/leases/");
            let mut response = Response::new(Body::empty());
            if is_lease {
                counted.fetch_add(1, Ordering::Relaxed);
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": "autoscaler"},
                    "spec": {"holderIdentity": "autoscaler-1"},
                });
                *response.body_mut() = Body::from(lease.to_string().into_bytes());
            } else {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let cluster = Cluster {
            client: kube::Client::new(answers, "default"),
            namespace: "default".to_owned(),
            system: "ebb-system".to_owned(),
            context: "test".to_owned(),
        };
        (cluster, looks)
    }

    #[tokio::test]
    async fn owners_are_looked_up_once_for_all_parts_of_a_record() {
        let (cluster, looks) = cluster();
        let api = AutoscalerApi::Of(Box::new(ClusterView::new(cluster, true)));
        for from in [0, 100, 200] {
            let path = format!("/v1/record/autoscaler-1/1?from={from}");
            let error = api.bytes_from("autoscaler-1", &path).await.expect_err("nothing is forwarded");
            assert!(error.to_string().contains("no port-forward to ebb-system/autoscaler-1"), "{error:#}");
        }
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }
}
