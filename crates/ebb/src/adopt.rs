//! `ebb adopt`: takes over a Service that Kubernetes serves, without losing a request.
//!
//! The order is what matters. First the Service names its workload, and nothing else changes; once the
//! autoscaler knows it and activators listen, the selector goes, and ebb's endpoints stand before Kubernetes'
//! own are taken away. What cannot be served is left as it was, with the autoscaler's reason.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use autoscaler::api_types::{PlatformTermsView, RevisionDetail, RevisionList};
use k8s_openapi::api::core::v1::Service;

use crate::cli::AdoptOptions;
use crate::cluster::Cluster;
use crate::cluster::service::{self, LOOKS_EVERY, ServiceName, SliceWait, SliceWriters, looks};
use crate::output;

/// A reason against it that stands so long stays: what is known of a cluster is seconds old at most.
const REFUSED_AFTER: Duration = Duration::from_secs(5);
/// In what the autoscaler says of a Service that waits for its selector to go, and of no other.
const PREPARED: &str = "once spec.selector is removed";

/// The cause of a floor for a minute after a Service was given back.
const GIVEN_BACK: &str = "given_back";

pub(crate) fn run(options: &AdoptOptions) -> anyhow::Result<ExitCode> {
    crate::up::runtime()?.block_on(async {
        let cluster = Cluster::find(&options.cluster).await?;
        let name = ServiceName::read(&cluster.namespace, &options.service)?;
        adopt(&cluster, &name, options).await
    })
}

async fn adopt(cluster: &Cluster, name: &ServiceName, options: &AdoptOptions) -> anyhow::Result<ExitCode> {
    let former = cluster.service(name).await?;
    let workload = workload(cluster, name, (&former, options)).await?;
    cluster.change_service(name, |service| service::naming(service, &workload)).await?;
    if !service::selector(&former).is_empty() {
        if let Err(error) = prepared(cluster, name, (&workload, options.timeout)).await {
            cluster.change_service(name, |_| service::unnaming(&former)).await?;
            return Err(error.context(format!("{name} is as it was")));
        }
        output::print_line(&format!("{name}: activators are ready to serve it for {workload}"))?;
        cluster.change_service(name, |_| service::without_selector()).await?;
    }
    adopted(cluster, name, options.timeout).await?;
    output::print_line(&format!("{name} is served through ebb, for {workload}"))?;
    for problem in problems(&ask(cluster).await?, name) {
        output::print_warning(&problem);
    }
    Ok(ExitCode::SUCCESS)
}

async fn workload(
    cluster: &Cluster,
    name: &ServiceName,
    (service, options): (&Service, &AdoptOptions),
) -> anyhow::Result<String> {
    let named = options
        .workload
        .clone()
        .or_else(|| service::annotation(service, vocabulary::REVISION_ANNOTATION).map(str::to_owned));
    match named {
        Some(named) if named.contains('/') => Ok(named),
        Some(named) => Ok(format!("deployment/{named}")),
        None => cluster.workload_of(name, &service::selector(service)).await,
    }
}

/// Waits until the autoscaler is ready to write its endpoints; what speaks against it is the error.
async fn prepared(
    cluster: &Cluster,
    name: &ServiceName,
    (workload, patience): (&str, Duration),
) -> anyhow::Result<()> {
    let revision = format!("{}/{workload}", name.namespace);
    let mut refused_looks = 0;
    for look in 0..looks(patience) {
        let list = ask(cluster).await?;
        let is_known = list.revisions.iter().any(|one| one.name.as_str() == revision);
        let problems = problems(&list, name);
        let (waits, against): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.contains(PREPARED));
        match (is_known && !waits.is_empty(), against.is_empty()) {
            (true, true) => return Ok(()),
            (_, true) => {
                refused_looks = 0;
                // Most Services are prepared by the second look.
                if look == 1 {
                    tell_of_wait(cluster, &revision).await?;
                }
            }
            (_, false) if refused_looks >= looks(REFUSED_AFTER) => bail!("{}", against.join("; ")),
            (_, false) => refused_looks += 1,
        }
        tokio::time::sleep(LOOKS_EVERY).await;
    }
    bail!("the autoscaler has not prepared it within {patience:?}; `ebb check` says whether it works")
}

/// Says why the autoscaler is not ready yet, if it says so itself.
async fn tell_of_wait(cluster: &Cluster, revision: &str) -> anyhow::Result<()> {
    let detail: anyhow::Result<RevisionDetail> = cluster.get(&format!("/v1/revisions/{revision}")).await;
    match detail.ok().and_then(|detail| wait_in_words(&detail.platform)) {
        Some(wait) => output::print_line(&wait),
        None => Ok(()),
    }
}

fn wait_in_words(terms: &PlatformTermsView) -> Option<String> {
    (terms.floor_cause.as_deref() == Some(GIVEN_BACK)).then(|| {
        "waits until a minute after the Service was given back: until then clients may still come by the former way".to_owned()
    })
}

/// Waits until ebb's endpoints stand alone.
async fn adopted(cluster: &Cluster, name: &ServiceName, patience: Duration) -> anyhow::Result<()> {
    match cluster.wait_for_writers(name, SliceWriters::OURS_ALONE, patience).await? {
        SliceWait::Stand => return Ok(()),
        SliceWait::Deleted => bail!("{name} was deleted meanwhile"),
        SliceWait::Late => {}
    }
    let why = problems(&ask(cluster).await?, name);
    bail!(
        "ebb's endpoints of {name} did not stand within {patience:?}, and Kubernetes' own serve on; `ebb release service/{}` undoes it{}",
        name.name,
        appended(&why)
    )
}

pub(crate) async fn ask(cluster: &Cluster) -> anyhow::Result<RevisionList> {
    cluster.get("/v1/revisions").await
}

/// Problems at the end of a sentence, if there are any.
pub(crate) fn appended(problems: &[String]) -> String {
    if problems.is_empty() { String::new() } else { format!("; {}", problems.join("; ")) }
}

/// The problems of a Service that the autoscaler tells.
pub(crate) fn problems(list: &RevisionList, name: &ServiceName) -> Vec<String> {
    let prefix = format!("Service {}/{}: ", name.namespace, name.name);
    list.problems.iter().filter(|problem| problem.starts_with(&prefix)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adoption_within_a_minute_of_a_release_says_what_it_waits_for() {
        let terms = |cause: Option<&str>| PlatformTermsView {
            floor_cause: cause.map(str::to_owned),
            ..PlatformTermsView::default()
        };
        assert_eq!(wait_in_words(&terms(None)), None);
        assert_eq!(wait_in_words(&terms(Some("bypass"))), None);
        assert!(wait_in_words(&terms(Some("given_back"))).is_some_and(|text| text.contains("a minute")));
    }
}
