//! Fifty clients come at once to who sleeps: how soon are all pods ordered that they need, how soon are these
//! ready beside Kubernetes alone, and is everybody answered?
//!
//! `tests/cluster/bench cluster-burst`. Fifty clients (what `hey -c 50` does) of requests of 100 ms at target
//! 10 need eight pods. Counts are seen as the API server's watch tells them. Beside it, bare pods are scaled
//! from 0 to 8 by hand.

use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{WatchEvent, WatchParams};
use tests::bench::{Goal, Options, Report, Samples, Table, clock};
use tests::cluster::{KubeletProbe, PlainWorkload, TestNamespace, Workload, WorkloadPlan, in_namespace};

const CLIENTS: usize = 50;
const PODS: i32 = 8;
/// How long the clients go on: longer than eight pods take to come.
const LASTS: Duration = Duration::from_secs(8);
/// How long one round may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// From the first of the fifty requests to the order for all pods, in ms. The goal counts from the last of
/// them, a few milliseconds later.
const ORDERED_WITHIN: f64 = 50.0;
const SMALLER_ORDERS_MOST: usize = 2;
/// All pods ready, beside bare pods from 0 to 8 (Knative's: 2.1 to 2.4).
const MOST: f64 = 1.2;

/// What was seen of one round, in ms since it began.
struct Seen {
    ordered: f64,
    smaller_orders: usize,
    ready: f64,
}

fn main() {
    let options = Options::read_whole();
    in_namespace("burst", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let rounds = options.rounds(8, 1);
    let mut report = Report::new("cluster-burst", options.quick, rounds);
    let ours = WorkloadPlan::new("ebb").annotated("autoscaling.knative.dev/target", "10");
    let ours = ours.template_annotated("ebb.dev/response-start-timeout", "60s").create(namespace).await;
    let plain = PlainWorkload::create(namespace, "bare", &[], KubeletProbe::None).await?;
    let (mut ordered, mut ready, mut bare) = (Samples::new(), Samples::new(), Samples::new());
    let (mut smaller_orders, mut errors) = (0, 0);
    for round in 0..rounds {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                let (seen, failed) = burst(namespace, &ours).await?;
                ordered.push(seen.ordered);
                ready.push(seen.ready);
                smaller_orders = smaller_orders.max(seen.smaller_orders);
                errors += failed;
            } else {
                bare.push(plain_pods(namespace, &plain).await?);
            }
        }
    }
    let ratio = ready.over(&bare);
    let mut table = Table::new(
        "Fifty clients at zero, in ms: median [least … most]",
        &["eight pods ordered", "eight pods ready", "bare pods 0 → 8", "ready / bare pods"],
    );
    table.row([ordered.summary(0), ready.summary(0), bare.summary(0), ratio.summary(2)]);
    report.measured("burst", "ebb", "ms to the order", &ordered);
    report.measured("burst", "ebb", "ms to eight ready", &ready);
    report.measured("burst", "bare pods", "ms to eight ready", &bare);
    let known = ordered.uncertainty_of_median();
    let goal = "first request → order for eight pods, ms";
    report.goal(Goal::at_most_as_far_as_known(goal, ordered.median(), ORDERED_WITHIN, known));
    let few = smaller_orders <= SMALLER_ORDERS_MOST;
    report.goal(Goal::holds("at most two smaller orders before", smaller_orders.to_string(), few.into()));
    let known = ratio.uncertainty_of_median();
    report.goal(Goal::at_most_as_far_as_known("eight ready, ebb / bare pods", ratio.median(), MOST, known));
    report.goal(Goal::holds("no request fails", format!("{errors} failed"), (errors == 0).into()));
    report.table(table);
    report.finish(options.json.as_deref())
}

/// What the clients' burst brought about, and how many of their requests failed.
async fn burst(namespace: &TestNamespace, workload: &Workload) -> anyhow::Result<(Seen, usize)> {
    workload.has_pods(0).await;
    let watched = watch(namespace, "ebb").await?;
    let load = workload.load().path("/?sleep=100").with_own_connections().patience(PATIENCE);
    let began = clock::now();
    let clients = tokio::spawn(async move { load.closed_loop(CLIENTS, LASTS).await });
    let seen =
        tokio::time::timeout(PATIENCE, scaled(watched, began)).await.context("eight pods get ready")?;
    let tally = clients.await?;
    Ok((seen?, tally.sent - tally.answered()))
}

async fn plain_pods(namespace: &TestNamespace, plain: &PlainWorkload) -> anyhow::Result<f64> {
    let watched = watch(namespace, "bare").await?;
    let began = clock::now();
    plain.scale(u32::try_from(PODS)?).await?;
    let seen =
        tokio::time::timeout(PATIENCE, scaled(watched, began)).await.context("eight pods get ready")?;
    plain.rests(PATIENCE).await?;
    Ok(seen?.ready)
}

/// Every change of a Deployment from now on.
async fn watch(
    namespace: &TestNamespace,
    name: &str,
) -> anyhow::Result<impl Stream<Item = kube::Result<WatchEvent<Deployment>>> + use<>> {
    let api = namespace.api::<Deployment>();
    let present = api.get(name).await?.metadata.resource_version.context("what is there has a version")?;
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    Ok(api.watch(&only, &present).await?)
}

/// Follows its counts until all pods are ready.
async fn scaled(
    events: impl Stream<Item = kube::Result<WatchEvent<Deployment>>>,
    began: Duration,
) -> anyhow::Result<Seen> {
    let mut events = pin!(events);
    let (mut ordered, mut orders) = (None, Vec::new());
    while let Some(event) = events.next().await {
        let WatchEvent::Modified(deployment) = event? else { continue };
        let at = clock::millis(clock::since(began));
        let wanted = deployment.spec.and_then(|spec| spec.replicas).unwrap_or_default();
        if wanted > 0 && orders.last() != Some(&wanted) {
            orders.push(wanted);
        }
        if wanted >= PODS && ordered.is_none() {
            ordered = Some((at, orders.len() - 1));
        }
        let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or_default();
        if let Some((ordered, smaller_orders)) = ordered.filter(|_| ready >= PODS) {
            return Ok(Seen { ordered, smaller_orders, ready: at });
        }
    }
    anyhow::bail!("the watch ended before all pods were ready")
}
