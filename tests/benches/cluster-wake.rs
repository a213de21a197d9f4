//! How long does the first request of a Deployment at zero take, beside what Kubernetes takes for the pod
//! alone, and where does each millisecond go?
//!
//! `tests/cluster/bench cluster-wake`. Three contestants take turns with the same app on the same node: ebb,
//! several Deployments of which one after the other is woken by one request through its Service; bare pods,
//! scaled from 0 to 1 by hand, until the Service answers; and the same with a readiness probe once a second,
//! which is the most often that kubelet asks. Then the first wakes after all autoscalers, and after all
//! activators, were replaced.

#[path = "cluster-wake"]
mod cluster_wake {
    pub(super) mod journey;
}

use std::time::Duration;

use anyhow::ensure;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use tests::bench::{Goal, Options, Report, Samples, Table, clock};
use tests::cluster::{
    KubeletProbe, PlainWorkload, SYSTEM, TestNamespace, Workload, WorkloadPlan, in_namespace, kubectl,
};

use cluster_wake::journey::{PATIENCE, Stages, wake};

/// Deployments of ebb's, which sleep and wake in turn: while one falls asleep, others are woken.
const SLEEPERS: usize = 8;
/// First byte to the order at the API server, at the 99th percentile.
const ORDERED_WITHIN: f64 = 10.0;
/// Later of "the app listens" and "its address is seen" to the request at the app: median and 90th
/// percentile.
const FORWARDED_WITHIN: [f64; 2] = [10.0, 20.0];

/// An app, and how much longer than bare pods its wake through ebb may take at the median, in ms.
struct Cell<'name> {
    name: &'name str,
    app_args: &'static [&'static str],
    most_more: f64,
}

const CELLS: [Cell<'static>; 2] = [
    Cell { name: "listens at once", app_args: &[], most_more: 75.0 },
    Cell { name: "takes 300 ms", app_args: &["--start-delay-ms", "300"], most_more: 20.0 },
];
/// What is replaced before a first wake, in which the app listens at once.
const RESTARTED: [&str; 2] = ["autoscaler", "activator"];

#[derive(Default)]
struct Times {
    stages: Stages,
    ebb: Samples,
    bare: Samples,
    probed: Samples,
    /// From sending a count to its answer, by somebody who does nothing else.
    bare_order: Samples,
}

