//! Records of two owners that restart and take over from each other.

use simulator::{WorldPlan, lives_of_owners};

use super::*;

#[test]
fn each_decision_of_owners_that_take_over_from_each_other_comes_out_again() {
    let plan = WorldPlan::of_takeovers(1, 4, Duration::from_secs(15 * 60));
    let folder = tempfile::tempdir().expect("a folder");
    let lives = lives_of_owners(&plan);
    for life in &lives {
        let owner = folder.path().join(life.owner.as_str());
        let mut writer =
            RecordWriter::new(RecordSettings { owner: life.owner.clone(), ..settings(&owner, 256 << 20) });
        writer.write(&entries(&life.calls)).expect("the disk has room");
        writer.flush().expect("the disk has room");
    }
    let (mut calls, mut compared) = (0, 0);
    for owner in record_folders(folder.path()).expect("the folder is there") {
        let reader = RecordReader::open(&owner, SettingsChanges::default()).expect("the folder is there");
        let report = RecordReplay::new(reader).run().expect("nothing is changed").clone();
        assert_eq!((report.differing, report.first_difference), (0, None), "{}: {report:?}", owner.display());
        assert!(report.gaps.is_empty() && report.unknown_frames == 0 && report.keyframes == 0, "{report:?}");
        calls += report.calls;
        compared += report.compared;
    }
    // Each life of an owner but its first one is a restart.
    let load = RecordedLoad::read(&record_folders(folder.path()).expect("the folder is there"));
    let load = load.expect("it can be read").expect("it says when it begins");
    assert_eq!(load.restarts.len(), lives.len() - 2, "{:?}", load.restarts);
    let are_in_order = load.restarts.iter().all(|restart| restart.ended <= restart.began);
    assert!(are_in_order && load.begins_with_autoscaler, "{:?}", load.restarts);
    let called: usize = lives.iter().map(|life| life.calls.len()).sum();
    assert!(lives.len() > 2 && compared > 1_000, "{} lives, {compared} hashes", lives.len());
    assert_eq!(calls, u64::try_from(called).expect("a number"));
}
