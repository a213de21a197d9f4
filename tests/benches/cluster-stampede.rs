//! Ten workloads at zero are asked at the same moment: when has the last of them answered, beside Kubernetes
//! alone?
//!
//! `tests/cluster/bench cluster-stampede`. Two contestants take turns with the same app on the same node:
//! ebb, woken by one request to each Service; and bare pods, all scaled from 0 to 1 by hand at once, until
//! the last Service answers.

use std::time::Duration;

use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};
use tests::cluster::{KubeletProbe, PlainWorkload, TestNamespace, Workload, WorkloadPlan, in_namespace};
use tokio::task::JoinSet;

const WORKLOADS: usize = 10;
/// How many are made at once: each of ebb's begins with a pod.
const AT_ONCE: usize = 5;
/// How long one round may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The last answer, beside bare pods (Knative's: 1.7).
const MOST: f64 = 1.2;

fn main() {
    let options = Options::read_whole();
    in_namespace("stampede", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let rounds = options.rounds(8, 1);
    let mut report = Report::new("cluster-stampede", options.quick, rounds);
    let (ours, plain) = make(namespace).await?;
    let (mut ebb, mut bare) = (Samples::new(), Samples::new());
    for round in 0..rounds {
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => ebb.push(last_answer(&ours).await?),
                _ => bare.push(last_of_plain(&plain).await?),
            }
        }
    }
    let ratio = ebb.over(&bare);
    let mut table = Table::new(
        "Ten from zero at once, to the last answer, in ms: median [least … most]",
        &["ebb", "bare pods", "ebb / bare pods"],
    );
    table.row([ebb.summary(0), bare.summary(0), ratio.summary(2)]);
    report.measured("ten at once", "ebb", "ms", &ebb);
    report.measured("ten at once", "bare pods", "ms", &bare);
    report.goal(Goal::at_most("last answer, ebb / bare pods", ratio.median(), MOST));
    report.table(table);
    report.finish(options.json.as_deref())
}

async fn make(namespace: &TestNamespace) -> anyhow::Result<(Vec<Workload>, Vec<PlainWorkload>)> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for number in 0..WORKLOADS {
        let sleeper = WorkloadPlan::new(&format!("ebb-{number}"));
        ours.push(
            sleeper.template_annotated("ebb.dev/response-start-timeout", "120s").create(namespace).await,
        );
        let name = format!("bare-{number}");
        plain.push(PlainWorkload::create(namespace, &name, &[], KubeletProbe::None).await?);
        if ours.len() % AT_ONCE == 0 {
            for workload in &ours {
                workload.has_pods(0).await;
            }
        }
    }
    Ok((ours, plain))
}

/// One request to each, each over a connection of its own, in ms.
async fn last_answer(workloads: &[Workload]) -> anyhow::Result<f64> {
    for workload in workloads {
        workload.has_pods(0).await;
    }
    let began = clock::now();
    let mut asked = JoinSet::new();
    for workload in workloads {
        let address = workload.address;
        asked.spawn_blocking(move || api::get(address, "hello", "/"));
    }
    while let Some(answer) = asked.join_next().await {
        answer??;
    }
    Ok(clock::millis(clock::since(began)))
}

async fn last_of_plain(workloads: &[PlainWorkload]) -> anyhow::Result<f64> {
    let began = clock::now();
    let mut woken = JoinSet::new();
    for workload in workloads {
        let workload = workload.clone();
        woken.spawn(async move { workload.first_answer(PATIENCE).await });
    }
    while let Some(answer) = woken.join_next().await {
        answer??;
    }
    let took = clock::millis(clock::since(began));
    for workload in workloads {
        workload.rests(PATIENCE).await?;
    }
    Ok(took)
}
