//! How do a person's commands reach a cluster? With that person's kubeconfig and rights, as `kubectl` does;
//! the autoscaler's API there through a port-forward to the one that decides.
//!
//! Nothing is watched here and nothing decided: objects that a person names are read, and changed as told.

pub(crate) mod knative_leases;
mod owner;
pub(crate) mod problem;
mod served_revision;
pub(crate) mod service;

use anyhow::Context as _;
use k8s_openapi::NamespaceResourceScope;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};

use crate::cli::ClusterOptions;

pub(crate) use owner::OwnersPlace;

/// A cluster, and where in it a person works.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Where what is named without a namespace is.
    pub(crate) namespace: String,
    /// Where ebb's own programs are.
    pub(crate) system: String,
    /// The name of the kubeconfig's context.
    pub(crate) context: String,
}

impl Cluster {
    /// The cluster that the options or the kubeconfig name; no request is made to it yet.
    pub(crate) async fn find(options: &ClusterOptions) -> anyhow::Result<Self> {
        let kubeconfig = match &options.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig =
            kubeconfig.context("no cluster is known (--kubeconfig, $KUBECONFIG, ~/.kube/config)")?;
        let context = options.context.clone().or_else(|| kubeconfig.current_context.clone());
        let choice = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &choice).await.with_context(|| {
            let context = context.as_deref().unwrap_or("(none)");
            format!(
                "context {context} of the kubeconfig cannot be used; `kubectl config get-contexts` lists them"
            )
        })?;
        let namespace = options.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
        let system = options.system_namespace.clone();
        Ok(Self { client, namespace, system, context: context.unwrap_or_else(|| "default".to_owned()) })
    }

    /// Whether a kubeconfig is there that names a cluster, however a person gave it.
    pub(crate) fn is_known() -> bool {
        Kubeconfig::read().is_ok_and(|kubeconfig| kubeconfig.current_context.is_some())
    }

    /// The API of one kind of object in a namespace.
    pub(crate) fn api_in<Object>(&self, namespace: &str) -> Api<Object>
    where
        Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The API of one kind of object in ebb's own namespace.
    pub(crate) fn system_api<Object>(&self) -> Api<Object>
    where
        Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.api_in(&self.system)
    }
}
