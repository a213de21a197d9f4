//! Who is asked for metrics that pods do not report themselves?
//!
//! A Prometheus server, if one is configured. Each round of questions is a task of its own, so that nothing
//! else waits for a slow server; the round's deadline (in the multiscaler) makes good what is lost. What was
//! asked and answered last is kept for people.

mod prometheus;
mod query;

use std::collections::BTreeMap;
use std::sync::Arc;

use orchestration::Event;
use scaling::ClusterConfig;
use scaling::hpa::{ConditionReason, HpaScaling, MetricFailure, MetricSamples, MetricSpec};
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
    answers: mpsc::Receiver<Round>,
    answering: mpsc::Sender<Round>,
    questions: Arc<Semaphore>,
    last: BTreeMap<RevisionName, Vec<AskedMetric>>,
}

/// What came of one round.
struct Round {
    revision: RevisionName,
    event: Event,
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
    pub(crate) fn new() -> Self {
        let (answering, answers) = mpsc::channel(ROUNDS_WAITING_MAX);
        Self { answers, answering, questions: Arc::new(Semaphore::new(QUESTIONS_MAX)), last: BTreeMap::new() }
    }

    /// Begins a round of questions; what comes of it is an event.
    pub(crate) fn ask(
        &self,
        revision: RevisionName,
        round: u64,
        settings: Arc<HpaScaling>,
        config: &ClusterConfig,
    ) {
        let server = config.prometheus_url.clone().map(|url| PrometheusServer {
            url,
            bearer_token_file: config.prometheus_bearer_token_file.clone(),
        });
        let source = Source {
            server,
            namespace: revision.namespace().to_owned(),
            namespace_label: config.prometheus_namespace_label.clone(),
            questions: Arc::clone(&self.questions),
        };
        let answering = self.answering.clone();
        // At most one for each revision: the next round begins when this one was answered or its time was up.
        tokio::spawn(async move {
            let (mut answers, mut asked) = (Vec::new(), Vec::new());
            for (index, metric) in settings.spec.metrics.iter().enumerate() {
                if metric.is_asked_for() {
                    let (samples, said) = source.ask(metric).await;
                    answers.push((index, samples));
                    asked.push(said);
                }
            }
            let event = Event::MetricsAnswered { revision: revision.clone(), round, answers };
            // Nobody takes it in any more when the loop has ended.
            let _ = answering.send(Round { revision, event, asked }).await;
        });
    }

    /// The next answers. Cancel-safe: what was not taken stays in the channel.
    pub(crate) async fn answered(&mut self) -> Option<Event> {
        let Round { revision, event, asked } = self.answers.recv().await?;
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

/// Where one revision's metrics come from.
struct Source {
    server: Option<PrometheusServer>,
    namespace: String,
    namespace_label: String,
    questions: Arc<Semaphore>,
}

impl Source {
    async fn ask(&self, metric: &MetricSpec) -> (MetricSamples, AskedMetric) {
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
        let said = AskedMetric {
            metric: metric.name().to_owned(),
            query: query.ok(),
            answer: match &answer {
                Ok(value) => value.to_string(),
                Err(why) => why.clone(),
            },
        };
        let samples = match answer {
            Ok(value) => MetricSamples::Series(vec![value]),
            Err(why) => MetricSamples::Failed(MetricFailure { reason: reason_of(metric), words: why.into() }),
        };
        (samples, said)
    }
}

fn reason_of(metric: &MetricSpec) -> ConditionReason {
    match metric {
        MetricSpec::Pods { .. } => ConditionReason::FailedGetPodsMetric,
        MetricSpec::Object { .. } => ConditionReason::FailedGetObjectMetric,
        MetricSpec::External { .. } => ConditionReason::FailedGetExternalMetric,
        MetricSpec::Resource { .. } | MetricSpec::Own { .. } => ConditionReason::InvalidMetricSourceType,
    }
}

#[cfg(test)]
mod tests;
