//! Which source is asked for metrics that pods do not report themselves?
//!
//! A Prometheus server, if one is configured, for numbers of objects and from outside; the platform for
//! everything else, if it can be asked. Each round of questions is a task of its own, so that nothing else
//! waits for a slow server, and each metric of it fails alone: all are asked at once, and what is late is
//! left out. The round's deadline (in the multiscaler) makes good what is lost with its task. What was asked
//! and answered last is kept for people.

mod prometheus;
mod query;
mod recorded_pasts;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use orchestration::ControlEvent;
use platform::{MetricAnswer, MetricQuestion, MetricReply, MetricSource};
use scaling::hpa::{ConditionReason, MetricAnswers, MetricFailure, MetricSamples, NoProposal};
use settings::ClusterConfig;
use settings::hpa::{HpaScaling, MetricSpec};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use vocabulary::{RevisionName, SharedMap, format_duration};

use self::prometheus::PrometheusServer;
use self::query::query_of;
pub(crate) use self::recorded_pasts::RecordedPasts;

/// Rounds whose answers wait to be taken in: as many as the loop takes in one turn.
const ROUNDS_WAITING_MAX: usize = 128;
/// Questions that are under way at once; others wait their turn.
const QUESTIONS_MAX: usize = 32;

/// A sync waits 10 s for its round, and would then take every metric of it for failed: so none may keep the
/// others waiting so long.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_secs(9);
/// What a platform that keeps to this time needs to say so.
const PLATFORM_SLACK: Duration = Duration::from_millis(500);

/// Asks, and collects the answers.
pub(crate) struct MetricSources {
    platform: Option<Arc<dyn MetricSource>>,
    answers: mpsc::Receiver<QueryRound>,
    answering: mpsc::Sender<QueryRound>,
    questions: Arc<Semaphore>,
    last: SharedMap<RevisionName, Arc<[AskedMetric]>>,
}

/// What came of one round.
struct QueryRound {
    revision: RevisionName,
    event: ControlEvent,
    asked: Arc<[AskedMetric]>,
}

/// One metric that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedMetric {
    pub(crate) metric: String,
    /// How it was asked for; `None` if there was no way to ask.
    pub(crate) query: Option<String>,
    /// A number, or why there is none.
    pub(crate) answer: String,
}

impl MetricSources {
    pub(crate) fn new(platform: Option<Arc<dyn MetricSource>>) -> Self {
        let (answering, answers) = mpsc::channel(ROUNDS_WAITING_MAX);
        let questions = Arc::new(Semaphore::new(QUESTIONS_MAX));
        Self { platform, answers, answering, questions, last: SharedMap::default() }
    }

    /// Begins a round of questions; what comes of it is an event.
    pub(crate) fn ask(&self, question: MetricQuestion, round: u64, config: &ClusterConfig) {
        let source = RevisionSource {
            server: PrometheusServer::of(config),
            namespace: question.revision.namespace().to_owned(),
            namespace_label: config.prometheus_namespace_label.clone(),
            questions: Arc::clone(&self.questions),
            platform: self.platform.clone(),
        };
        let answering = self.answering.clone();
        // At most one for each revision: the next round begins when this one was answered or its time was up.
        // A panic is such an end too: no answer comes, and its time is up.
        tokio::spawn(async move {
            let reply = source.ask_all(&question).await;
            let MetricQuestion { revision, settings, .. } = question;
            let asked = reply.answers.iter().map(|answer| AskedMetric::of(answer, &settings)).collect();
            let samples = reply.answers.into_iter().map(|answer| (answer.metric, answer.samples)).collect();
            let answers = MetricAnswers { samples, target: reply.target };
            let event = ControlEvent::MetricsAnswered { revision: revision.clone(), round, answers };
            // After the loop's end no receiver takes it in any more.
            let _ = answering.send(QueryRound { revision, event, asked }).await;
        });
    }

