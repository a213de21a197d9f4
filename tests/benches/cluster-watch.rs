//! What does it cost to watch a large cluster, and how soon is all of it right again when a part of ebb is
//! replaced?
//!
//! `tests/cluster/bench cluster-watch`. etcd and the API server alone hold 2,000 Deployments with a Service
//! and five pods each; the autoscaler runs beside them as a process of this machine, and this program plays
//! its activators. Pods have no queue-proxy: links are measured by `fleet`.

#[path = "cluster-watch"]
mod cluster_watch {
    pub(super) mod activators;
    pub(super) mod objects;
    pub(super) mod slices;
}

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::bench::machine::Cores;
use tests::bench::process::{Process, cpu_time, memory};
use tests::bench::{Goal, Options, Report, Samples, Table, clock};
use tests::cluster::{SYSTEM, TestNamespace, in_namespace};
use tests::eventually;
use vocabulary::RevisionName;

use cluster_watch::activators::{PlayedActivator, Waiting};
use cluster_watch::objects::Crowd;
use cluster_watch::slices::{SliceWatch, revisions};

/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(180);
const MEMORY_MB: f64 = 200.0;
const CORES: f64 = 0.3;
/// A cold autoscaler's first decision, and all slices after an activator was replaced.
const SECONDS: f64 = 20.0;
const WRITES_A_SECOND: f64 = 300.0;
/// Pods that get ready or stop being so, a second.
const CHANGES: usize = 100;

fn main() {
    let options = Options::read_whole();
    in_namespace("crowd", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let crowd =
        options.choose(Crowd { workloads: 2000, pods_each: 5 }, Crowd { workloads: 60, pods_each: 5 });
    let mut report = Report::new("cluster-watch", options.quick, 1);
    let began = clock::now();
    crowd.make(namespace).await?;
    report.note(format!("The objects were made in {:.0} s.", clock::since(began).as_secs_f64()));
    let folder = tempfile::tempdir()?;
    let first = Autoscaler::start(namespace, 1, &folder)?;
    watched(options, namespace, crowd, &first, &mut report).await?;

    crowd.put_to_rest(namespace).await?;
    let waiting = Waiting::default();
    let [one, two] = [1, 2].map(|number| PlayedActivator::start(namespace, number, &waiting));
    let (one, two) = (one.await?, two.await?);
    let slices = SliceWatch::start(namespace).await?;
    slices.name_only(&[&one.name, &two.name], crowd.workloads, clock::now(), PATIENCE).await?;
    let began = clock::now();
    two.vanish(namespace).await?;
    let three = PlayedActivator::start(namespace, 3, &waiting).await?;
    let names = [one.name.as_str(), three.name.as_str()];
    let right_after = slices.name_only(&names, crowd.workloads, began, PATIENCE).await?;
    let most = slices.most_in_a_second(began);
    let goal = "an activator replaced: seconds to all slices";
    report.goal(Goal::at_most(goal, right_after.as_secs_f64(), SECONDS));
    let goal = "an activator replaced: most writes of slices in a second";
    report.goal(Goal::at_most(goal, f64::from(u32::try_from(most)?), WRITES_A_SECOND));

    let sleepers = Sleepers { namespace, waiting: &waiting };
    first.signal(Signal::SIGTERM)?;
    let second = Autoscaler::start(namespace, 2, &folder)?;
    let took = sleepers.woken(0, &second).await?;
    report.goal(Goal::at_most("cold, after one that left: seconds to a decision", took, SECONDS));
    second.signal(Signal::SIGKILL)?;
    let third = Autoscaler::start(namespace, 3, &folder)?;
    let took = sleepers.woken(1, &third).await?;
    report.goal(Goal::at_most("cold, after one that was killed: seconds to a decision", took, SECONDS));
    report.finish(options.json.as_deref())
}

/// Memory at rest, and what it takes to follow pods that come and go.
async fn watched(
    options: &Options,
    namespace: &TestNamespace,
    crowd: Crowd,
    autoscaler: &Autoscaler,
    report: &mut Report,
) -> anyhow::Result<()> {
    let slices = SliceWatch::start(namespace).await?;
    slices.count_is(crowd.workloads, PATIENCE).await;
    let all_after = clock::since(autoscaler.started).as_secs_f64();
    ensure!(revisions(autoscaler.api)? == crowd.workloads, "it knows {} workloads", crowd.workloads);
    tokio::time::sleep(options.turn(10)).await;
    let pid = autoscaler.process.pid();
    let at_rest = memory(pid)?;
    let lasts = options.turn(40).as_secs();
    let (began, before) = (clock::now(), cpu_time(pid)?);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(CHANGES)?);
    for change in 0..usize::try_from(lasts)? * CHANGES {
        ticks.tick().await;
        // Each pod of a round stops being ready, and in the next one is so again; rounds of a second.
        let ready = if (change / CHANGES).is_multiple_of(2) { "False" } else { "True" };
        crowd.turn(namespace, change % CHANGES, ready).await?;
    }
    let lasted = clock::since(began);
    let cores = cpu_time(pid)?.saturating_sub(before).as_secs_f64() / lasted.as_secs_f64();
    let changes = f64::from(u32::try_from(lasts)? * u32::try_from(CHANGES)?) / lasted.as_secs_f64();
    let mut table = Table::new("Workloads with five pods each", &["", "found"]);
    table.row(["workloads".to_owned(), crowd.workloads.to_string()]);
    table.row(["all slices after the start, s".to_owned(), format!("{all_after:.1}")]);
    table.row(["resident at rest, MB".to_owned(), format!("{:.0}", at_rest.rss)]);
    table.row([format!("cores at {changes:.0} changes of pods a second"), format!("{cores:.3}")]);
    report.table(table);
    report.measured("watch", "autoscaler", "RSS MB", &Samples(vec![at_rest.rss]));
    report.measured("watch", "autoscaler", "cores", &Samples(vec![cores]));
    report.goal(Goal::at_most("resident before links, MB", at_rest.rss, MEMORY_MB));
    report.goal(Goal::at_most("cores while pods change", cores, CORES));
    Ok(())
}

