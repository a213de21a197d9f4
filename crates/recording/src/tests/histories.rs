//! Histories in keyframes, from which a replay goes on.

use std::ops::ControlFlow;

use scaling::HistoryRecord;

use super::*;

/// The history of one revision that predicts.
#[derive(Debug)]
struct OneHistory {
    revision: RevisionName,
    record: HistoryRecord,
}

impl KeyframeHistories for OneHistory {
    fn hand_out(&self, take: &mut dyn FnMut(&RevisionName, HistoryRecord) -> ControlFlow<()>) {
        let ControlFlow::Continue(()) = take(&self.revision, self.record.clone()) else {
            panic!("a record has room for one");
        };
    }
}

/// The history of a revision after so many seconds of a record's load, without its first segments.
fn history_at(folder: &TempDir, skipped: usize, seconds: u64, name: &RevisionName) -> HistoryRecord {
    let mut reader =
        RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    reader.skip_segments(skipped);
    let mut replay = RecordReplay::new(reader).until(Duration::from_secs(4 * 86_400 + seconds));
    replay.run().expect("nothing is changed");
    let (snapshot, now) = replay.snapshot().expect("there is an orchestrator");
    let mut records = snapshot.history_records(now.at);
    records.find(|(revision, _)| *revision == name).expect("it was used").1
}

/// The first second that a history tells of.
fn first_second(record: &HistoryRecord) -> Option<u64> {
    let value = serde_json::to_value(record).expect("a history is numbers and bytes");
    value["seconds"]["blocks"][0]["first"].as_u64()
}

#[test]
fn a_replay_from_a_keyframe_goes_on_from_the_history_of_a_revision_that_predicts() {
    let entries = entries(&calls());
    let plain = recorded(&entries, 256 << 20);
    let name = RevisionName::parse("default/service/steady").expect("three parts");
    let record = history_at(&plain, 0, 590, &name);
    let began = first_second(&record).expect("it had requests");
    let folder = tempfile::tempdir().expect("a folder");
    let history = OneHistory { revision: name.clone(), record };
    let mut writer = RecordWriter::new(settings(folder.path(), 256 << 20)).with_histories(Box::new(history));
    for some in entries.chunks(100) {
        writer.write(some).expect("the disk has room");
    }
    writer.flush().expect("the disk has room");
    assert_eq!(first_second(&history_at(&folder, 1, 660, &name)), Some(began));
    let without = first_second(&history_at(&plain, 1, 660, &name)).expect("it had requests");
    assert!(without >= began + 590, "{without} and {began}");
}
