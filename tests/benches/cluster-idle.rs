//! What does ebb cost a cluster in which everything sleeps?
//!
//! `tests/cluster/bench cluster-idle`. Sixteen workloads at zero; memory and CPU time of one replica of each
//! program, by what the machine says of their processes, which are in sight on a cluster of this machine.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use tests::bench::process::{cpu_time, memory};
use tests::bench::{Goal, Options, Report, Samples, Table, clock};
use tests::cluster::{TestNamespace, WorkloadPlan, in_namespace};

const WORKLOADS: usize = 16;
/// How many of them are made at once: each begins with a pod.
const AT_ONCE: usize = 4;
const PROGRAMS: [&str; 3] = ["ebb-autoscaler", "ebb-activator", "ebb-injector"];
/// Of one replica of each program (Knative's: 228 MB and 450 ms).
const MEMORY_MB: f64 = 35.0;
const CPU_MS_A_MINUTE: f64 = 80.0;

fn main() {
    let options = Options::read_whole();
    in_namespace("idle", async move |namespace| {
        measure(&options, &namespace).await.expect("everything can be measured");
    });
}

async fn measure(options: &Options, namespace: &TestNamespace) -> anyhow::Result<()> {
    let names: Vec<String> = (0..WORKLOADS).map(|number| format!("sleeper-{number}")).collect();
    for some in names.chunks(AT_ONCE) {
        let mut made = Vec::new();
        for name in some {
            made.push(WorkloadPlan::new(name).create(namespace).await);
        }
        for workload in made {
            workload.has_pods(0).await;
        }
    }
    let turn = options.turn(30);
    let rounds = options.rounds(4, 1);
    let mut report = Report::new("cluster-idle", options.quick, rounds);
    let mut table = Table::new("16 workloads at zero", &["one replica", "MB", "ms of CPU a minute"]);
    let (mut megabytes, mut milliseconds) = (0.0, 0.0);
    for program in PROGRAMS {
        let (held, used) = cost_of(program, turn, rounds).await?;
        table.row([program.to_owned(), held.summary(1), used.summary(0)]);
        report.measured("idle", program, "MB", &held);
        report.measured("idle", program, "ms of CPU a minute", &used);
        megabytes += held.median();
        milliseconds += used.median();
    }
    table.row(["all three".to_owned(), format!("{megabytes:.1}"), format!("{milliseconds:.0}")]);
    report.table(table);
    report.goal(Goal::at_most("memory of one replica of each, MB", megabytes, MEMORY_MB));
    report.goal(Goal::at_most("CPU of one replica of each, ms a minute", milliseconds, CPU_MS_A_MINUTE));
    report.finish(options.json.as_deref())
}

/// Of the replica that works more: of two autoscalers one decides.
async fn cost_of(program: &str, turn: Duration, rounds: usize) -> anyhow::Result<(Samples, Samples)> {
    let pids = processes(program)?;
    ensure!(!pids.is_empty(), "no process of {program} is in sight: is the cluster on another machine?");
    let (mut held, mut used) = (Samples::new(), Samples::new());
    for _ in 0..rounds {
        let before = pids.iter().map(|pid| cpu_time(*pid)).collect::<anyhow::Result<Vec<_>>>()?;
        tokio::time::sleep(turn).await;
        let mut most = (0.0_f64, 0.0_f64);
        for (pid, before) in pids.iter().zip(before) {
            let worked = clock::millis(cpu_time(*pid)?.saturating_sub(before));
            most.0 = most.0.max(memory(*pid)?.rss);
            most.1 = most.1.max(worked * 60.0 / turn.as_secs_f64());
        }
        held.push(most.0);
        used.push(most.1);
    }
    Ok((held, used))
}

/// All processes that were started under this name.
fn processes(program: &str) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("reading /proc")? {
        let Ok(pid) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        // It may have ended by now.
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = command.split(|byte| *byte == 0).next().unwrap_or_default();
        if name.rsplit(|byte| *byte == b'/').next() == Some(program.as_bytes()) {
            found.push(pid);
        }
    }
    Ok(found)
}
