//! `ebb release`: gives Services back to Kubernetes, without losing a request.
//!
//! Each gets its selector back and loses the annotation; ebb's endpoints stay until one of Kubernetes' own is
//! ready, and the count is one at least, so whoever waits is answered.

use std::process::ExitCode;

use anyhow::{Context, bail};
use futures_util::future::join_all;

use crate::adopt::{appended, ask, problems};
use crate::cli::ReleaseOptions;
use crate::cluster::Cluster;
use crate::cluster::service::{self, ServiceName, SliceWriters};
use crate::output;

pub(crate) fn run(options: &ReleaseOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let cluster = Cluster::find(&options.cluster).await?;
        let names = if let Some(service) = &options.service {
            vec![ServiceName::read(&cluster.namespace, service)?]
        } else {
            let found = cluster.services_that_name_a_workload(options.cluster.namespace.as_deref()).await;
            found.context("Services could not be listed")?.names
        };
        if names.is_empty() {
            output::print_line("no Service is served through ebb")?;
        }
        let mut ended = ExitCode::SUCCESS;
        let released = join_all(names.iter().map(|name| release(&cluster, name, options))).await;
        for (name, released) in names.iter().zip(released) {
            match released {
                Ok(()) => output::print_line(&format!("{name} is served by Kubernetes again"))?,
                Err(error) => {
                    output::print_error(&error);
                    ended = ExitCode::FAILURE;
                }
            }
        }
        Ok(ended)
    })
}

async fn release(cluster: &Cluster, name: &ServiceName, options: &ReleaseOptions) -> anyhow::Result<()> {
    let present = cluster.service(name).await?;
    let selector = match options.selector.as_slice() {
        [] if !service::selector(&present).is_empty() => service::selector(&present),
        [] => cluster.former_selector(name, &present).await?,
        given => given.iter().cloned().collect(),
    };
    cluster.change_service(name, |_| service::given_back(&selector)).await?;
    if cluster.is_written_by(name, SliceWriters::KUBERNETES_ALONE, options.timeout).await? {
        return Ok(());
    }
    let why = ask(cluster).await.map(|list| problems(&list, name)).unwrap_or_default();
    bail!(
        "{name} has its selector back, but no pod that Kubernetes could serve was ready within {:?}; ebb serves on until one is{}",
        options.timeout,
        appended(&why)
    )
}
