//! Fifty clients come at once to who sleeps: how soon are all pods ordered that they need, how soon do all of
//! these serve beside Kubernetes alone, and is everybody answered?
//!
//! `tests/cluster/bench cluster-burst`. Fifty clients (what `hey -c 50` does) of requests of 100 ms at target
//! 10 need eight pods. Counts are seen as the API server's watch tells them. Beside it, pods that Kubernetes
//! alone serves are scaled from 0 to 8 by hand in the same rounds: bare ones, ones of two containers, as ours
//! have, and ones that kubelet asks each second whether they are ready. The goal is beside those of two
//! containers: a second container is the price of every sidecar, and no matter of ebb.
//!
//! Pods without a sidecar serve when kubelet calls them ready. Ours do when their link says so, of which
//! kubelet hears with its next probe: what counts is that a pod has answered somebody. When kubelet calls
//! ours ready is said beside it.
//!
//! A third smaller order comes where the last of the fifty requests leaves its client more than 25 ms after
//! the first one, the least time between two writes of one count: nothing that decides knows of it then. The
//! notes name each round with more than two.

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
/// From the last of the fifty requests to the order for all pods, in ms.
const ORDERED_WITHIN: f64 = 50.0;
const SMALLER_ORDERS_MOST: usize = 2;
/// All pods serve, beside pods of two containers from 0 to 8 (Knative's: 2.1 to 2.4 beside bare pods).
const MOST: f64 = 1.1;

/// What the API server told of one round, in ms since it began.
struct Told {
    /// When the order for all pods was seen.
    ordered: f64,
    /// The smaller ones before it: when each was seen, and for how many pods.
    smaller: Vec<(f64, i32)>,
    /// Kubelet calls all pods ready.
    ready: f64,
}

/// What was seen of one burst.
struct Burst {
    told: Told,
    /// The last of the fifty clients sent its first request, in ms since the burst began.
    all_asked: f64,
    /// The eighth pod answered its first request, in ms since the burst began.
    served: f64,
    failed: usize,
}

