//! What does it cost to write a record, and how fast is one replayed?
//!
//! ```text
//! cargo bench -p recording --bench record               # two hours of 100 Services
//! cargo bench -p recording --bench record -- --quick    # minutes of 20 Services: shows that it works
//! ```
//!
//! The runs are those of the simulator, whose control loop is the real one. In the first hour an autoscaler
//! decides in two lives, and a tenth of the Services has bursts; its first life is also replayed from its
//! first keyframe on. In the second one two autoscalers are killed, stall and take over from each other.

#[path = "../../simulator/benches/shared/figures.rs"]
mod figures;
#[path = "record/runs.rs"]
mod runs;
#[path = "record/states.rs"]
mod states;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use figures::Figure;
use orchestration::ControlEvent;
use recording::{
    RecordEntry, RecordInput, RecordReader, RecordReplay, ReplayReport, SettingsChanges, record_folders,
};
use runs::{GoalEnd, cpu_seconds, entry, run, service, write};
use simulator::{OwnerCall, WorldPlan, lives_of_owners};
use states::{from_keyframe, state_of_crowds, state_of_services};
use vocabulary::{ActivatorWord, PodWord};

/// The goals: times as fast as the run was, bytes for each report, and seconds of a core for each entry:
/// 10,000 links with a report a second may take 0.05 cores.
const SPEED_MIN: f64 = 500.0;
const REPORT_BYTES_MAX: f64 = 12.0;
const ENTRY_SECONDS_MAX: f64 = 0.05 / 10_000.0;

fn main() -> ExitCode {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (services, length) = if is_quick { (20, 300) } else { (100, 1_800) };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut written, mut goals) = (WritingCost::default(), vec![state_of_crowds(services / 10)]);
    for life in 1..=2 {
        let calls = run((0..services).map(service), Duration::from_secs(length), life);
        if life == 1 {
            goals.push(state_of_services(&calls, services));
            // The short form has no keyframe.
            goals.extend((!is_quick).then(|| from_keyframe(calls.clone())));
        }
        written.add(folder.path(), calls);
    }
    let lived = Duration::from_secs(2 * length);
    let restarts = replayed("restarts", &[folder.path().to_owned()], lived);
    goals.extend([written.show(folder.path()), restarts, takeovers(services, lived)]);
    // How fast a build without optimisation is says nothing, so the short form asks for no speed.
    let are_met = goals.iter().all(|goal| goal.is_met() || (is_quick && goal.is_about_speed));
    if !is_quick {
        let figures: Vec<Figure> = goals.into_iter().flat_map(|goal| goal.figures).collect();
        figures::keep("recording", "record", &figures);
    }
    if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Records two autoscalers that restart and take over from each other, and replays both records.
fn takeovers(services: u32, length: Duration) -> GoalEnd {
    let services = usize::try_from(services).expect("a few");
    let plan = WorldPlan::of_takeovers(1, services, length);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let lives = lives_of_owners(&plan);
    println!("takeovers: {} lives of two autoscalers, {} faults", lives.len(), plan.faults());
    for life in lives {
        let of_owner = folder.path().join(life.owner.as_str());
        let entries: Vec<RecordEntry> = life.calls.into_iter().map(entry).collect();
        write(&of_owner, &entries);
    }
    let folders = record_folders(folder.path()).expect("the folder is there");
    replayed("takeovers", &folders, plan.length())
}

/// What it took to write all entries.
#[derive(Default)]
struct WritingCost {
    entries: u32,
    reports: u32,
    seconds: f64,
    /// The bytes of a record that has the reports alone.
    report_bytes: u64,
}

impl WritingCost {
    /// Writes the calls of one life of the autoscaler.
    fn add(&mut self, folder: &Path, calls: Vec<OwnerCall>) {
        let entries: Vec<RecordEntry> = calls.into_iter().map(entry).collect();
        let before = cpu_seconds();
        write(folder, &entries);
        self.seconds += cpu_seconds() - before;
        let count = |number: usize| u32::try_from(number).expect("a number in memory");
        self.entries += count(entries.len());
        let reports: Vec<RecordEntry> = entries.into_iter().filter(is_report).collect();
        self.reports += count(reports.len());
        let alone = tempfile::tempdir().expect("a temporary folder can be made");
        write(alone.path(), &reports);
        self.report_bytes += bytes_of(alone.path());
    }

    fn show(&self, folder: &Path) -> GoalEnd {
        let number = |bytes: u64| f64::from(u32::try_from(bytes).expect("less than 4 GB"));
        let bytes = bytes_of(folder);
        let of_report = number(self.report_bytes) / f64::from(self.reports);
        let of_entry = self.seconds / f64::from(self.entries);
        println!(
            "written: {} entries, {} of them reports, {bytes} bytes; reports alone take {of_report:.1} bytes each (at most {REPORT_BYTES_MAX}), {:.2} µs of a core for each entry (at most {:.2})",
            self.entries,
            self.reports,
            of_entry * 1e6,
            ENTRY_SECONDS_MAX * 1e6
        );
        let figures = vec![
            Figure::at_most("bytes of the record for each report", of_report, REPORT_BYTES_MAX),
            Figure::at_most("µs of a core for each entry", of_entry * 1e6, ENTRY_SECONDS_MAX * 1e6),
        ];
        GoalEnd { figures, is_about_speed: of_report <= REPORT_BYTES_MAX }
    }
}

/// The bytes of the files of a record.
fn bytes_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("the folder is there");
    files.map(|file| file.and_then(|file| file.metadata()).expect("a file is there").len()).sum()
}

/// Whether an entry is what a reporter measured in a second.
fn is_report(entry: &RecordEntry) -> bool {
    let RecordInput::Event(event) = &entry.input else { return false };
    matches!(
        **event,
        ControlEvent::PodSpoke { word: PodWord::Load { .. }, .. }
            | ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { .. }, .. }
    )
}

/// Replays the records of a run that took so long, which has this name among the goals.
fn replayed(run: &str, folders: &[PathBuf], length: Duration) -> GoalEnd {
    let (mut all, mut is_exact) = (ReplayReport::default(), true);
    let before = cpu_seconds();
    for folder in folders {
        let reader = RecordReader::open(folder, SettingsChanges::default()).expect("the folder is there");
        let mut replay = RecordReplay::new(reader);
        let report = replay.run().expect("nothing is changed");
        is_exact &= report.differing == 0 && report.gaps.is_empty() && report.keyframes == 0;
        all.calls += report.calls;
        all.decisions += report.decisions;
        all.differing += report.differing;
        all.compared += report.compared;
    }
    let seconds = cpu_seconds() - before;
    let speed = length.as_secs_f64() / seconds;
    println!(
        "replayed: {} calls and {} decisions in {seconds:.1} s of a core, {speed:.0} times as fast as the run (at least {SPEED_MIN}); {} of {} hashes differ",
        all.calls, all.decisions, all.differing, all.compared
    );
    let figures = vec![
        Figure {
            goal: format!("{run}: every hash comes out again"),
            found: format!("{} of {} differ", all.differing, all.compared),
            at_most: None,
            is_met: is_exact,
        },
        Figure {
            goal: format!("{run}: times as fast as the run"),
            found: format!("{speed:.0} (at least {SPEED_MIN:.0})"),
            at_most: None,
            is_met: speed >= SPEED_MIN,
        },
    ];
    GoalEnd { figures, is_about_speed: is_exact }
}
