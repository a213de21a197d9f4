//! `ebb release`: gives Services back to Kubernetes, without losing a request.
//!
//! Each gets its selector back and loses the annotation; ebb's endpoints stay until one of Kubernetes' own is
//! ready, and the count is one at least, so each waiting request is answered.

use std::process::ExitCode;

use anyhow::{Context, bail};
use autoscaler::api_types::RevisionList;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Service;
use vocabulary::PodCount;

use crate::adopt::{appended, ask, problems};
use crate::cli::ReleaseOptions;
use crate::cluster::Cluster;
use crate::cluster::problem::ProblemSubject;
use crate::cluster::service::{self, ServiceName, SliceWait, SliceWriters};
use crate::output;

/// In what the autoscaler says of a workload whose count it writes in no case, and of no other.
const LEFT_ALONE: &str = "ebb leaves its count alone";

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
                Ok(ReleaseEnding::ToKubernetes) => {
                    output::print_line(&format!("{name} is served by Kubernetes again"))?;
                }
                Ok(ReleaseEnding::Deleted) => output::print_line(&format!("{name} was deleted meanwhile"))?,
                Err(error) => {
                    output::print_error(&error);
                    ended = ExitCode::FAILURE;
                }
            }
        }
        Ok(ended)
    })
}

/// What became of a Service that was to be given back.
enum ReleaseEnding {
    /// Kubernetes' own endpoints serve it.
    ToKubernetes,
    /// The Service, perhaps with its namespace, was deleted in the meantime.
    Deleted,
}

async fn release(
    cluster: &Cluster,
    name: &ServiceName,
    options: &ReleaseOptions,
) -> anyhow::Result<ReleaseEnding> {
    let present = match cluster.find_service(name).await? {
        Some(present) => present,
        // It was listed a moment ago.
        None if options.service.is_none() => return Ok(ReleaseEnding::Deleted),
        None => cluster.service(name).await?,
    };
    let selector = match options.selector.as_slice() {
        [] if !service::selector(&present).is_empty() => service::selector(&present),
        [] => cluster.former_selector(name, &present).await?,
        given => given.iter().cloned().collect(),
    };
    if let Ok(list) = ask(cluster).await
        && let Some(why) = why_no_pod_would_serve(&list, name, &present)
    {
        bail!("{name} is as it was: {why}");
    }
    cluster.change_service(name, |_| service::given_back(&selector)).await?;
    match cluster.wait_for_writers(name, SliceWriters::KUBERNETES_ALONE, options.timeout).await? {
        SliceWait::Stand => return Ok(ReleaseEnding::ToKubernetes),
        SliceWait::Deleted => return Ok(ReleaseEnding::Deleted),
        SliceWait::Late => {}
    }
    let why = ask(cluster).await.map(|list| problems(&list, name)).unwrap_or_default();
    bail!(
        "{name} has its selector back, but no pod that Kubernetes could serve was ready within {:?}; ebb serves on until one is{}",
        options.timeout,
        appended(&why)
    )
}

/// Why a Service that is given back would stay without endpoints of Kubernetes' own, if it would: at zero
/// a person must bring a pod: that ebb is to leave the count alone was meant in earnest.
fn why_no_pod_would_serve(list: &RevisionList, name: &ServiceName, present: &Service) -> Option<String> {
    let workload = service::annotation(present, vocabulary::REVISION_ANNOTATION)?;
    let (kind, workload) = workload.split_once('/').unwrap_or(("deployment", workload));
    let revision = list.revisions.iter().find(|one| {
        (one.name.namespace(), one.name.kind(), one.name.name()) == (&name.namespace, kind, workload)
    })?;
    let mut problems = list.problems.iter().filter_map(|problem| ProblemSubject::of(problem));
    let hold = problems.find(|one| one.is(&revision.name) && one.text.contains(LEFT_ALONE))?;
    (revision.wanted == PodCount::ZERO).then(|| {
        format!(
            "{}; it has no pod, so Kubernetes would have no pod that serves: scale it first (`kubectl -n {} scale {kind}/{workload} --replicas=1`)",
            hold.text, name.namespace
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_at_zero_that_ebb_leaves_alone_is_not_given_back() {
        let present = json!({"metadata": {"annotations": {"ebb.dev/revision": "hello"}}});
        let present: Service = serde_json::from_value(present).expect("a Service");
        let name = ServiceName { namespace: "default".to_owned(), name: "web".to_owned() };
        let refused = |wanted: u32, problem: &str| {
            let mut summary = crate::get::summary_for_tests("default/deployment/hello");
            summary.wanted = PodCount::new(wanted);
            let list = RevisionList {
                version: autoscaler::api_types::API_VERSION,
                snapshot: 0,
                revisions: vec![summary],
                problems: vec![problem.to_owned()],
                unanswered: Vec::new(),
                links: Vec::new(),
            };
            why_no_pod_would_serve(&list, &name, &present)
        };
        let paused =
            "deployment default/hello: annotation ebb.dev/paused is \"true\", so ebb leaves its count alone";
        let why = refused(0, paused).expect("no pod would come");
        assert!(why.contains("kubectl -n default scale deployment/hello --replicas=1"), "{why}");
        assert_eq!(refused(1, paused), None);
        assert_eq!(refused(0, "deployment default/other: ebb leaves its count alone"), None);
    }
}