/// Workloads at zero for which a request comes to wait.
struct Sleepers<'bench> {
    namespace: &'bench TestNamespace,
    waiting: &'bench Waiting,
}

impl Sleepers<'_> {
    /// Seconds from an autoscaler's start to its order for a pod, for which a request waits all the while.
    async fn woken(&self, number: usize, autoscaler: &Autoscaler) -> anyhow::Result<f64> {
        let name = Crowd::workload(number);
        let revision = RevisionName::new(&self.namespace.name, "deployment", &name)?;
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(revision);
        let api = self.namespace.api::<Deployment>();
        eventually(&format!("a pod is ordered of {name}"), PATIENCE, || async {
            let found = api.get(&name).await.map_err(|error| error.to_string())?;
            let wanted = found.spec.and_then(|spec| spec.replicas).unwrap_or_default();
            if wanted > 0 { Ok(()) } else { Err(format!("{wanted}")) }
        })
        .await;
        Ok(clock::since(autoscaler.started).as_secs_f64())
    }
}

/// The real executable, with the rights of the cluster's administrator.
struct Autoscaler {
    process: Process,
    api: SocketAddr,
    started: Duration,
}

impl Autoscaler {
    fn start(namespace: &TestNamespace, number: u16, folder: &tempfile::TempDir) -> anyhow::Result<Self> {
        let executables = std::env::var_os("CLUSTER_EXECUTABLES");
        let executables =
            executables.context("CLUSTER_EXECUTABLES is not set; run tests/cluster/bench, which sets it")?;
        let executable = PathBuf::from(executables).join("ebb-autoscaler");
        let (api, metrics) = (18_080 + number, 19_080 + number);
        let mut command = Command::new(&executable);
        command
            .env("KUBECONFIG", &namespace.kubeconfig)
            .env("POD_NAME", format!("autoscaler-{number}"))
            .env("POD_NAMESPACE", SYSTEM)
            .env("AUTOSCALER_API_ADDRESS", format!("127.0.0.1:{api}"))
            .env("AUTOSCALER_METRICS_ADDRESS", format!("127.0.0.1:{metrics}"))
            .env("EBB_LOG", "warn");
        let started = clock::now();
        let (name, cores) = (format!("autoscaler-{number}"), Cores::divide()?);
        let process = Process::start(command, &name, folder.path(), &cores.contestant)
            .with_context(|| format!("starting {}", executable.display()))?;
        Ok(Self { process, api: SocketAddr::from(([127, 0, 0, 1], api)), started })
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill(Pid::from_raw(i32::try_from(self.process.pid())?), signal)?;
        Ok(())
    }
}
