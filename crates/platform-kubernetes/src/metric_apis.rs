//! Which program serves metrics of pods and other metrics on a cluster? The API server, behind which others
//! serve three APIs.
//!
//! The usage of pods is asked for a namespace as a whole, once a period for any number of workloads; every
//! other metric once for each path. Which pods there are, since when they run and what they request is
//! known from the watch, and is read after the answers have come, as Kubernetes' own autoscaler does.

mod answer_cache;
mod paths;
mod records;

use std::sync::Arc;
use std::time::Duration;

use cluster::resources::selector::Selector;
use cluster::{Failure, Moment, NamedSample, TargetRecord};
use futures_util::future::join_all;
use kube::Client;
use platform::{MetricAnswer, MetricFuture, MetricQuestion, MetricReply, MetricSource};
use runtime::Clock;
use scaling::hpa::{ConditionReason, MetricFailure, MetricSamples, NoProposal};
use serde::de::DeserializeOwned;
use settings::hpa::{MetricIdentifier, MetricSpec, ObjectReference, ResourceName};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use vocabulary::{RevisionName, format_duration};

use self::answer_cache::{AnswerCache, SharedAnswer};
use self::records::{
    ApiGroup, ApiResourceList, ExternalMetricValueList, MetricValueList, ObjectMetricValue, PodMetrics,
    PodMetricsList,
};
use crate::clocks;
use crate::cluster_inbox::ClusterInbox;
use crate::requests::within_time;

/// A server that does not answer within this time is given up for this round, which has a little longer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Requests that are under way at once; others wait their turn.
const REQUESTS_MAX: usize = 16;
/// Kinds get no new plural while a cluster runs; a kind that was not there may come.
const KINDS_LAST: Duration = Duration::from_secs(300);
/// Where an answer does not say over how long it was measured, as Kubernetes assumes.
const WINDOW_DEFAULT: Duration = Duration::from_secs(60);

/// The metrics APIs of a cluster.
#[derive(Debug)]
pub(crate) struct MetricApis {
    server: Server,
    inbox: Arc<ClusterInbox>,
    pods: AnswerCache<PodMetricsList>,
    values: AnswerCache<MetricValueList>,
    external: AnswerCache<ExternalMetricValueList>,
    groups: AnswerCache<ApiGroup>,
    kinds: AnswerCache<ApiResourceList>,
}

/// The API server as a source of metrics, with a limit of questions at once.
struct Server {
    client: Client,
    clock: Clock,
    turns: Semaphore,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Server").finish_non_exhaustive()
    }
}

/// The question about one metric, and its answer.
struct ApiQuestion {
    query: Option<String>,
    answer: Result<ApiAnswer, Arc<str>>,
}

/// Of which kind it is depends on the metric.
enum ApiAnswer {
    Pods(Arc<PodMetricsList>),
    Values(Arc<MetricValueList>),
    External(Arc<ExternalMetricValueList>),
}

impl MetricSource for MetricApis {
    fn ask(&self, question: MetricQuestion) -> MetricFuture<'_> {
        Box::pin(self.answer(question))
    }
}

impl MetricApis {
    pub(crate) fn new(client: Client, clock: Clock, inbox: Arc<ClusterInbox>) -> Self {
        Self {
            server: Server { client, clock, turns: Semaphore::new(REQUESTS_MAX) },
            inbox,
            pods: AnswerCache::new(clock),
            values: AnswerCache::new(clock),
            external: AnswerCache::new(clock),
            groups: AnswerCache::new(clock),
            kinds: AnswerCache::new(clock),
        }
    }

    async fn answer(&self, question: MetricQuestion) -> MetricReply {
        let Some(target) = self.target(&question.revision).await else { return MetricReply::default() };
        let metrics = &question.settings.spec.metrics;
        let round = Round {
            apis: self,
            namespace: question.revision.namespace(),
            pods: &target.selector,
            period: question.settings.sync_period,
        };
        let wanted = question.metrics.iter().filter_map(|&index| Some((index, metrics.get(index)?)));
        let asked = join_all(wanted.map(async |(index, metric)| {
            // One metric may need several answers, and wait for its turn before each: no other waits for it.
            let asked = timeout(question.within, round.ask(metric)).await;
            let late = |_| {
                let words = format!("no answer within {}", format_duration(question.within));
                ApiQuestion {
                    query: round.known_path(metric).as_deref().map(shown_query),
                    answer: Err(words.into()),
                }
            };
            (index, metric, asked.unwrap_or_else(late))
        }))
        .await;
        // Asked again: pods came and went while the answers were on their way, and samples are counted
        // against those that there are now.
        let Some(target) = self.target(&question.revision).await else { return MetricReply::default() };
        let moment = clocks::moment(self.server.clock);
        let answers = asked.into_iter().map(|(index, metric, asked)| {
            let samples = asked.answer.and_then(|answered| {
                samples_of(metric, &answered, &target, moment).map_err(Arc::<str>::from)
            });
            let (samples, shown) = match samples {
                Ok((samples, shown)) => (samples, shown),
                Err(words) => {
                    let shown = words.to_string();
                    let reason = ConditionReason::of_unmeasured(metric);
                    (MetricSamples::Failed(MetricFailure { reason, why: NoProposal::Refused }), shown)
                }
            };
            MetricAnswer { metric: index, samples, query: asked.query, shown }
        });
        MetricReply { answers: answers.collect(), target: Some(target.pods(moment)) }
    }

