//! The Grafana board before Debian's Prometheus: every question that it asks has an answer, on a loaded `ebb
//! up`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tests::ports::unused_address;
use tests::prometheus::{Prometheus, board, filled_in, questions};
use tests::traces::config_map;
use tests::{ConfigMap, Ebb, Service, eventually};

use crate::stopwatch::Stopwatch;

/// Scrapes, and two of them in each range.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the board is asked, with more than a second of load each time.
const ROUNDS: usize = 40;

/// What has no series before it happens for the first time, which a good day does not bring.
const EMPTY_ON_A_GOOD_DAY: [&str; 2] = [
    "sum by (peer) (rate(autoscaler_links_lost_total[$__rate_interval]))",
    "sum(rate(autoscaler_pod_releases_total{proof=\"out_of_time\"}[$__rate_interval]))",
];

/// As Grafana fills it in, with all namespaces and revisions.
fn for_all(question: &str) -> String {
    filled_in(question, ".*", ".*")
}

/// Everything that a board shows happens here: a start from zero, a panic, refusals, two revisions, traces
/// that are not taken.
async fn loaded_ebb(folder: &Path) -> Ebb {
    let file = folder.join("observability.yaml");
    std::fs::write(&file, config_map(unused_address(), "1")).expect("the folder can be written");
    let cold = Service::new("cold")
        .scaling("initial-scale", "0")
        .spec("containerConcurrency: 2")
        .scaling("max-scale", "3");
    let warm = Service::new("warm").scaling("min-scale", "1").scaling("max-scale", "1");
    let config = ConfigMap::short().set("allow-zero-initial-scale", "true");
    Ebb::up_with(&[cold, warm], &config, &["-f", file.to_str().expect("UTF-8")]).await
}

#[tokio::test]
async fn every_question_of_the_grafana_board_has_an_answer() {
    let _timed = Stopwatch::of("every question of the grafana board has an answer");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = loaded_ebb(folder.path()).await;
    let prometheus = Prometheus::start(folder.path(), ebb.api);
    ebb.until_pods("warm", 1).await;
    let board = board();
    let mut open: BTreeMap<String, String> =
        questions(&board).into_iter().map(|(title, question)| (question, title)).collect();
    assert!(open.len() > 40, "the board asks {} questions", open.len());
    for question in EMPTY_ON_A_GOOD_DAY {
        assert!(open.remove(question).is_some(), "the board does not ask {question}");
    }
    // What has an answer once had data; a board shows ranges of time, not one moment.
    for _ in 0..ROUNDS {
        if open.is_empty() {
            break;
        }
        let (cold, warm) = (ebb.load("cold").path("/?sleep=50"), ebb.load("warm"));
        let unknown = ebb.load("unknown");
        let load = async {
            tokio::join!(cold.burst(20), warm.closed_loop(4, Duration::from_secs(1)), unknown.burst(5))
        };
        let (cold, warm, _) = load.await;
        cold.assert_none_lost();
        warm.assert_all_answered();
        let mut unanswered = BTreeMap::new();
        for (question, title) in open {
            let answer = prometheus.ask(&for_all(&question)).await;
            // A question that Prometheus does not understand is never answered.
            if answer.is_ok_and(|data| data["result"].as_array().is_some_and(|series| !series.is_empty())) {
                continue;
            }
            unanswered.insert(question, title);
        }
        open = unanswered;
    }
    assert!(open.is_empty(), "no answer to {open:#?}");
    // And not only zeros where something happened.
    for (question, least) in [
        ("sum(rate(activator_responses_total[1m]))", 0.1),
        ("sum(rate(activator_refused_requests_total{reason=\"no-such-revision\"}[1m]))", 0.01),
        ("sum(rate(activator_dropped_spans_total[1m]))", 0.01),
        ("max(max_over_time(autoscaler_ready_pods[1m]))", 1.0),
    ] {
        eventually(question, PATIENCE, || async {
            let data = prometheus.ask(question).await?;
            let value = data["result"][0]["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
            if value.is_some_and(|value| value >= least) { Ok(()) } else { Err(data.to_string()) }
        })
        .await;
    }
}

#[tokio::test]
async fn the_choices_of_the_grafana_board_are_labels_that_there_are() {
    let _timed = Stopwatch::of("the choices of the grafana board are labels that there are");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = loaded_ebb(folder.path()).await;
    let prometheus = Prometheus::start(folder.path(), ebb.api);
    let board = board();
    let variables = board["templating"]["list"].as_array().expect("it has choices");
    let asked: Vec<&str> = variables.iter().filter_map(|variable| variable["definition"].as_str()).collect();
    assert_eq!(asked.len(), 2, "{variables:?}");
    for definition in asked {
        let inner = definition.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (series, label) =
            inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values(SERIES, LABEL)");
        let path = format!("/api/v1/label/{label}/values?match[]=");
        eventually(definition, PATIENCE, || async {
            let values = prometheus.ask_at(&path, &for_all(series)).await?;
            let expected = if label == "namespace" { "default" } else { "service/warm" };
            let is_there =
                values.as_array().is_some_and(|values| values.iter().any(|value| value == expected));
            if is_there { Ok(()) } else { Err(values.to_string()) }
        })
        .await;
    }
}