    /// The next answers. Cancel-safe: what was not taken stays in the channel.
    pub(crate) async fn answered(&mut self) -> Option<ControlEvent> {
        let QueryRound { revision, event, asked } = self.answers.recv().await?;
        self.last.insert(revision, asked);
        Some(event)
    }

    /// What was asked last, for each revision of which something was.
    pub(crate) fn asked(&self) -> &SharedMap<RevisionName, Arc<[AskedMetric]>> {
        &self.last
    }

    pub(crate) fn forget(&mut self, revision: &RevisionName) {
        self.last.remove(revision);
    }
}

impl AskedMetric {
    fn of(answer: &MetricAnswer, settings: &HpaScaling) -> Self {
        let metric = settings.spec.metrics.get(answer.metric).map(MetricSpec::name).unwrap_or_default();
        Self { metric: metric.to_owned(), query: answer.query.clone(), answer: answer.shown.clone() }
    }
}

/// Where one revision's metrics come from.
struct RevisionSource {
    server: Option<PrometheusServer>,
    namespace: String,
    namespace_label: String,
    questions: Arc<Semaphore>,
    platform: Option<Arc<dyn MetricSource>>,
}

impl RevisionSource {
    /// Asks for each metric at its place, for all of them at once.
    async fn ask_all(&self, question: &MetricQuestion) -> MetricReply {
        let all = &question.settings.spec.metrics;
        let wanted = question.metrics.iter().filter_map(|&index| Some((index, all.get(index)?)));
        let (of_platform, of_server): (Vec<_>, Vec<_>) =
            wanted.partition(|(_, metric)| self.platform_is_asked_for(metric));
        let from_platform = async {
            let Some(platform) = &self.platform else { return MetricReply::default() };
            let metrics = of_platform.iter().map(|(index, _)| *index).collect();
            let asking = platform.ask(MetricQuestion { metrics, ..question.clone() });
            // Late as a whole, it says nothing of its metrics, which the sync takes for failed.
            timeout(question.within + PLATFORM_SLACK, asking).await.unwrap_or_default()
        };
        let from_server =
            join_all(of_server.iter().map(|(index, metric)| self.ask(*index, metric, question.within)));
        let (mut reply, from_server) = tokio::join!(from_platform, from_server);
        reply.answers.extend(from_server);
        reply.answers.sort_by_key(|answer| answer.metric);
        reply
    }

    /// A server that is configured is asked for what it may know; the platform for what only it can, and
    /// where there is no server.
    fn platform_is_asked_for(&self, metric: &MetricSpec) -> bool {
        match metric {
            MetricSpec::Resource { .. } | MetricSpec::Pods { .. } | MetricSpec::Own { .. } => {
                self.platform.is_some()
            }
            MetricSpec::Object { .. } | MetricSpec::External { .. } => {
                self.platform.is_some() && self.server.is_none()
            }
        }
    }

    async fn ask(&self, index: usize, metric: &MetricSpec, within: Duration) -> MetricAnswer {
        let query = query_of(metric, &self.namespace, &self.namespace_label);
        let answer = match (&self.server, &query) {
            (_, Err(why)) => Err(why.clone()),
            (None, Ok(_)) => {
                Err("no server is asked: set prometheus-url in ConfigMap config-autoscaler".to_owned())
            }
            (Some(server), Ok(query)) => {
                let asking = async {
                    let _turn = self.questions.acquire().await.expect("it is never closed");
                    server.ask(query).await
                };
                let late = |_| Err(format!("no answer within {}", format_duration(within)));
                timeout(within, asking).await.unwrap_or_else(late)
            }
        };
        let shown = match &answer {
            Ok(value) => value.to_string(),
            Err(why) => why.clone(),
        };
        let reason = ConditionReason::of_unmeasured(metric);
        let refused = MetricSamples::Failed(MetricFailure { reason, why: NoProposal::Refused });
        let samples = answer.map_or(refused, |value| MetricSamples::Series(vec![value]));
        MetricAnswer { metric: index, samples, query: query.ok(), shown }
    }
}

#[cfg(test)]
mod tests;
