//! Records that hold the state of the control loop, replayed by the program that wrote it and by another one.

use orchestration::Orchestrator;
use scaling::RevisionStatus;

use super::*;
use crate::block::{MAGIC, block_of, next_block};
use crate::wire::proto::FrameBody;

/// The entries with the state of the control loop every ten minutes, as the event loop hands it over.
fn with_states(entries: Vec<RecordEntry>) -> Vec<RecordEntry> {
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    let mut due = entries.first().expect("something happens").at + KEYFRAME_EVERY;
    let mut all = Vec::new();
    for entry in entries {
        if entry.at >= due {
            let input = RecordInput::State(Box::new(orchestrator.exact_state()));
            all.push(RecordEntry { at: entry.at, input, commands: Vec::new() });
            due = entry.at + KEYFRAME_EVERY;
        }
        call(&mut orchestrator, &entry);
        all.push(entry);
    }
    all
}

/// The entries with the state of the control loop behind them, as an autoscaler ends that is told to.
fn with_last_state(mut entries: Vec<RecordEntry>) -> Vec<RecordEntry> {
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    for entry in &entries {
        call(&mut orchestrator, entry);
    }
    let at = entries.last().expect("something happens").at;
    let input = RecordInput::State(Box::new(orchestrator.exact_state()));
    entries.push(RecordEntry { at, input, commands: Vec::new() });
    entries
}

fn call(orchestrator: &mut Orchestrator, entry: &RecordEntry) {
    match &entry.input {
        RecordInput::Event(event) => orchestrator.handle(ControlEvent::clone(event), entry.at),
        RecordInput::Advance => orchestrator.advance(entry.at),
        RecordInput::State(_) => panic!("the simulator hands none over"),
    }
    while orchestrator.next_command().is_some() {}
}

fn replayed_from(folder: &TempDir, skipped: usize, program: &str) -> ReplayReport {
    let mut reader =
        RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    reader.skip_segments(skipped);
    RecordReplay::new(reader).by_program(program).run().expect("nothing is changed").clone()
}

/// Cuts each state in a segment in half. The check numbers of its blocks are right.
fn halve_states(file: &Path) {
    let bytes = fs::read(file).expect("a file");
    let (magic, mut blocks) = bytes.split_at(MAGIC.len());
    let mut halved = magic.to_vec();
    while let Some(frames) = next_block(&mut blocks).expect("whole blocks") {
        let (mut left, mut written) = (frames.as_slice(), Vec::new());
        while !left.is_empty() {
            let mut frame = FrameMessage::decode_length_delimited(&mut left).expect("a frame");
            if let Some(FrameBody::ExactState(exact)) = &mut frame.body {
                exact.state.truncate(exact.state.len() / 2);
            }
            frame.encode_length_delimited(&mut written).expect("a growing buffer has room");
        }
        halved.extend(block_of(&written));
    }
    fs::write(file, halved).expect("the disk has room");
}

#[test]
fn the_same_program_replays_every_command_from_each_keyframe_on() {
    let folder = recorded(&with_states(entries(&calls())), 256 << 20);
    assert_eq!(files(&folder).len(), 3, "a state comes with its keyframe, and makes no segment of its own");
    for skipped in 1..3 {
        let report = replayed_from(&folder, skipped, BUILD);
        assert_eq!((report.differing, report.first_difference), (0, None), "from segment {skipped} on");
        assert_eq!((report.keyframes, report.states, report.exact_from), (1, 1, report.begins));
        assert!(report.compared > 50 && report.decisions > 0, "{report:?}");
    }
    let report = replayed_from(&folder, 0, BUILD);
    assert_eq!((report.differing, report.states), (0, 0), "exact from the beginning on: {report:?}");
    let bytes: Vec<u8> = files(&folder).iter().flat_map(|file| fs::read(file).expect("a file")).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("a-key-that"), "a key is in the record");
}

#[test]
fn a_record_that_ends_with_a_state_ends_as_the_run_did() {
    let folder = recorded(&with_last_state(entries(&calls())), 256 << 20);
    let end = |skipped: usize| {
        let mut reader =
            RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
        reader.skip_segments(skipped);
        let mut replay = RecordReplay::new(reader).by_program(BUILD);
        let states = replay.run().expect("nothing is changed").states;
        let (known, now) = replay.snapshot().expect("a part of it is replayed");
        let revisions: Vec<(RevisionName, RevisionStatus)> =
            known.views(now.at).map(|view| (view.facts().name.clone(), view.status.clone())).collect();
        (states, revisions)
    };
    let ((none, whole), (one, from_a_keyframe)) = (end(0), end(1));
    assert_eq!((none, one, whole.len()), (0, 1, 3));
    assert_eq!(from_a_keyframe, whole);
}

#[test]
fn another_program_compares_counts_from_a_keyframe_on() {
    let folder = recorded(&with_states(entries(&calls())), 256 << 20);
    let report = replayed_from(&folder, 1, "0.1.0 of another test");
    assert_eq!((report.keyframes, report.states, report.exact_from), (1, 0, None));
    assert!(report.likeness.share() > 0.97 && report.unknown_frames == 0, "{report:?}");
}

#[test]
fn a_state_that_cannot_be_read_is_said_and_counts_are_compared() {
    let folder = recorded(&with_states(entries(&calls())), 256 << 20);
    for file in files(&folder) {
        halve_states(&file);
    }
    let report = replayed_from(&folder, 1, BUILD);
    assert_eq!((report.keyframes, report.states, report.exact_from), (1, 0, None));
    assert!(report.likeness.share() > 0.97, "{report:?}");
    let problems: Vec<String> = report.gaps.iter().map(ToString::to_string).collect();
    let is_said = |problem: &String| {
        problem.contains("an exact keyframe is not the state of this program: ")
            && problem.ends_with("; that state is left out")
    };
    assert!(problems.len() == 2 && problems.iter().all(is_said), "{problems:?}");
}

#[test]
fn a_small_record_has_no_state() {
    let folder = recorded(&with_states(entries(&calls())), 60_000);
    let report = replayed_from(&folder, 0, BUILD);
    assert_eq!((report.keyframes, report.states, report.exact_from), (1, 0, None), "{report:?}");
}

#[test]
fn an_anonymous_record_has_no_state() {
    let hidden = |folder: &Path| RecordSettings {
        names: RecordedNames::Hidden(NameKey::default()),
        ..settings(folder, 256 << 20)
    };
    let folder = recorded_with(&with_states(entries(&calls())), hidden);
    let report = replayed_from(&folder, 1, BUILD);
    assert_eq!((report.keyframes, report.states, report.exact_from), (1, 0, None));
}
