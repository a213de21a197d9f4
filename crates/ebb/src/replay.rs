//! `ebb replay`: what a recorded run decided, decided again.

mod texts;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use orchestration::ControlSnapshot;
use recording::{
    RecordReader, RecordReplay, RecordTime, ReplayReport, SettingsChanges, build_of_this_program,
    record_folders,
};
use vocabulary::RevisionName;

use crate::cli::{RecordMoment, ReplayOptions};
use crate::output;

/// The version of `ebb`, as records name it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Replays each record of a folder. Exit code 1 if a decision is not as it was recorded, 2 if what was
/// written cannot be used.
pub(crate) fn run(options: &ReplayOptions) -> anyhow::Result<ExitCode> {
    let named = options.record.display();
    let folders = record_folders(&options.record).with_context(|| format!("reading {named}"))?;
    if folders.is_empty() {
        output::print_problem(&format!("{named} holds no record; `ebb up --record {named}` writes one"));
        return Ok(ExitCode::from(2));
    }
    let build = build_of_this_program(VERSION);
    let mut exit = ExitCode::SUCCESS;
    for folder in &folders {
        match replay(folder, options, &build)? {
            ReplayEnd::AsRecorded => {}
            ReplayEnd::Different => exit = ExitCode::from(1),
            ReplayEnd::Refused => return Ok(ExitCode::from(2)),
        }
    }
    Ok(exit)
}

/// What became of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplayEnd {
    AsRecorded,
    /// A decision is another one, although the program is the same.
    Different,
    /// An option cannot be used with this record, which was said.
    Refused,
}

fn replay(folder: &Path, options: &ReplayOptions, build: &str) -> anyhow::Result<ReplayEnd> {
    let changes = options.changes();
    let reader = opened(folder, changes.clone())?;
    let mut replay = RecordReplay::new(reader).with_changes(&changes).by_program(build);
    if let Some(moment) = options.at {
        let Some(until) = instant(moment, folder)? else {
            output::print_problem(&format!("{} holds nothing that can be replayed", folder.display()));
            return Ok(ReplayEnd::Refused);
        };
        replay = replay.until(until);
    }
    let report = match replay.run() {
        Ok(report) => report.clone(),
        Err(refusal) => {
            output::print_problem(&refusal.to_string());
            return Ok(ReplayEnd::Refused);
        }
    };
    for warning in texts::warnings(&report, build) {
        output::print_warning(&warning);
    }
    output::print_shown(&texts::summary(&report, &changes))?;
    if options.at.is_some() || options.explain.is_some() {
        let shown = replay.snapshot().map(|(known, now)| explained(&known, now, options.explain.as_deref()));
        match shown {
            Some(Ok(text)) => output::print_shown(&text)?,
            Some(Err(problem)) => {
                output::print_problem(&problem);
                return Ok(ReplayEnd::Refused);
            }
            None => {}
        }
    }
    let is_same_program = report.builds.iter().all(|other| other == build);
    let differs = report.differing > 0 && is_same_program;
    Ok(if differs { ReplayEnd::Different } else { ReplayEnd::AsRecorded })
}

fn opened(folder: &Path, changes: SettingsChanges) -> anyhow::Result<RecordReader> {
    RecordReader::open(folder, changes).with_context(|| format!("reading {}", folder.display()))
}

/// The instant that is meant; `None` if the record does not say when it begins.
fn instant(moment: RecordMoment, folder: &Path) -> anyhow::Result<Option<Duration>> {
    let time_of_day = match moment {
        RecordMoment::Instant(instant) => return Ok(Some(instant)),
        RecordMoment::TimeOfDay(time_of_day) => time_of_day,
    };
    // The first event says when that is.
    let mut first = RecordReplay::new(opened(folder, SettingsChanges::default())?).until(Duration::ZERO);
    let begins = first.run().ok().and_then(|report: &ReplayReport| report.begins);
    Ok(begins.map(|RecordTime { wall, .. }| {
        let day = Duration::from_secs(86_400);
        let midnight = Duration::from_secs(wall.as_secs() / day.as_secs() * day.as_secs());
        let same_day = midnight + time_of_day;
        if same_day < wall { same_day + day } else { same_day }
    }))
}

/// The last decisions about the revision that is meant, or one line for each revision.
fn explained(known: &ControlSnapshot, now: RecordTime, name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else { return Ok(texts::revisions(known, now)) };
    let is_meant = |revision: &&RevisionName| {
        revision.as_str() == name || revision.as_str().ends_with(&format!("/{name}"))
    };
    let all: Vec<&RevisionName> = known.revisions().iter().map(|(revision, _)| revision).collect();
    let meant: Vec<&RevisionName> = all.iter().copied().filter(is_meant).collect();
    let view = match meant.as_slice() {
        [revision] => known.view(revision, now.at),
        _ => None,
    };
    view.map(|view| texts::decisions(&view, now)).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|revision| revision.as_str()).collect();
        format!("--explain {name}: one of these is meant: {}", names.join(", "))
    })
}
