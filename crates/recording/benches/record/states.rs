//! What does an exact keyframe cost, and is a replay exact from one on?

use std::time::Duration;

use orchestration::{ExactState, Orchestrator, OrchestratorSettings};
use recording::{KEYFRAME_EVERY, RecordEntry, RecordInput, RecordReader, RecordReplay, SettingsChanges};
use simulator::OwnerCall;

use crate::figures::Figure;
use crate::runs::{BUILD, CROWD, GoalEnd, cpu_seconds, crowded_service, entry, run, write};

/// The event loop copies its state for an exact keyframe, of at most 200 revisions and 1,000 pods, in at most
/// 5 ms: 4 ms of them for the revisions, each with a pod, and 1 ms for more pods.
const REVISION_COPY_MS_MAX: f64 = 4.0 / 200.0;
const POD_COPY_MS_MAX: f64 = 1.0 / 1_000.0;
const STATE_COPIES: u32 = 20;
/// All pods of a crowd are ready by then.
const CROWD_LENGTH: Duration = Duration::from_secs(60);

/// What a copy of the state of so many Services with a hundred pods each takes.
pub(crate) fn state_of_crowds(services: u32) -> GoalEnd {
    let calls = run((0..services).map(crowded_service), CROWD_LENGTH, 1);
    let pods = services * CROWD;
    let limit = REVISION_COPY_MS_MAX * f64::from(services) + POD_COPY_MS_MAX * f64::from(pods);
    copied_state(&calls, &format!("{pods} pods of {services} Services"), limit)
}

/// What a copy of the state takes of so many Services with a pod each, at the end of a run of theirs.
pub(crate) fn state_of_services(calls: &[OwnerCall], services: u32) -> GoalEnd {
    let limit = REVISION_COPY_MS_MAX * f64::from(services);
    copied_state(calls, &format!("{services} Services"), limit)
}

/// The event loop stands still meanwhile.
fn copied_state(calls: &[OwnerCall], size: &str, limit: f64) -> GoalEnd {
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    for call in calls {
        make(call, &mut orchestrator);
    }
    let before = cpu_seconds();
    // They are dropped by the thread that writes.
    let copies: Vec<ExactState> = (0..STATE_COPIES).map(|_| orchestrator.exact_state()).collect();
    let milliseconds = (cpu_seconds() - before) * 1e3 / f64::from(STATE_COPIES);
    drop(copies);
    println!("state: a copy of {size} takes {milliseconds:.3} ms (at most {limit:.1})");
    let goal = format!("{size}: ms of the event loop for a state");
    GoalEnd { figures: vec![Figure::at_most(&goal, milliseconds, limit)], is_about_speed: true }
}

/// Makes a call again, without what follows from it.
fn make(call: &OwnerCall, orchestrator: &mut Orchestrator) {
    match &call.event {
        Some(event) => orchestrator.handle(event.clone(), call.at),
        None => orchestrator.advance(call.at),
    }
    while orchestrator.next_command().is_some() {}
}

/// Records a run with its states, and replays it from its first keyframe on by the program that wrote it.
pub(crate) fn from_keyframe(calls: Vec<OwnerCall>) -> GoalEnd {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), &with_states(calls));
    let mut reader =
        RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    reader.skip_segments(1);
    let mut replay = RecordReplay::new(reader).by_program(BUILD);
    let report = replay.run().expect("nothing is changed");
    let found = format!("{} of {} differ", report.differing, report.compared);
    println!("from a keyframe: {} calls, {} states; {found}", report.calls, report.states);
    let is_met = report.differing == 0 && report.compared > 0 && report.exact_from == report.begins;
    let goal = "from a keyframe: every hash comes out again".to_owned();
    GoalEnd { figures: vec![Figure { goal, found, at_most: None, is_met }], is_about_speed: false }
}

/// The entries of these calls, with the state of the control loop every ten minutes, as the event loop hands
/// it over.
fn with_states(calls: Vec<OwnerCall>) -> Vec<RecordEntry> {
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    let mut due = calls.first().expect("something happens").at + KEYFRAME_EVERY;
    let mut entries = Vec::new();
    for call in calls {
        if call.at >= due {
            let input = RecordInput::State(Box::new(orchestrator.exact_state()));
            entries.push(RecordEntry { at: call.at, input, commands: Vec::new() });
            due = call.at + KEYFRAME_EVERY;
        }
        make(&call, &mut orchestrator);
        entries.push(entry(call));
    }
    entries
}
