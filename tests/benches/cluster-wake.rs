//! How long does the first request of a Deployment at zero take, beside what Kubernetes takes for the pod
//! alone?
//!
//! `tests/cluster/bench cluster-wake`. Three contestants take turns with the same app on the same node: ebb,
//! woken by one request through its Service; bare pods, scaled from 0 to 1 by hand, until the Service
//! answers; and the same with a readiness probe once a second, which is the most often that kubelet asks.

use std::time::Duration;

use anyhow::ensure;
use tests::bench::{Goal, Options, Report, Samples, Table, api, clock};
use tests::cluster::{KubeletProbe, PlainWorkload, TestNamespace, Workload, WorkloadPlan, in_namespace};

/// How long one wake may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An app, and how much longer than bare pods its wake through ebb may take at the median, in ms.
struct Cell {
    name: &'static str,
    app_args: &'static [&'static str],
    most_more: f64,
}

const CELLS: [Cell; 2] = [
    Cell { name: "listens at once", app_args: &[], most_more: 75.0 },
    Cell { name: "takes 300 ms", app_args: &["--start-delay-ms", "300"], most_more: 20.0 },
];

#[derive(Default)]
struct Times {
    ebb: Samples,
    bare: Samples,
    probed: Samples,
}

fn main() {
    let options = Options::read();
    in_namespace("wakes", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let rounds = options.rounds(20, 2);
    let mut report = Report::new("cluster-wake", options.quick, rounds);
    let columns = ["", "ebb", "bare pods", "probe each second", "ebb − bare pods"];
    let mut table = Table::new("From zero to the first answer, in ms: median [least … most]", &columns);
    for (number, cell) in CELLS.iter().enumerate().filter(|(_, cell)| options.includes(cell.name)) {
        let times = times(cell, number, namespace, rounds).await?;
        let more = times.ebb.less(&times.bare);
        let columns = [&times.ebb, &times.bare, &times.probed, &more].map(|samples| samples.summary(0));
        table.row(std::iter::once(cell.name.to_owned()).chain(columns));
        report.measured(cell.name, "ebb", "ms", &times.ebb);
        report.measured(cell.name, "bare pods", "ms", &times.bare);
        report.measured(cell.name, "probe each second", "ms", &times.probed);
        let (median, known) = (more.median(), more.uncertainty_of_median());
        let goal = format!("{}: ebb − bare pods, ms", cell.name);
        report.goal(Goal::at_most_as_far_as_known(&goal, median, cell.most_more, known));
        let goal = format!("{}: ebb, beside pods with a probe each second, ms", cell.name);
        report.goal(Goal::at_most(&goal, times.ebb.median(), times.probed.median()));
    }
    report.table(table);
    report.finish(options.json.as_deref())
}

async fn times(
    cell: &Cell,
    number: usize,
    namespace: &TestNamespace,
    rounds: usize,
) -> anyhow::Result<Times> {
    let name = |what: &str| format!("{what}-{number}");
    let plan = WorkloadPlan::new(&name("ebb")).app_args(cell.app_args);
    let ours = plan.annotated("ebb.dev/response-start-timeout", "60s").create(namespace).await;
    let bare = PlainWorkload::create(namespace, &name("bare"), cell.app_args, KubeletProbe::None).await?;
    let probed =
        PlainWorkload::create(namespace, &name("probed"), cell.app_args, KubeletProbe::EachSecond).await?;
    let mut times = Times::default();
    for round in 0..rounds {
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => times.ebb.push(woken(&ours).await?),
                1 => times.bare.push(bare.woken(PATIENCE).await?),
                _ => times.probed.push(probed.woken(PATIENCE).await?),
            }
        }
    }
    Ok(times)
}

/// One request to who sleeps, over a connection of its own.
async fn woken(workload: &Workload) -> anyhow::Result<f64> {
    workload.has_pods(0).await;
    let address = workload.address;
    let asked = tokio::task::spawn_blocking(move || {
        let began = clock::now();
        api::get(address, "hello", "/")?;
        anyhow::Ok(clock::millis(clock::since(began)))
    });
    let took = asked.await??;
    ensure!(took < clock::millis(PATIENCE), "a wake took {took:.0} ms");
    Ok(took)
}
