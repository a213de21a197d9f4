//! The past of revisions from before this autoscaler, as a Prometheus server has recorded it.
//!
//! A history that lives in memory alone begins anew with another owner. So where prediction is asked for and
//! little is known, a server that is configured (`prometheus-url`) is asked for fifteen days of
//! `autoscaler_revision_demand`, which autoscalers show on their pages. What it tells is taken in beside what
//! is measured here. A server that fails is asked again each minute until enough is known without it; one
//! that answers, once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use forecasting::{DemandMinutes, MinuteDemand};
use orchestration::{ControlEvent, ControlSnapshot, RevisionView};
use scaling::DemandDays;
use settings::{ClusterConfig, DemandMetric};
use tokio::sync::{Semaphore, mpsc};
use vocabulary::{RevisionName, Timestamp};

use super::prometheus::PrometheusServer;
use crate::demand_series::{DEMAND_SERIES, metric_label};

const MINUTE: u64 = 60;
/// So many days are kept.
const MINUTES_ASKED: u64 = 15 * 24 * 60;
/// Of one series a server gives no more than 11,000 points at once.
const MINUTES_AT_ONCE: u64 = 5 * 24 * 60;
/// Who has measured for so long needs no other's past to begin with.
const MINUTES_KNOWN: u64 = 60;
/// Questions that are under way at once; others wait their turn. An answer is a quarter of a megabyte.
const QUESTIONS_MAX: usize = 4;
/// Answers that wait to be taken in.
const ANSWERS_MAX: usize = 4;

/// Asks, and collects the answers.
pub(crate) struct RecordedPasts {
    answers: mpsc::Receiver<PastAnswer>,
    answering: mpsc::Sender<PastAnswer>,
    turns: Arc<Semaphore>,
    /// The revisions that were asked for.
    asked: BTreeMap<RevisionName, PastInquiry>,
}

/// How far the question for a revision is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PastInquiry {
    UnderWay { has_failed: bool },
    Failed,
    Answered,
}

/// What is asked for: the demand of a revision until this second since 1970.
#[derive(Clone, Debug)]
struct PastQuestion {
    revision: RevisionName,
    metric: DemandMetric,
    until: u64,
}

struct PastAnswer {
    question: PastQuestion,
    minutes: Result<DemandMinutes, String>,
}

impl RecordedPasts {
    pub(crate) fn new() -> Self {
        let (answering, answers) = mpsc::channel(ANSWERS_MAX);
        Self { answers, answering, turns: Arc::new(Semaphore::new(QUESTIONS_MAX)), asked: BTreeMap::new() }
    }

    /// Asks for the past of each revision of ours of which too little is known.
    pub(crate) fn ask(&mut self, control: &ControlSnapshot, config: &ClusterConfig, now: Timestamp) {
        let Some(server) = PrometheusServer::of(config) else { return };
        for view in control.views(now) {
            if let Some(question) = question_about(&view) {
                self.ask_one(&server, question);
            }
        }
    }

    fn ask_one(&mut self, server: &PrometheusServer, question: PastQuestion) {
        let has_failed = match self.asked.get(&question.revision) {
            None => false,
            Some(PastInquiry::Failed) => true,
            Some(PastInquiry::UnderWay { .. } | PastInquiry::Answered) => return,
        };
        self.asked.insert(question.revision.clone(), PastInquiry::UnderWay { has_failed });
        let (server, answering, turns) = (server.clone(), self.answering.clone(), Arc::clone(&self.turns));
        // Its end is an answer. After a panic in it none comes, and the past stays unknown, as without a
        // server.
        tokio::spawn(async move {
            let _turn = turns.acquire().await.expect("it is never closed");
            let minutes = ask_server(&server, &question).await;
            // After the loop's end no receiver takes it in any more.
            let _ = answering.send(PastAnswer { question, minutes }).await;
        });
    }

    /// Forgets that a revision was asked for: it is gone, and another one of its name has its own past.
    pub(crate) fn forget(&mut self, revision: &RevisionName) {
        self.asked.remove(revision);
    }

