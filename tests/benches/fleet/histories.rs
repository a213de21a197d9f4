//! Histories of revisions that have lived for long: made by a multiscaler that lives through the past in
//! seconds, written to files, and restored by the autoscaler as from a store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use autoscaler::UnclaimedHistories;
use forecasting::{DemandMinutes, MinuteDemand};
use runtime::wall_time;
use scaling::{
    DemandDays, Event, HistoryRecord, Multiscaler, PodFact, PodPhase, RevisionHistory, RevisionOrigin,
};
use settings::{DemandMetric, ScalingSpec};
use tests::bench::process::Memory;
use tests::bench::{Goal, Report, Samples, Table};
use vocabulary::{
    BootId, Concurrency, Load, PodCount, PodId, Reporter, RequestRate, RevisionId, Sample, Timestamp,
};

use crate::fleet::shape::{BUSY, FleetClass, Shape};

/// A history with all that is kept: 35 days of hours, 26 hours of minutes and 15 minutes of seconds.
const FULL: LivedPast = LivedPast { file: "full-history.json", hours: 35 * 24 };
/// One hour of traffic, which has just ended.
const BUSY_HOUR: LivedPast = LivedPast { file: "busy-hour.json", hours: 1 };
/// Fifteen days, as many as prediction reads.
const DEMAND_MINUTES: u64 = 15 * 24 * 60;
/// How often the number of pods changes.
const PODS_CHANGE_EVERY: u64 = 1800;

const REVISION: RevisionId = RevisionId(0);
const REPORTER: Reporter = Reporter::Pod(PodId(0));

/// A past with traffic in each of its seconds, and the file of its record.
#[derive(Clone, Copy)]
struct LivedPast {
    file: &'static str,
    hours: u64,
}

/// The past that revisions of this class have from the start: of class ahpa fifteen days of demand, each its
/// own, so that no two share memory; else none. The demand is steady, so that no rule asks for pods.
pub(crate) fn known_before(shape: Shape) -> UnclaimedHistories {
    let mut known = UnclaimedHistories::default();
    if shape.class != FleetClass::Ahpa {
        return known;
    }
    let second = wall_time().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut minutes = DemandMinutes::beginning_at((second / 60).saturating_sub(DEMAND_MINUTES));
    while minutes.next_minute() < second / 60 {
        minutes.push(Some(MinuteDemand { mean: BUSY, maximum: BUSY }));
    }
    known.extend((0..shape.revisions).map(|index| {
        let demand = DemandDays::of(DemandMetric::Concurrency, &minutes);
        (Shape::revision(index), RevisionHistory::of_demand(second, demand))
    }));
    known
}

/// The folder in which the records lie.
#[derive(Clone, Debug)]
pub(crate) struct HistoryFolder(PathBuf);

impl HistoryFolder {
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Lives through the past, up to now, and writes it down.
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        for past in [FULL, BUSY_HOUR] {
            fs::write(self.0.join(past.file), serde_json::to_vec(&past.live()?)?)?;
        }
        Ok(())
    }

    /// Leaves a tenth of the revisions a full history and all others a busy hour; returns the number of
    /// revisions.
    pub(crate) fn restore(&self, unclaimed: &mut UnclaimedHistories, shape: Shape) -> anyhow::Result<u32> {
        let (full, busy_hour) = (self.read(FULL.file)?, self.read(BUSY_HOUR.file)?);
        for index in 0..shape.revisions {
            let record = if index < shape.full_histories() { &full } else { &busy_hour };
            // Each from its record, so that no two share memory.
            let history = RevisionHistory::restore(record.clone())?;
            unclaimed.extend([(Shape::revision(index), history)]);
        }
        Ok(shape.revisions)
    }

    fn read(&self, name: &str) -> anyhow::Result<HistoryRecord> {
        let path = self.0.join(name);
        let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
    }
}

/// What the autoscaler holds once every revision has a past.
pub(crate) struct MemoryWithHistories {
    pub(crate) shape: Shape,
    pub(crate) held: Memory,
}

