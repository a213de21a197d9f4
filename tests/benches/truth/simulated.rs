//! The same load in `ebb simulate`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use recording::RecordedRestart;
use serde_json::Value;

use super::counts::PodCounts;
use super::live::{ClientRequest, LiveRun};
use super::loads::TruthLoad;

/// The counts of one simulation.
pub(crate) struct SimulatedRun {
    pub(crate) counts: PodCounts,
    /// How long the simulated load lasts.
    pub(crate) length: Duration,
}

/// With the client's own list of requests. Start-ups are those of the record.
pub(crate) fn with_list(ebb: &Path, run: &LiveRun, load: &TruthLoad) -> anyhow::Result<SimulatedRun> {
    let mut lines = String::new();
    let usual = usual_work(&run.sent).unwrap_or(Duration::from_millis(load.hold.into()));
    for request in &run.sent {
        // How much of its time a request waited is not in the list.
        let work = if request.has_waited { usual } else { request.took };
        let _ = writeln!(lines, "{:.6},{:.6}", request.at.as_secs_f64(), work.as_secs_f64());
    }
    let list = beside(run, "requests.csv");
    fs::write(&list, lines)?;
    let option = format!("{}={}", load.service_name(), list.display());
    simulate(ebb, run, "list.json", &["--load", &option])
}

/// The median work of requests that did not wait: an app takes a little longer than it is asked to.
fn usual_work(sent: &[ClientRequest]) -> Option<Duration> {
    let mut works: Vec<Duration> =
        sent.iter().filter(|request| !request.has_waited).map(|request| request.took).collect();
    works.sort();
    works.get(works.len() / 2).copied()
}

/// With nothing but the record.
pub(crate) fn from_record(ebb: &Path, run: &LiveRun) -> anyhow::Result<SimulatedRun> {
    simulate(ebb, run, "record.json", &[])
}

fn simulate(ebb: &Path, run: &LiveRun, result: &str, options: &[&str]) -> anyhow::Result<SimulatedRun> {
    let json = beside(run, result);
    let mut command = Command::new(ebb);
    command.arg("simulate").arg("-f").arg(&run.manifests).arg("--record").arg(&run.record);
    for RecordedRestart { ended, began } in &run.recorded.restarts {
        let (at, pause) = (ended.as_millis().max(1), began.saturating_sub(*ended).as_millis().max(1));
        command.arg("--fault").arg(format!("autoscaler-killed,at={at}ms,pause={pause}ms"));
    }
    let output = command.args(options).arg("--json").arg(&json).output().context("starting ebb simulate")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`ebb simulate` ended with {}: {errors}", output.status);
    let document: Value = serde_json::from_str(&fs::read_to_string(&json)?)?;
    let length = document["length"].as_f64().context("the document has a length")?;
    let service = &document["variants"][0]["services"][0];
    let counts = service["counts"].as_array().context("a Service has counts")?;
    let counts = counts.iter().map(|count| Some((count["at"].as_f64()?, count["pods"].as_u64()?)));
    let counts: Option<Vec<(f64, u64)>> = counts.collect();
    let counts = PodCounts::new(counts.context("a count has a time and a number of pods")?);
    Ok(SimulatedRun { counts, length: Duration::from_secs_f64(length) })
}

/// A file in the folder of the run.
fn beside(run: &LiveRun, name: &str) -> PathBuf {
    run.record.with_file_name(name)
}