    /// The next past that was found. Cancel-safe: what was not taken stays in the channel.
    pub(crate) async fn answered(&mut self) -> Option<ControlEvent> {
        loop {
            let PastAnswer { question, minutes } = self.answers.recv().await?;
            if let Some(event) = self.taken(question, minutes) {
                return Some(event);
            }
        }
    }

    fn taken(
        &mut self,
        question: PastQuestion,
        minutes: Result<DemandMinutes, String>,
    ) -> Option<ControlEvent> {
        let PastQuestion { revision, metric, until: _ } = question;
        let state = if minutes.is_ok() { PastInquiry::Answered } else { PastInquiry::Failed };
        // Gone meanwhile, and forgotten.
        let inquiry = self.asked.get_mut(&revision)?;
        let before = std::mem::replace(inquiry, state);
        match minutes {
            Ok(minutes) => {
                let count = minutes.observed().count();
                tracing::info!(%revision, minutes = count, "demand of the past was read from Prometheus");
                let demand = Arc::new(DemandDays::of(metric, &minutes));
                (count > 0).then_some(ControlEvent::DemandImported { revision, demand })
            }
            Err(why) => {
                if before == (PastInquiry::UnderWay { has_failed: false }) {
                    tracing::warn!(%revision, why, "prediction begins without a past: Prometheus could not be asked for it, and is asked again each minute of the first hour");
                }
                None
            }
        }
    }
}

/// What is to be asked about a revision; `None` where enough is known, or nothing reads it.
fn question_about(view: &RevisionView<'_>) -> Option<PastQuestion> {
    let spec = view.spec();
    let has_minutes = spec.prediction.is_some_and(|asked| asked.bin == Duration::from_secs(MINUTE));
    let (days, second) = view.demand().filter(|_| has_minutes)?;
    let is_known = days.first_minute().is_some_and(|first| first + MINUTES_KNOWN <= second / MINUTE);
    (!is_known).then(|| PastQuestion {
        revision: view.facts().name.clone(),
        metric: spec.demand().metric,
        until: second,
    })
}

async fn ask_server(server: &PrometheusServer, question: &PastQuestion) -> Result<DemandMinutes, String> {
    let query = query_for(question);
    let end = question.until / MINUTE;
    let mut minutes = DemandMinutes::beginning_at(end.saturating_sub(MINUTES_ASKED));
    while minutes.next_minute() < end {
        let first = minutes.next_minute();
        let asked = first..end.min(first + MINUTES_AT_ONCE);
        // A sample is the average of the minute before it.
        let seconds = (asked.start + 1) * MINUTE..=asked.end * MINUTE;
        let samples = server.ask_range(&query, seconds, Duration::from_secs(MINUTE)).await?;
        add_samples(&mut minutes, &samples, &asked);
    }
    Ok(minutes)
}

/// Adds these minutes, of which those without a sample were not measured.
fn add_samples(minutes: &mut DemandMinutes, samples: &[(f64, f64)], asked: &Range<u64>) {
    let of_minute: BTreeMap<u64, f64> = samples
        .iter()
        .filter(|(at, value)| *at >= 1.0 && at.is_finite() && value.is_finite() && *value >= 0.0)
        .filter_map(|(at, value)| {
            let second = Duration::try_from_secs_f64(*at).ok()?.as_secs();
            Some(((second / MINUTE).checked_sub(1)?, *value))
        })
        .collect();
    for minute in asked.clone() {
        minutes.push(of_minute.get(&minute).map(|&demand| MinuteDemand { mean: demand, maximum: demand }));
    }
}