fn main() {
    let options = Options::read();
    in_namespace("wakes", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let rounds = options.rounds(60, 2);
    let mut report = Report::new("cluster-wake", options.quick, rounds);
    for (number, cell) in CELLS.iter().enumerate().filter(|(_, cell)| options.includes(cell.name)) {
        let contestants = Contestants::make(cell, number, namespace).await?;
        let times = contestants.turns(namespace, rounds).await?;
        report_cell(cell, &times, &mut report);
        if number > 0 {
            continue;
        }
        for component in RESTARTED.into_iter().filter(|component| options.includes(component)) {
            let rounds = options.rounds(10, 1);
            let times = contestants.after_restarts(namespace, component, rounds).await?;
            let name = format!("first wake after all {component}s were replaced");
            report_cell(&Cell { name: &name, ..*cell }, &times, &mut report);
        }
    }
    report.finish(options.json.as_deref())
}

fn report_cell(cell: &Cell<'_>, times: &Times, report: &mut Report) {
    let more = times.ebb.by_rounds(times.bare.0.len()).less(&times.bare);
    let columns = ["", "ebb", "bare pods", "probe each second", "ebb − bare pods"];
    let mut table = Table::new("From zero to the first answer, in ms: median [least … most]", &columns);
    let columns = [&times.ebb, &times.bare, &times.probed, &more].map(|samples| samples.summary(0));
    table.row(std::iter::once(cell.name.to_owned()).chain(columns));
    report.table(table);
    report.table(times.stages.table(cell.name));
    report.note(format!(
        "{}: a count written by hand is answered in {:.1} ms at the median, ebb's in {:.1} ms.",
        cell.name,
        times.bare_order.median(),
        times.stages.answered_order.median()
    ));
    report.measured(cell.name, "ebb", "ms", &times.ebb);
    report.measured(cell.name, "bare pods", "ms", &times.bare);
    report.measured(cell.name, "probe each second", "ms", &times.probed);
    let goal = format!("{}: ebb − bare pods, ms", cell.name);
    report.goal(Goal::at_most(&goal, more.median(), cell.most_more));
    let goal = format!("{}: ebb, beside pods with a probe each second, ms", cell.name);
    report.goal(Goal::at_most(&goal, times.ebb.median(), times.probed.median()));
    let goal = format!("{}: first byte → order, p99 in ms", cell.name);
    report.goal(Goal::at_most(&goal, times.stages.ordered.quantile(990), ORDERED_WITHIN));
    for (quantile, limit) in [500, 900].into_iter().zip(FORWARDED_WITHIN) {
        let goal =
            format!("{}: app and address there → request at the app, p{} in ms", cell.name, quantile / 10);
        report.goal(Goal::at_most(&goal, times.stages.forwarded.quantile(quantile), limit));
    }
}

struct Contestants {
    ours: Vec<Workload>,
    bare: PlainWorkload,
    probed: PlainWorkload,
}

impl Contestants {
    async fn make(cell: &Cell<'_>, number: usize, namespace: &TestNamespace) -> anyhow::Result<Self> {
        let name = |what: &str| format!("{what}-{number}");
        let mut ours = Vec::new();
        for sleeper in 0..SLEEPERS {
            let plan = WorkloadPlan::new(&format!("{}-{sleeper}", name("ebb"))).app_args(cell.app_args);
            let plan = plan.template_annotated("ebb.dev/response-start-timeout", "60s");
            ours.push(plan.create(namespace).await);
        }
        let (args, none, each) = (cell.app_args, KubeletProbe::None, KubeletProbe::EachSecond);
        let bare = PlainWorkload::create(namespace, &name("bare"), args, none).await?;
        let probed = PlainWorkload::create(namespace, &name("probed"), args, each).await?;
        for workload in &ours {
            workload.has_pods(0).await;
        }
        Ok(Self { ours, bare, probed })
    }

    /// In one round two of ebb's wake and one of each other, which takes longer to come to rest.
    async fn turns(&self, namespace: &TestNamespace, rounds: usize) -> anyhow::Result<Times> {
        let mut times = Times::default();
        let mut sleepers = self.ours.iter().cycle();
        for round in 0..rounds {
            for turn in 0..4 {
                match (round + turn) % 4 {
                    0 => self.bare_turn(&mut times).await?,
                    1 => times.probed.push(self.probed.woken(PATIENCE).await?),
                    _ => {
                        let sleeper = sleepers.next().expect("there are some");
                        times.ebb.push(wake(namespace, sleeper, &mut times.stages).await?);
                    }
                }
            }
        }
        Ok(times)
    }

    async fn bare_turn(&self, times: &mut Times) -> anyhow::Result<()> {
        times.bare.push(self.bare.woken(PATIENCE).await?);
        let began = clock::now();
        // It is at zero, so nothing happens but the write.
        self.bare.scale(0).await?;
        times.bare_order.push(clock::millis(clock::since(began)));
        Ok(())
    }

    /// Each first wake after all pods of one of our programs were replaced.
    async fn after_restarts(
        &self,
        namespace: &TestNamespace,
        component: &str,
        rounds: usize,
    ) -> anyhow::Result<Times> {
        let mut times = Times::default();
        for (_, sleeper) in (0..rounds).zip(self.ours.iter().cycle()) {
            self.bare_turn(&mut times).await?;
            times.probed.push(self.probed.woken(PATIENCE).await?);
            sleeper.has_pods(0).await;
            replace(namespace, component).await?;
            times.ebb.push(wake(namespace, sleeper, &mut times.stages).await?);
        }
        Ok(times)
    }
}

/// Takes all pods of a component away, and returns when others are ready and somebody decides.
async fn replace(namespace: &TestNamespace, component: &str) -> anyhow::Result<()> {
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(namespace.client.clone(), SYSTEM);
    let selected = ListParams::default().labels(&format!("app.kubernetes.io/component={component}"));
    let former = pods.list(&selected).await?.items;
    ensure!(!former.is_empty(), "there is no {component}");
    for name in former.iter().filter_map(|pod| pod.metadata.name.as_deref()) {
        pods.delete(name, &DeleteParams::default()).await?;
    }
    kubectl(&["-n", SYSTEM, "rollout", "status", &format!("deployment/{component}"), "--timeout=60s"]).await;
    tokio::time::timeout(Duration::from_secs(60), namespace.settled_owner()).await?;
    Ok(())
}