    /// As the platform's task has it.
    async fn target(&self, revision: &RevisionName) -> Option<TargetRecord> {
        let (reply, answer) = oneshot::channel();
        self.inbox.update(|contents| contents.target_queries.push((revision.clone(), reply)));
        answer.await.ok().flatten()
    }
}

/// The questions of one sync of one revision.
struct Round<'a> {
    apis: &'a MetricApis,
    namespace: &'a str,
    pods: &'a Selector,
    period: Duration,
}

impl Round<'_> {
    /// The path at which a metric is asked for, where that takes no other question first.
    fn known_path(&self, metric: &MetricSpec) -> Option<String> {
        match metric {
            MetricSpec::Resource { .. } => Some(paths::pod_metrics(self.namespace)),
            MetricSpec::External { metric, .. } => Some(paths::external(self.namespace, named(metric))),
            MetricSpec::Pods { .. } | MetricSpec::Object { .. } | MetricSpec::Own { .. } => None,
        }
    }

    async fn ask(&self, metric: &MetricSpec) -> ApiQuestion {
        let (apis, period) = (self.apis, self.period);
        let path = match metric {
            MetricSpec::Resource { .. } => Ok(paths::pod_metrics(self.namespace)),
            MetricSpec::External { metric, .. } => Ok(paths::external(self.namespace, named(metric))),
            MetricSpec::Pods { metric, .. } => self
                .custom_version()
                .await
                .map(|version| paths::of_pods(version, self.namespace, named(metric), self.pods)),
            MetricSpec::Object { described, metric, .. } => self.object_path(described, metric).await,
            MetricSpec::Own { .. } => Err("the metric is measured by ebb itself".into()),
        };
        let path = match path {
            Ok(path) => path,
            Err(words) => return ApiQuestion { query: None, answer: Err(words) },
        };
        let server = &apis.server;
        let answer = match metric {
            MetricSpec::Resource { .. } => {
                apis.pods.get(&path, period, server.usage_of_pods(&path)).await.map(ApiAnswer::Pods)
            }
            MetricSpec::External { .. } => {
                apis.external.get(&path, period, server.get(&path)).await.map(ApiAnswer::External)
            }
            MetricSpec::Pods { .. } | MetricSpec::Object { .. } | MetricSpec::Own { .. } => {
                apis.values.get(&path, period, server.get(&path)).await.map(ApiAnswer::Values)
            }
        };
        ApiQuestion { query: Some(shown_query(&path)), answer }
    }

    /// Asked anew every period, for an adapter may be exchanged.
    async fn custom_version(&self) -> Result<&'static str, Arc<str>> {
        let path = paths::custom_group();
        let group: SharedAnswer<ApiGroup> =
            self.apis.groups.get(&path, self.period, self.apis.server.get(&path)).await;
        let group = group.map_err(|words| format!("{path}: {words}"))?;
        let serves = |version: &&&str| group.versions.iter().any(|one| one.version == **version);
        paths::CUSTOM_VERSIONS.iter().find(serves).copied().ok_or_else(|| {
            let versions: Vec<&str> = group.versions.iter().map(|one| one.version.as_str()).collect();
            format!("{path} serves {} and none of {}", versions.join(", "), paths::CUSTOM_VERSIONS.join(", "))
                .into()
        })
    }

    async fn object_path(
        &self,
        described: &ObjectReference,
        metric: &MetricIdentifier,
    ) -> Result<String, Arc<str>> {
        let path = paths::resources(&described.api_version);
        let kinds = self.apis.kinds.get(&path, KINDS_LAST, self.apis.server.get(&path)).await;
        let kinds = kinds.map_err(|words| format!("{path}: {words}"))?;
        let plural = kinds.plural_of(&described.kind);
        let plural = plural.ok_or_else(|| format!("{path} has no kind {}", described.kind))?;
        let resource = paths::qualified(plural, &described.api_version);
        let version = self.custom_version().await?;
        Ok(paths::of_object(version, self.namespace, named(metric), (&resource, &described.name)))
    }
}

/// A question as people read it.
fn shown_query(path: &str) -> String {
    format!("GET {path}")
}

