//! What the pods of a revision of a cluster printed: the autoscaler knows the pods, and the API server has
//! their lines from kubelet, with the rights of the person that asks.

use anyhow::Context as _;
use autoscaler::api_types::RevisionDetail;
use futures_util::future::try_join_all;
use futures_util::{AsyncBufReadExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use serde_json::json;
use vocabulary::{QUEUE_PROXY, RevisionName};

use crate::cli::LogsOptions;
use crate::cluster::Cluster;
use crate::output;

/// A container whose lines are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ContainerSource {
    pod: String,
    container: String,
    /// Whether the pod has other containers of the app, so that a line must tell its own.
    has_siblings: bool,
}

/// Takes one line, as JSON with `pod`, `container`, `timestamp` and `line`.
type TakeLine<'t> = &'t dyn Fn(&str) -> anyhow::Result<()>;

/// Shows the lines of each pod that there is: one pod after the other, or all at once while they come.
pub(super) async fn show(
    cluster: &Cluster,
    revision: &RevisionName,
    options: &LogsOptions,
    take: TakeLine<'_>,
) -> anyhow::Result<()> {
    let detail: RevisionDetail = cluster.get(&format!("/v1/revisions/{revision}")).await?;
    let api: Api<Pod> = cluster.api_in(revision.namespace());
    let mut sources = Vec::new();
    for view in &detail.pods {
        let name = view.name.as_str();
        let pod = api.get_opt(name).await.with_context(|| format!("pod {name} could not be read"))?;
        sources.extend(pod.as_ref().map(sources_of).unwrap_or_default());
    }
    if sources.is_empty() {
        output::print_warning(&format!(
            "{revision} has no pod now, and a cluster keeps no lines of former ones"
        ));
        return Ok(());
    }
    if options.follow {
        // A line that cannot be shown ends all: the next line of another container may be long in coming.
        try_join_all(sources.iter().map(|source| lines_of(&api, source, options, take))).await?;
        return Ok(());
    }
    for source in &sources {
        lines_of(&api, source, options, take).await?;
    }
    Ok(())
}

/// The containers of the app. What the queue-proxy prints is about requests, and `kubectl logs` shows it.
fn sources_of(pod: &Pod) -> Vec<ContainerSource> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let names: Vec<&str> =
        containers.map(|one| one.name.as_str()).filter(|name| *name != QUEUE_PROXY).collect();
    let source = |name: &&str| ContainerSource {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        container: (*name).to_owned(),
        has_siblings: names.len() > 1,
    };
    names.iter().map(source).collect()
}

/// Shows the lines of one container. Where the API server has none, because the container has not started or
/// has no former run, a warning says so, and the lines of other containers are shown; so it is where the
/// connection breaks while lines are followed.
async fn lines_of(
    api: &Api<Pod>,
    source: &ContainerSource,
    options: &LogsOptions,
    take: TakeLine<'_>,
) -> anyhow::Result<()> {
    let stream = match api.log_stream(&source.pod, &parameters(source, options)).await {
        Ok(stream) => stream,
        Err(error) => {
            let ContainerSource { pod, container, .. } = source;
            output::print_warning(&format!("no lines of {pod}/{container}: {error}"));
            return Ok(());
        }
    };
    let mut lines = std::pin::pin!(stream.lines());
    while let Some(line) = lines.next().await {
        let line = match line {
            Err(error) if options.follow => {
                output::print_warning(&format!("the lines of {} end early: {error}", source.pod));
                return Ok(());
            }
            line => line.with_context(|| format!("the lines of {} end early", source.pod))?,
        };
        take(&as_json(source, &line))?;
    }
    Ok(())
}

fn parameters(source: &ContainerSource, options: &LogsOptions) -> LogParams {
    // Less than a second is asked for as one: the API counts whole seconds.
    let since = options.since.map(|since| i64::try_from(since.as_secs().max(1)).unwrap_or(i64::MAX));
    LogParams {
        container: Some(source.container.clone()),
        follow: options.follow,
        previous: options.previous,
        since_seconds: since,
        timestamps: true,
        ..LogParams::default()
    }
}

/// A line as the API server gives it, with its time before it.
fn as_json(source: &ContainerSource, line: &str) -> String {
    let (timestamp, text) = line.split_once(' ').unwrap_or((line, ""));
    let mut value = json!({"pod": source.pod, "timestamp": timestamp, "line": text});
    if source.has_siblings {
        value["container"] = json!(source.container);
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_apps_containers_with_their_time() {
        let pod = |containers: &[&str]| -> Pod {
            let containers: Vec<_> = containers.iter().map(|name| json!({"name": name})).collect();
            let pod = json!({"metadata": {"name": "hello-1"}, "spec": {"containers": containers}});
            serde_json::from_value(pod).expect("a Pod")
        };
        let one = sources_of(&pod(&["app", QUEUE_PROXY]));
        let [source] = &one[..] else { panic!("one is the app's: {one:?}") };
        assert_eq!((source.container.as_str(), source.has_siblings), ("app", false));
        let line = as_json(source, "2026-11-27T18:00:00.5Z a line: with words");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(line["line"], "a line: with words");
        assert_eq!(line["timestamp"], "2026-11-27T18:00:00.5Z");
        assert!(line["container"].is_null());
        let both = sources_of(&pod(&["app", "other", QUEUE_PROXY]));
        assert!(both.iter().all(|source| source.has_siblings) && both.len() == 2);
        assert!(as_json(&both[1], "t x").contains("\"container\":\"other\""));
    }
}