/// A server that gives targets a label `namespace` of its own shows ours as `exported_namespace`. While a
/// bucket changes hands two autoscalers show the revision.
fn query_for(question: &PastQuestion) -> String {
    let PastQuestion { revision, metric, until: _ } = question;
    let (namespace, metric) = (revision.namespace(), metric_label(*metric));
    let of_revision = format!("revision=\"{}/{}\",metric=\"{metric}\"", revision.kind(), revision.name());
    format!(
        "max({DEMAND_SERIES}{{exported_namespace=\"{namespace}\",{of_revision}}} or {DEMAND_SERIES}{{exported_namespace=\"\",namespace=\"{namespace}\",{of_revision}}})"
    )
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The second at which a whole minute begins.
    const NOW: u64 = 28_333_334 * MINUTE;

    fn question() -> PastQuestion {
        let revision = RevisionName::parse("default/service/hello").expect("a name");
        PastQuestion { revision, metric: DemandMetric::Rps, until: NOW + 12 }
    }

    /// A server that gives each question this answer, and the questions that it was asked.
    async fn server(status: u16, answer: String) -> (PrometheusServer, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&asked);
        // It ends with its test, which fails without its answers.
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 8192];
                let length = stream.read(&mut request).await.unwrap_or(0);
                kept.lock().push(String::from_utf8_lossy(&request[..length]).into_owned());
                let length = answer.len();
                let head =
                    format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        (PrometheusServer { url, bearer_token_file: None, ca_file: None }, asked)
    }

    fn matrix(samples: &str) -> String {
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{samples}]}}}}"#)
    }

    #[tokio::test]
    async fn fifteen_days_are_asked_for_in_three_questions_and_minutes_without_a_sample_are_missing() {
        let samples = [(NOW - 120, "4"), (NOW - 60, "NaN"), (NOW, "2.5")]
            .map(|(second, value)| format!("[{second},\"{value}\"]"));
        let series = format!(r#"{{"metric":{{}},"values":[{}]}}"#, samples.join(","));
        let (server, asked) = server(200, matrix(&series)).await;
        let minutes = ask_server(&server, &question()).await.expect("it answers");
        let observed: Vec<u64> = minutes.observed().map(|(minute, _)| minute).collect();
        assert_eq!(observed, [NOW / MINUTE - 3, NOW / MINUTE - 1]);
        assert_eq!(minutes.next_minute(), NOW / MINUTE);
        let asked = asked.lock();
        assert_eq!(asked.len(), 3);
        let last = format!("&start={}&end={NOW}&step=60 ", NOW - 7199 * MINUTE);
        assert!(asked[2].starts_with("GET /api/v1/query_range?query=max%28autoscaler_revision_demand"));
        assert!(asked[2].contains(&last), "{last} is not in {}", asked[2]);
    }

    #[tokio::test]
    async fn a_server_that_fails_is_asked_again_and_one_that_answers_is_not() {
        let (failing, asked) = server(503, "no".to_owned()).await;
        let (answering, _) = server(200, matrix("")).await;
        let mut pasts = RecordedPasts::new();
        for _ in 0..2 {
            pasts.ask_one(&failing, question());
            let answer = pasts.answers.recv().await.expect("it is open");
            assert!(answer.minutes.as_ref().is_err_and(|why| why.contains("503")));
            assert!(pasts.taken(answer.question, answer.minutes).is_none());
        }
        assert_eq!(asked.lock().len(), 2);
        pasts.ask_one(&answering, question());
        let answer = pasts.answers.recv().await.expect("it is open");
        assert!(pasts.taken(answer.question, answer.minutes).is_none(), "nothing was recorded");
        assert_eq!(pasts.asked.values().copied().collect::<Vec<_>>(), [PastInquiry::Answered]);
        pasts.ask_one(&answering, question());
        assert!(pasts.answers.try_recv().is_err());
    }

    #[test]
    fn a_query_finds_the_series_of_the_revision_under_either_label() {
        let expected = r#"max(autoscaler_revision_demand{exported_namespace="default",revision="service/hello",metric="rps"} or autoscaler_revision_demand{exported_namespace="",namespace="default",revision="service/hello",metric="rps"})"#;
        assert_eq!(query_for(&question()), expected);
    }
}