impl Server {
    /// What the pods of a namespace use. The list is there as soon as a program serves the API.
    async fn usage_of_pods(&self, path: &str) -> Result<PodMetricsList, Failure> {
        self.get(path).await.map_err(|failure| match failure {
            Failure::Gone(_) => Failure::Gone("no metrics server: 404".to_owned()),
            other @ (Failure::NotOwner
            | Failure::Conflict
            | Failure::Refused(_)
            | Failure::Forbidden(_)
            | Failure::Passing { .. }) => other,
        })
    }

    async fn get<Record: DeserializeOwned>(&self, path: &str) -> Result<Record, Failure> {
        // Many revisions are due at the same moment. The API server has others to answer, and would begin to
        // refuse.
        let _turn = self.turns.acquire().await.expect("it is never closed");
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| Failure::Refused(format!("{path} is no path: {error}")))?;
        within_time(PATIENCE, self.client.request(request)).await
    }
}

fn named(metric: &MetricIdentifier) -> (&str, &settings::hpa::LabelSelector) {
    (&metric.name, &metric.selector)
}

/// The samples of a target in an answer, as the answer was written.
pub(crate) fn read_answer(
    metric: &MetricSpec,
    answer: &str,
    target: &TargetRecord,
    moment: Moment,
) -> Result<MetricSamples, String> {
    let answered = match metric {
        MetricSpec::Resource { .. } => serde_json::from_str(answer).map(Arc::new).map(ApiAnswer::Pods),
        MetricSpec::External { .. } => serde_json::from_str(answer).map(Arc::new).map(ApiAnswer::External),
        MetricSpec::Pods { .. } | MetricSpec::Object { .. } | MetricSpec::Own { .. } => {
            serde_json::from_str(answer).map(Arc::new).map(ApiAnswer::Values)
        }
    };
    let answered = answered.map_err(|error| error.to_string())?;
    samples_of(metric, &answered, target, moment).map(|(samples, _)| samples)
}

/// The samples of a target in an answer, and a word on them for people.
fn samples_of(
    metric: &MetricSpec,
    answered: &ApiAnswer,
    target: &TargetRecord,
    moment: Moment,
) -> Result<(MetricSamples, String), String> {
    match answered {
        ApiAnswer::Pods(list) => per_pod(&usage_of_pods(metric, list, target)?, target, moment),
        ApiAnswer::Values(list) if metric.is_per_pod() => {
            let samples = list.items.iter().map(|item| {
                let (pod, at) = (item.described.name.as_str(), item.timestamp);
                Ok(NamedSample { pod, value: item.value()?, at, window: WINDOW_DEFAULT })
            });
            let samples = samples.collect::<Result<Vec<_>, String>>()?;
            per_pod(&samples, target, moment)
        }
        ApiAnswer::Values(list) => {
            series(list.items.iter().map(ObjectMetricValue::value).collect::<Result<_, _>>()?)
        }
        ApiAnswer::External(list) => series(list.values()?),
    }
}

/// Of all pods of the namespace those that are the target's, or were a moment ago.
fn usage_of_pods<'a>(
    metric: &MetricSpec,
    list: &'a PodMetricsList,
    target: &TargetRecord,
) -> Result<Vec<NamedSample<'a>>, String> {
    let MetricSpec::Resource { resource, container, .. } = metric else { return Ok(Vec::new()) };
    let is_meant = |pod: &&PodMetrics| {
        target.pods.contains_key(&pod.metadata.name) || target.selector.selects(&pod.metadata.labels)
    };
    let mut samples = Vec::new();
    for pod in list.items.iter().filter(is_meant) {
        let Some(value) = pod.usage(resource, container.as_deref()) else { continue };
        let window = pod.window()?;
        samples.push(NamedSample { pod: &pod.metadata.name, value, at: pod.timestamp, window });
    }
    if samples.is_empty() {
        return Err(no_usage(resource, list, target));
    }
    Ok(samples)
}

fn no_usage(resource: &ResourceName, list: &PodMetricsList, target: &TargetRecord) -> String {
    let (all, own) = (list.items.len(), target.pods.len());
    format!(
        "the metrics API says nothing of the {} of these {own} pods, and knows {all} in the namespace",
        resource.name()
    )
}

fn per_pod(
    samples: &[NamedSample<'_>],
    target: &TargetRecord,
    moment: Moment,
) -> Result<(MetricSamples, String), String> {
    if samples.is_empty() {
        return Err("the list that was answered is empty".to_owned());
    }
    let shown = format!("{} pods", samples.len());
    Ok((MetricSamples::PerPod(target.samples(samples, moment)), shown))
}

fn series(values: Vec<vocabulary::MilliValue>) -> Result<(MetricSamples, String), String> {
    if values.is_empty() {
        return Err("the list that was answered is empty".to_owned());
    }
    let shown: Vec<String> = values.iter().map(ToString::to_string).collect();
    Ok((MetricSamples::Series(values), shown.join(" + ")))
}

#[cfg(test)]
mod tests;
