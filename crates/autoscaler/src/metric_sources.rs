//! Who is asked for metrics that pods do not report themselves?
//!
//! A Prometheus server, if one is configured, for numbers of objects and from outside; the platform for
//! everything else, if it can be asked. Each round of questions is a task of its own, so that nothing else
//! waits for a slow server; the round's deadline (in the multiscaler) makes good what is lost. What was asked
//! and answered last is kept for people.

mod prometheus;
mod query;
mod tls;

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::ControlEvent;
use platform::{MetricAnswer, MetricQuestion, MetricReply, MetricSource};
use scaling::ClusterConfig;
use scaling::hpa::{HpaScaling, MetricAnswers, MetricFailure, MetricSamples, MetricSpec};
use tokio::sync::{Semaphore, mpsc};
use vocabulary::RevisionName;

use self::prometheus::PrometheusServer;
use self::query::query_of;

/// Rounds whose answers wait to be taken in: as many as the loop takes in one turn.
const ROUNDS_WAITING_MAX: usize = 128;
/// Questions that are under way at once; others wait their turn.
const QUESTIONS_MAX: usize = 32;

/// Asks, and collects the answers.
pub(crate) struct MetricSources {
    platform: Option<Arc<dyn MetricSource>>,
    answers: mpsc::Receiver<QueryRound>,
    answering: mpsc::Sender<QueryRound>,
    questions: Arc<Semaphore>,
    last: BTreeMap<RevisionName, Vec<AskedMetric>>,
}

/// What came of one round.
struct QueryRound {
    revision: RevisionName,
    event: ControlEvent,
    asked: Vec<AskedMetric>,
}

/// One metric that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedMetric {
    /// Its name.
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
        Self { platform, answers, answering, questions, last: BTreeMap::new() }
    }

    /// Begins a round of questions; what comes of it is an event.
    pub(crate) fn ask(
        &self,
        revision: RevisionName,
        round: u64,
        settings: Arc<HpaScaling>,
        config: &ClusterConfig,
    ) {
        let source = RevisionSource {
            server: PrometheusServer::of(config),
            namespace: revision.namespace().to_owned(),
            namespace_label: config.prometheus_namespace_label.clone(),
            questions: Arc::clone(&self.questions),
            platform: self.platform.clone(),
        };
        let answering = self.answering.clone();
        // At most one for each revision: the next round begins when this one was answered or its time was up.
        // A panic is such an end too: nobody answers, and its time is up.
        tokio::spawn(async move {
            let reply = source.ask_all(&revision, &settings).await;
            let asked = reply.answers.iter().map(|answer| AskedMetric::of(answer, &settings)).collect();
            let samples = reply.answers.into_iter().map(|answer| (answer.metric, answer.samples)).collect();
            let answers = MetricAnswers { samples, target: reply.target };
            let event = ControlEvent::MetricsAnswered { revision: revision.clone(), round, answers };
            // Nobody takes it in any more when the loop has ended.
            let _ = answering.send(QueryRound { revision, event, asked }).await;
        });
    }

    /// The next answers. Cancel-safe: what was not taken stays in the channel.
    pub(crate) async fn answered(&mut self) -> Option<ControlEvent> {
        let QueryRound { revision, event, asked } = self.answers.recv().await?;
        self.last.insert(revision, asked);
        Some(event)
    }

    /// What was asked for a revision last.
    pub(crate) fn asked(&self, revision: &RevisionName) -> &[AskedMetric] {
        self.last.get(revision).map_or(&[], Vec::as_slice)
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
    /// Asks each metric at its place, both sides at once.
    async fn ask_all(&self, revision: &RevisionName, settings: &Arc<HpaScaling>) -> MetricReply {
        let metrics = settings.spec.metrics.iter().enumerate();
        let wanted = metrics.filter(|(_, metric)| settings.is_asked_for(metric));
        let (of_platform, of_server): (Vec<_>, Vec<_>) =
            wanted.partition(|(_, metric)| self.platform_is_asked_for(metric));
        let from_platform = async {
            let Some(platform) = &self.platform else { return MetricReply::default() };
            let question = MetricQuestion {
                revision: revision.clone(),
                settings: Arc::clone(settings),
                metrics: of_platform.iter().map(|(index, _)| *index).collect(),
            };
            platform.ask(question).await
        };
        let from_server = async {
            let mut answers = Vec::new();
            for (index, metric) in of_server {
                answers.push(self.ask(index, metric).await);
            }
            answers
        };
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

    async fn ask(&self, index: usize, metric: &MetricSpec) -> MetricAnswer {
        let query = query_of(metric, &self.namespace, &self.namespace_label);
        let answer = match (&self.server, &query) {
            (_, Err(why)) => Err(why.clone()),
            (None, Ok(_)) => {
                Err("nobody is asked: set prometheus-url in ConfigMap config-autoscaler".to_owned())
            }
            (Some(server), Ok(query)) => {
                let _turn = self.questions.acquire().await.expect("it is never closed");
                server.ask(query).await
            }
        };
        let shown = match &answer {
            Ok(value) => value.to_string(),
            Err(why) => why.clone(),
        };
        let samples = match answer {
            Ok(value) => MetricSamples::Series(vec![value]),
            Err(why) => {
                let reason = metric.failure_reason();
                MetricSamples::Failed(MetricFailure { reason, words: why.into() })
            }
        };
        MetricAnswer { metric: index, samples, query: query.ok(), shown }
    }
}

#[cfg(test)]
mod tests;