fn main() {
    let options = Options::read_whole();
    in_namespace("burst", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

/// What Kubernetes alone does with as many pods, by hand.
struct ByHand {
    /// Of the Deployment, and for people.
    name: &'static str,
    title: &'static str,
    workload: PlainWorkload,
    /// When kubelet called eight pods ready, in ms since they were ordered.
    ready: Samples,
}

/// What all bursts brought about, in ms.
#[derive(Default)]
struct BurstTimes {
    ordered: Samples,
    served: Samples,
    ready: Samples,
    smaller_orders: usize,
    failed: usize,
    /// Of bursts with more smaller orders than may be.
    notes: Vec<String>,
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let rounds = options.rounds(8, 1);
    let mut report = Report::new("cluster-burst", options.quick, rounds);
    let ours = WorkloadPlan::new("ebb").annotated("autoscaling.knative.dev/target", "10");
    let ours = ours.template_annotated("ebb.dev/response-start-timeout", "60s").create(namespace).await;
    let mut by_hand = by_hand(namespace).await?;
    let mut times = BurstTimes::default();
    // Each kind by hand, and ours.
    let turns = by_hand.len() + 1;
    for round in 0..rounds {
        for turn in 0..turns {
            match by_hand.get_mut((round + turn) % turns) {
                Some(plain) => {
                    let ready = plain_pods(namespace, plain.name, &plain.workload).await?;
                    plain.ready.push(ready);
                }
                None => times.note(burst(namespace, &ours).await?),
            }
        }
    }
    times.fill(&mut report, &by_hand);
    report.finish(options.json.as_deref())
}

/// Pods that Kubernetes alone serves, each kind with its Deployment.
async fn by_hand(namespace: &TestNamespace) -> anyhow::Result<[ByHand; 3]> {
    let bare = PlainWorkload::create(namespace, "bare", &[], KubeletProbe::None).await?;
    let two = PlainWorkload::of_two_containers(namespace, "two").await?;
    let probed = PlainWorkload::create(namespace, "probed", &[], KubeletProbe::EachSecond).await?;
    Ok([
        ("bare", "bare pods", bare),
        ("two", "pods of two containers", two),
        ("probed", "pods with a probe each second", probed),
    ]
    .map(|(name, title, workload)| ByHand { name, title, workload, ready: Samples::new() }))
}

impl BurstTimes {
    fn note(&mut self, seen: Burst) {
        let Burst { told, all_asked, served, failed } = seen;
        self.ordered.push(told.ordered - all_asked);
        self.served.push(served);
        self.ready.push(told.ready);
        self.smaller_orders = self.smaller_orders.max(told.smaller.len());
        self.failed += failed;
        if told.smaller.len() > SMALLER_ORDERS_MOST {
            self.notes.push(format!(
                "{} smaller orders (ms, pods) {:.0?}, and the last of the fifty requests left its client after {all_asked:.0} ms.",
                told.smaller.len(),
                told.smaller
            ));
        }
    }

    fn fill(&self, report: &mut Report, by_hand: &[ByHand; 3]) {
        let [bare, two, _] = by_hand;
        let ratios = |served: &Samples| [bare, two].map(|plain| served.over(&plain.ready).summary(2));
        let mut table = Table::new(
            "Fifty clients at zero, in ms: median [least … most]",
            &["", "eight ordered", "eight serve", "eight ready", "serve / bare pods", "/ two containers"],
        );
        let own = [&self.ordered, &self.served, &self.ready].map(|samples| samples.summary(0));
        table.row(["ebb".to_owned()].into_iter().chain(own).chain(ratios(&self.served)));
        for ByHand { title, ready, .. } in by_hand {
            let own = [String::new(), ready.summary(0), ready.summary(0)];
            table.row([(*title).to_owned()].into_iter().chain(own).chain(ratios(ready)));
            report.measured("burst", title, "ms to eight ready", ready);
        }
        report.measured("burst", "ebb", "ms to the order", &self.ordered);
        report.measured("burst", "ebb", "ms until eight serve", &self.served);
        report.measured("burst", "ebb", "ms to eight ready", &self.ready);
        let goal = "last of fifty requests → order for eight pods, ms";
        report.goal(Goal::at_most(goal, self.ordered.median(), ORDERED_WITHIN));
        let few = self.smaller_orders <= SMALLER_ORDERS_MOST;
        let orders = self.smaller_orders.to_string();
        report.goal(Goal::holds("at most two smaller orders before", orders, few.into()));
        let ratio = self.served.over(&two.ready).median();
        report.goal(Goal::at_most("eight serve, ebb / pods of two containers", ratio, MOST));
        let failed = format!("{} failed", self.failed);
        report.goal(Goal::holds("no request fails", failed, (self.failed == 0).into()));
        report.table(table);
        for note in &self.notes {
            report.note(note.clone());
        }
    }
}

/// What the clients' burst brought about.
async fn burst(namespace: &TestNamespace, workload: &Workload) -> anyhow::Result<Burst> {
    workload.has_pods(0).await;
    let watched = watch(namespace, "ebb").await?;
    let load = workload.load().path("/?sleep=100").with_own_connections().patience(PATIENCE);
    let began = clock::now();
    let clients = tokio::spawn(async move { load.closed_loop(CLIENTS, LASTS).await });
    let told =
        tokio::time::timeout(PATIENCE, scaled(watched, began)).await.context("eight pods get ready")?;
    let tally = clients.await?;
    let nth = |mut times: Vec<Duration>, nth: usize| {
        times.sort_unstable();
        times.get(nth - 1).map(|at| clock::millis(at.saturating_sub(began)))
    };
    let (told, failed) = (told?, tally.sent - tally.answered());
    // Nobody sends its second request before there is a pod.
    let all_asked = nth(tally.answered_since, CLIENTS).context("all clients are answered")?;
    let answered = tally.pods_since.into_values().collect();
    let served = nth(answered, usize::try_from(PODS)?).context("eight pods answer")?;
    println!(
        "all have asked at {all_asked:.0} ms; {PODS} are ordered at {:.0} ms, before that (ms, pods) {:.0?}",
        told.ordered, told.smaller
    );
    Ok(Burst { told, all_asked, served, failed })
}

async fn plain_pods(namespace: &TestNamespace, name: &str, plain: &PlainWorkload) -> anyhow::Result<f64> {
    let watched = watch(namespace, name).await?;
    let began = clock::now();
    plain.scale(u32::try_from(PODS)?).await?;
    let told =
        tokio::time::timeout(PATIENCE, scaled(watched, began)).await.context("eight pods get ready")?;
    plain.rests(PATIENCE).await?;
    Ok(told?.ready)
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
) -> anyhow::Result<Told> {
    let mut events = pin!(events);
    let (mut ordered, mut smaller) = (None, Vec::new());
    while let Some(event) = events.next().await {
        let WatchEvent::Modified(deployment) = event? else { continue };
        let at = clock::millis(clock::since(began));
        let wanted = deployment.spec.and_then(|spec| spec.replicas).unwrap_or_default();
        if wanted >= PODS {
            ordered = ordered.or(Some(at));
        } else if wanted > 0 && ordered.is_none() && smaller.last().is_none_or(|(_, last)| *last != wanted) {
            smaller.push((at, wanted));
        }
        let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or_default();
        if let Some(ordered) = ordered.filter(|_| ready >= PODS) {
            return Ok(Told { ordered, smaller, ready: at });
        }
    }
    anyhow::bail!("the watch ended before all pods were ready")
}
