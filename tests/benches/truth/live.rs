//! One load on a recorded `ebb up`.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::Duration;

use anyhow::{Context, ensure};
use nix::sys::signal::Signal;
use recording::{RecordedLoad, record_folders};
use tests::bench::clock;
use tests::bench::up::asleep;
use tests::{Ebb, Load, Tally};
use tokio::task::JoinSet;

use super::loads::{Interruption, TruthLoad};

/// After the last request the counts fall for so long.
const TAIL: Duration = Duration::from_secs(4);

/// How each load is run.
pub(crate) struct LiveSetup {
    pub(crate) ebb: PathBuf,
    /// The app of the Service.
    pub(crate) app: PathBuf,
    /// How long a load lasts.
    pub(crate) length: Duration,
}

/// One run, and what it left in its folder.
pub(crate) struct LiveRun {
    /// The folder with the manifests.
    pub(crate) manifests: PathBuf,
    /// The folder of the record.
    pub(crate) record: PathBuf,
    pub(crate) recorded: RecordedLoad,
    /// The requests in the order in which they were sent; times are since the beginning of the record.
    pub(crate) sent: Vec<ClientRequest>,
}

/// A request as its client saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) at: Duration,
    /// The time until its answer was there: its work, unless it waited.
    pub(crate) took: Duration,
    pub(crate) has_waited: bool,
}

pub(crate) fn play(setup: &LiveSetup, load: &TruthLoad, folder: &Path) -> anyhow::Result<LiveRun> {
    let (manifests, record) = (folder.join("manifests"), folder.join("record"));
    let service = load.service(&setup.app.to_string_lossy());
    fs::create_dir(&manifests)?;
    fs::write(manifests.join("service.yaml"), service.yaml())?;
    fs::write(manifests.join("config.yaml"), asleep().yaml())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let since_epoch = runtime.block_on(async {
        let arguments = ["--log", "warn", "--record", record.to_str().context("UTF-8")?];
        let mut ebb = Ebb::up_as(&setup.ebb, slice::from_ref(&service), &asleep(), &arguments).await;
        let requests = Load::new(ebb.requests, &service.host()).path(&format!("/hold/{}", load.hold));
        let ((), sent) =
            tokio::try_join!(interrupt(&ebb, load, setup.length), send(load, &requests, setup.length))?;
        tokio::time::sleep(TAIL).await;
        ebb.signal(Signal::SIGTERM);
        let status = ebb.ended().await;
        ensure!(status.success(), "`ebb up` ended with {status}:\n{}", ebb.output());
        anyhow::Ok(sent)
    })?;
    let recorded = RecordedLoad::read(&record_folders(&record)?)?.context("the record has a beginning")?;
    let after_begin = |request: ClientRequest| {
        Some(ClientRequest { at: request.at.checked_sub(recorded.begins)?, ..request })
    };
    let mut sent: Vec<ClientRequest> = since_epoch.into_iter().filter_map(after_begin).collect();
    sent.sort_by_key(|request| request.at);
    Ok(LiveRun { manifests, record, recorded, sent })
}

/// Does in the middle of the time what the load is about.
async fn interrupt(ebb: &Ebb, load: &TruthLoad, length: Duration) -> anyhow::Result<()> {
    match load.interruption {
        Interruption::None => Ok(()),
        Interruption::AutoscalerRestarts => {
            tokio::time::sleep(length / 2).await;
            let (exit, shown, errors) = ebb.run(&["restart", "autoscaler"]).await;
            ensure!(exit == 0, "`ebb restart autoscaler`: {shown}{errors}");
            Ok(())
        }
    }
}

/// Sends the requests of a load at their times. Returns them with times since the beginning of 1970.
async fn send(load: &TruthLoad, requests: &Load, length: Duration) -> anyhow::Result<Vec<ClientRequest>> {
    let began = clock::now();
    let mut under_way = JoinSet::new();
    for at in load.arrivals(length.as_secs_f64()).into_iter().map(Duration::from_secs_f64) {
        tokio::time::sleep(at.saturating_sub(clock::since(began))).await;
        let request = requests.clone();
        // Its end, and a panic of it, is noticed below.
        under_way.spawn(async move {
            let asked = clock::now();
            let tally = request.one().await;
            (clock::since(asked), tally)
        });
    }
    tokio::time::sleep(length.saturating_sub(clock::since(began))).await;
    // The client notes times of the machine's own clock.
    let offset = clock::since_epoch().saturating_sub(clock::now());
    let (mut all, mut sent) = (Tally::default(), Vec::new());
    while let Some(ended) = under_way.join_next().await {
        let (took, one) = ended.context("a request does not panic")?;
        let has_waited = one.waited > 0;
        sent.extend(one.answered_since.iter().map(|at| ClientRequest { at: *at + offset, took, has_waited }));
        all.merge(one);
    }
    ensure!(all.answered() == all.sent, "not all were answered: {:?}", all.outcomes);
    Ok(sent)
}
