//! Calls on their way to a record: written in their order, or dropped without a wait.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use orchestration::{LinkId, Orchestrator, PlatformFact};
use recording::{RecordReader, RecordReplay, RecordedNames, SettingsChanges};
use runtime::{Clock, MetricsRegistry};
use vocabulary::{Epoch, Ownership, Sample};

use super::*;
use crate::snapshot::snapshots;

fn started(folder: &Path) -> Recorder {
    let metrics = AutoscalerMetrics::register(&MetricsRegistry::default());
    let target = RecordTarget {
        folder: folder.to_owned(),
        bytes_max: 1 << 20,
        version: "a test",
        names: RecordedNames::Plain,
    };
    let (owner, orchestrator) = (ReplicaName::new("autoscaler-1"), OrchestratorSettings::default());
    let (_, snapshots) = snapshots(owner.clone(), Clock::start());
    let recorded = RecordedLoop { owner, orchestrator, metrics, snapshots };
    Recorder::start(target, recorded, Vec::new()).expect("a thread")
}

fn fact(fact: PlatformFact) -> RecordInput {
    RecordInput::Event(Box::new(ControlEvent::Platform(fact)))
}

fn load(second: u64) -> RecordInput {
    let sample = Sample { second, ..Sample::default() };
    let word = PodWord::Load { sample, usage: None, late_bytes: None };
    RecordInput::Event(Box::new(ControlEvent::PodSpoke { link: LinkId(1), word }))
}

/// Calls the orchestrator as the event loop does.
fn call(recorder: &mut Recorder, orchestrator: &mut Orchestrator, input: RecordInput, now: Timestamp) {
    recorder.begin(input.clone(), now);
    match input {
        RecordInput::Event(event) => orchestrator.handle(*event, now),
        RecordInput::Advance => orchestrator.advance(now),
        RecordInput::State(_) => {}
    }
    while let Some(command) = orchestrator.next_command() {
        recorder.command(&command);
    }
    recorder.hand_over_if_due(now);
}

#[tokio::test]
async fn calls_are_written_until_the_end_and_decided_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recorder = started(folder.path());
    let mut orchestrator = Orchestrator::new(OrchestratorSettings::default());
    let facts = [
        PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(1))),
        PlatformFact::ConfigChanged(std::sync::Arc::default()),
        PlatformFact::ActivatorsChanged(Vec::new()),
        PlatformFact::Synced,
    ];
    for (second, said) in (3_600..).zip(facts) {
        call(&mut recorder, &mut orchestrator, fact(said), Timestamp::from_secs(second));
        call(&mut recorder, &mut orchestrator, RecordInput::Advance, Timestamp::from_secs(second));
    }
    recorder.finish().await;
    let reader = RecordReader::open(folder.path(), SettingsChanges::default()).expect("it was written");
    let report = RecordReplay::new(reader).run().expect("nothing is changed").clone();
    assert_eq!((report.calls, report.differing, report.gaps.len()), (8, 0, 0), "{report:?}");
}

#[test]
fn a_state_is_asked_for_every_ten_minutes_unless_it_is_large() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recorder = started(folder.path());
    let small = StateSize { revisions: 1, pods: 1 };
    assert!(!recorder.takes_state(small, Timestamp::from_secs(9_000)), "no call was made yet");
    assert!(!recorder.takes_last_state(small), "a record without a call has no state");
    recorder.begin(RecordInput::Advance, Timestamp::from_secs(3_600));
    let mut takes = |size: StateSize, second: u64| recorder.takes_state(size, Timestamp::from_secs(second));
    assert_eq!([4_199, 4_200, 4_201].map(|second| takes(small, second)), [false, true, false]);
    let many_revisions = StateSize { revisions: STATE_SIZE_MAX.revisions + 1, ..small };
    assert!(!takes(many_revisions, 4_800) && !takes(small, 4_801), "too large, and not asked for again");
    let many_pods = StateSize { pods: STATE_SIZE_MAX.pods + 1, ..small };
    assert!(!takes(many_pods, 5_400) && takes(STATE_SIZE_MAX, 6_000));
    assert!(recorder.takes_last_state(small) && !recorder.takes_last_state(many_pods));
    recorder.leave();
}

#[test]
fn a_thread_that_is_too_slow_costs_measurements_and_no_facts() {
    let registry = MetricsRegistry::default();
    let metrics = AutoscalerMetrics::register(&registry);
    let (batches, waiting) = sync_channel(1);
    let (_finish, finished) = oneshot::channel();
    let mut recorder = Recorder {
        calls: Vec::new(),
        since: Timestamp::ZERO,
        state_at: None,
        takes_states: false,
        continuity: RecordContinuity::Whole,
        batches,
        finished,
        metrics,
    };
    // Nothing reads: the first hand-over fills the channel.
    for second in 0..3 {
        recorder.begin(load(second), Timestamp::from_secs(second));
        recorder.begin(fact(PlatformFact::Synced), Timestamp::from_secs(second));
        recorder.hand_over_if_due(Timestamp::from_secs(second + 1));
    }
    assert_eq!(recorder.continuity, RecordContinuity::CallsDropped);
    assert!(registry.encode().contains("autoscaler_record_dropped_total 2"), "{}", registry.encode());
    let Ok(RecordBatch::Whole(first)) = waiting.try_recv() else { panic!("the first hand-over waits") };
    assert_eq!(first.len(), 2);
    recorder.hand_over_if_due(Timestamp::from_secs(9));
    let Ok(RecordBatch::Remains(kept)) = waiting.try_recv() else { panic!("facts follow, marked so") };
    assert_eq!((kept.len(), recorder.continuity), (2, RecordContinuity::Whole));
    // The thread is gone: the record ends, and that is counted.
    drop(waiting);
    recorder.begin(load(9), Timestamp::from_secs(10));
    recorder.hand_over_if_due(Timestamp::from_secs(11));
    recorder.begin(load(10), Timestamp::from_secs(12));
    assert_eq!(recorder.continuity, RecordContinuity::Ended);
}