impl MemoryWithHistories {
    pub(crate) fn row(&self, table: &mut Table) {
        let (full, all) = (self.shape.full_histories(), self.shape.revisions);
        table.row([
            format!("the same with {full} full histories and {} of one busy hour", all - full),
            format!("{:.0} ({:.0})", self.held.rss, self.held.pss),
        ]);
    }

    /// A fleet with histories has the memory of one without.
    pub(crate) fn fill(&self, report: &mut Report, megabytes_max: f64) {
        let (name, rss) = (self.shape.to_string(), self.held.rss);
        report.measured(&name, "autoscaler", "RSS MB with histories", &Samples(vec![rss]));
        report.goal(Goal::at_most(&format!("{name}: RSS in MB with histories"), rss, megabytes_max));
    }
}

impl LivedPast {
    /// The history of a revision whose load follows the hours of a day with noise, and whose pods follow the
    /// load.
    fn live(self) -> anyhow::Result<HistoryRecord> {
        let seconds = self.hours * 3600;
        let since_epoch =
            wall_time().duration_since(UNIX_EPOCH)?.saturating_sub(Duration::from_secs(seconds));
        let mut multiscaler = Multiscaler::default();
        tell(&mut multiscaler, Event::WallClockRead { since_epoch }, Timestamp::ZERO);
        for second in 0..seconds {
            if second.is_multiple_of(PODS_CHANGE_EVERY) {
                change_pods(&mut multiscaler, second);
            }
            let now = Timestamp::from_secs(second + 1);
            let sample = Sample { second, load: load(second) };
            let reported = Event::LoadReported { reporter: REPORTER, revision: REVISION, sample };
            tell(&mut multiscaler, reported, now);
            multiscaler.advance(now);
            while multiscaler.next_command().is_some() {}
        }
        let history = multiscaler.published_history(REVISION).context("the revision was used")?;
        Ok(history.record(Timestamp::from_secs(seconds)))
    }
}

/// The bounds keep the count that is set here; the first pod reports the load of all.
fn change_pods(multiscaler: &mut Multiscaler, second: u64) {
    let (now, count) = (Timestamp::from_secs(second), pods_at(second));
    let wanted = PodCount::new(count);
    let spec = ScalingSpec { min_scale: wanted, max_scale: Some(wanted), ..ScalingSpec::default() };
    let (spec, origin) = (Arc::new(spec), RevisionOrigin::Found);
    tell(multiscaler, Event::RevisionChanged { revision: REVISION, spec, wanted, origin }, now);
    let phase = PodPhase::Running;
    let pod = |id| PodFact { pod: PodId(id), phase, is_ready: true, is_reachable: true, is_outdated: false };
    let pods = (0..count).map(pod).collect();
    tell(multiscaler, Event::PodsChanged { revision: REVISION, pods }, now);
    if second == 0 {
        let (boot, history) = (BootId(1), Vec::new());
        let started = Event::ReporterStarted { reporter: REPORTER, boot, current_second: 0, history };
        tell(multiscaler, started, now);
    }
}

/// Hands over an event; the orders that follow from it are carried out by nothing.
fn tell(multiscaler: &mut Multiscaler, event: Event, now: Timestamp) {
    multiscaler.handle(event, now);
    while multiscaler.next_command().is_some() {}
}

/// Three pods at noon, nine at midnight.
fn pods_at(second: u64) -> u32 {
    let hour = second / 3600 % 24;
    3 + u32::try_from(hour.abs_diff(12) / 2).unwrap_or(0)
}

/// Six requests in flight for each pod, and sixty a second, each of them with noise of a fifth of its own.
fn load(second: u64) -> Load {
    let noise = second.wrapping_mul(2_654_435_761) >> 9;
    let part = |shift: u32| 0.8 + f64::from(u32::try_from((noise >> shift) % 41).unwrap_or(0)) / 100.0;
    let in_flight = 6.0 * f64::from(pods_at(second));
    Load {
        concurrency: Concurrency::clamped(in_flight * part(0)),
        request_rate: RequestRate::clamped(10.0 * in_flight * part(7)),
        ..Load::default()
    }
}
