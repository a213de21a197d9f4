//! Records of simulated runs: written, damaged, read and decided again.

mod exact_keyframes;
mod foreign_records;
mod histories;
mod losses;
mod report_size;
mod takeovers;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forecasting::{DemandMinutes, MinuteDemand};
use orchestration::{ControlEvent, OrchestratorSettings, RevisionFacts};
use prost::Message as _;
use scaling::{DemandDays, RevisionHistory};
use settings::{ClusterConfig, Metric, RevisionSettings};
use simulator::{
    LoadBeginning, LoadShape, LoadSource, OwnerCall, Scenario, ServiceLoad, ServiceScenario, SimulationPace,
    SimulationReport, TimeDistribution, WorldDelays, new_service, simulate_with_calls,
};
use tempfile::TempDir;
use vocabulary::{HopKey, PodCount, ReplicaName, RevisionName, Timestamp, WaitingPage};

use super::*;
use crate::wire::proto::FrameMessage;

const BUILD: &str = "0.1.0 of a test";

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

fn shape(option: &str) -> LoadShape {
    match ServiceLoad::parse(option).expect("a load").source {
        LoadSource::Shape(shape) => shape,
        LoadSource::File(name) => panic!("{name} is a file"),
    }
}

fn service(name: &str, load: &str, annotations: &[(&str, &str)]) -> ServiceScenario {
    let cluster = ClusterConfig::default();
    let settings =
        RevisionSettings::read(&texts(annotations), &cluster, None).expect("good annotations").value;
    let name_of_service = RevisionName::new("default", "service", name).expect("a name");
    ServiceScenario {
        facts: RevisionFacts {
            hop_keys: vec![HopKey::new("a-key-that-nobody-reads".to_owned())],
            waiting_page: WaitingPage::Auto,
            ..new_service(name_of_service, settings, 0, &cluster)
        },
        load: Some(shape(&format!("{name}={load}"))),
        service_time: TimeDistribution::parse("120ms").expect("a time"),
        start_up: TimeDistribution::parse("2s").expect("a time"),
    }
}

/// Twenty-five minutes of a steady Service, one that comes and goes, and one that rests.
fn calls() -> Vec<OwnerCall> {
    run().1
}

fn run() -> (SimulationReport, Vec<OwnerCall>) {
    let scenario = Scenario {
        cluster: Arc::new(ClusterConfig::default()),
        services: vec![
            service("steady", "constant,rate=50rps", &[("autoscaling.knative.dev/target", "16")]),
            service("timer", "timer,every=4m,requests=400", &[("autoscaling.knative.dev/target", "5")]),
            service("waiting", "constant,rate=1rps", &[("autoscaling.knative.dev/min-scale", "2")]),
        ],
        cores: BTreeMap::new(),
        delays: WorldDelays::default(),
        beginning: LoadBeginning::default(),
        length: Duration::from_secs(25 * 60),
        seed: 7,
        pace: SimulationPace::EveryRequest,
        faults: Vec::new(),
    };
    simulate_with_calls(&scenario).expect("a scenario that can be simulated")
}

fn entries(calls: &[OwnerCall]) -> Vec<RecordEntry> {
    let entry = |call: &OwnerCall| RecordEntry {
        at: call.at,
        input: call.event.clone().map_or(RecordInput::Advance, |event| RecordInput::Event(Box::new(event))),
        commands: call.commands.clone(),
    };
    calls.iter().map(entry).collect()
}

fn settings(folder: &Path, bytes_max: u64) -> RecordSettings {
    RecordSettings {
        folder: folder.to_owned(),
        bytes_max,
        owner: ReplicaName::new("autoscaler-1"),
        orchestrator: OrchestratorSettings::default(),
        build: BUILD.to_owned(),
        names: RecordedNames::Plain,
    }
}

/// A record of these entries, in a folder that goes with the value.
fn recorded(entries: &[RecordEntry], bytes_max: u64) -> TempDir {
    recorded_with(entries, |folder| settings(folder, bytes_max))
}

fn recorded_with(entries: &[RecordEntry], settings: impl Fn(&Path) -> RecordSettings) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = RecordWriter::new(settings(folder.path()));
    for some in entries.chunks(100) {
        writer.write(some).expect("the disk has room");
    }
    writer.flush().expect("the disk has room");
    folder
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let names = fs::read_dir(folder.path()).expect("the folder is there");
    let mut names: Vec<PathBuf> = names.map(|entry| entry.expect("an entry").path()).collect();
    names.sort();
    names
}

fn replayed(folder: &TempDir) -> ReplayReport {
    let reader = RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    RecordReplay::new(reader).run().expect("nothing is changed").clone()
}

#[test]
fn a_recorded_run_is_decided_again_as_it_was() {
    let entries = entries(&calls());
    let folder = recorded(&entries, 256 << 20);
    assert_eq!(files(&folder).len(), 3, "a segment of each ten minutes");
    let report = replayed(&folder);
    assert_eq!((report.differing, report.first_difference), (0, None));
    assert_eq!(report.calls, u64::try_from(entries.len()).expect("a number"));
    assert!(report.compared > 1_000 && report.decisions > 50, "{report:?}");
    assert!(report.gaps.is_empty() && !report.is_cut_off && report.keyframes == 0, "{report:?}");
    assert_eq!(report.exact_from, report.begins);
    assert_eq!(report.builds.iter().map(String::as_str).collect::<Vec<_>>(), [BUILD]);
    // No secret is in it, and it is small.
    let bytes: Vec<u8> = files(&folder).iter().flat_map(|file| fs::read(file).expect("a file")).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("a-key-that"), "a key is in the record");
    let per_entry = bytes.len() / entries.len();
    assert!(per_entry < 40, "{per_entry} bytes for each of {} entries", entries.len());
}

#[test]
fn a_replay_from_a_keyframe_on_decides_the_same_counts() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    for skipped in 1..files(&folder).len() {
        let mut reader =
            RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
        reader.skip_segments(skipped);
        let report = RecordReplay::new(reader).run().expect("nothing is changed").clone();
        assert_eq!((report.keyframes, report.gaps.len()), (1, 0), "{report:?}");
        assert_eq!(report.exact_from, None);
        assert!(report.likeness.compared > Duration::from_secs(800), "{report:?}");
        assert!(report.likeness.share() > 0.97, "from segment {skipped} on: {report:?}");
    }
}

#[test]
fn a_missing_segment_is_said_and_the_replay_goes_on_at_the_next_keyframe() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    fs::remove_file(&files(&folder)[1]).expect("it is there");
    let report = replayed(&folder);
    let [gap] = report.gaps.as_slice() else { panic!("one gap: {:?}", report.gaps) };
    assert_eq!(gap.problem, "the segments between 00000001 and 00000003 are missing");
    assert_eq!((report.differing, report.keyframes), (0, 1));
    assert!(report.compared > 500 && report.likeness.share() > 0.97, "{report:?}");
}

#[test]
fn a_record_that_is_cut_off_is_read_as_far_as_it_is_whole() {
    let entries = entries(&calls());
    let folder = recorded(&entries, 256 << 20);
    let last = files(&folder).pop().expect("a segment");
    let whole = fs::read(&last).expect("a file");
    for kept in [whole.len() - 1, whole.len() / 2, 100] {
        fs::write(&last, &whole[..kept]).expect("the disk has room");
        let report = replayed(&folder);
        assert_eq!((report.differing, report.keyframes), (0, 0), "{kept} bytes");
        assert!(report.calls > 1_000 && report.calls < u64::try_from(entries.len()).expect("a number"));
        assert!(report.is_cut_off || !report.gaps.is_empty(), "{kept} bytes: {report:?}");
    }
}

#[test]
fn a_damaged_segment_is_left_from_its_damage_on() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    let second = &files(&folder)[1];
    let mut bytes = fs::read(second).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(second, bytes).expect("the disk has room");
    let report = replayed(&folder);
    let [gap] = report.gaps.as_slice() else { panic!("one gap: {:?}", report.gaps) };
    assert!(gap.problem.contains("damaged"), "{gap}");
    assert_eq!((report.differing, report.keyframes), (0, 1));
}

#[test]
fn a_ring_keeps_the_newest_segments_and_is_replayed_from_its_first_keyframe_on() {
    let entries = entries(&calls());
    let bytes_max = 60_000;
    let folder = recorded(&entries, bytes_max);
    let bytes: u64 = files(&folder).iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
    // A block is written whole, so the last segment may be a block longer.
    assert!(bytes < bytes_max + (128 << 10), "{bytes} bytes");
    let report = replayed(&folder);
    assert_eq!(report.keyframes, 1, "{report:?}");
    assert!(report.likeness.compared > Duration::ZERO, "{report:?}");
}

#[test]
fn changed_settings_show_when_counts_differ_first() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    let changes = SettingsChanges {
        annotations: texts(&[("autoscaling.knative.dev/target", "2")]),
        ..SettingsChanges::default()
    };
    let reader = RecordReader::open(folder.path(), changes.clone()).expect("the folder is there");
    let report = RecordReplay::new(reader).with_changes(&changes).run().expect("a sound setting").clone();
    let first = report.divergences.first().expect("a smaller target takes more pods");
    assert_eq!(first.revision.name(), "steady");
    assert!(first.replayed > first.recorded, "{first:?}");
    assert!(first.at.at < Timestamp::from_secs(3_700), "the load begins after 3,600 s: {first:?}");
    // The same settings change nothing.
    let changes =
        SettingsChanges { config_map: texts(&[("stable-window", "60s")]), ..SettingsChanges::default() };
    let reader = RecordReader::open(folder.path(), changes.clone()).expect("the folder is there");
    let report = RecordReplay::new(reader).with_changes(&changes).run().expect("a sound setting").clone();
    assert_eq!(report.divergences, []);
    assert!(report.likeness.compared > Duration::from_secs(60 * 60), "{report:?}");
}

#[test]
fn changed_settings_that_are_refused_end_the_replay_with_the_reason() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    let changes = SettingsChanges {
        annotations: texts(&[("autoscaling.knative.dev/window", "1s")]),
        ..SettingsChanges::default()
    };
    let reader = RecordReader::open(folder.path(), changes.clone()).expect("the folder is there");
    let fault = RecordReplay::new(reader)
        .with_changes(&changes)
        .run()
        .expect_err("a second is no window")
        .to_string();
    assert!(fault.contains("autoscaling.knative.dev/window is \"1s\""), "{fault}");
}

#[test]
fn a_replay_ends_at_a_time_and_shows_what_was_decided_until_then() {
    let calls = calls();
    let folder = recorded(&entries(&calls), 256 << 20);
    let reader = RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    // Ten minutes after the load began: the wall clock of the world begins a second before the load's Monday.
    let until = Duration::from_secs(4 * 86_400 + 600);
    let mut replay = RecordReplay::new(reader).until(until);
    let ends = replay.run().expect("nothing is changed").ends;
    assert!(ends.wall <= until && ends.wall + Duration::from_secs(2) > until, "{ends:?}");
    let (snapshot, now) = replay.snapshot().expect("there is an orchestrator");
    let name = RevisionName::parse("default/service/steady").expect("a name");
    let view = snapshot.view(&name, now.at).expect("it is ours");
    let last = view.decisions().last().expect("it was decided about");
    assert!(last.at <= now.at && last.wanted.is_some(), "{last:?}");
}

#[test]
fn a_history_that_was_restored_is_read_as_it_was() {
    let folder = recorded(&entries(&calls()), 256 << 20);
    let reader = RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    let mut replay = RecordReplay::new(reader);
    replay.run().expect("nothing is changed");
    let (snapshot, now) = replay.snapshot().expect("there is an orchestrator");
    let (revision, history) = snapshot.history_records(now.at).next().expect("it was used");
    let history = Box::new(RevisionHistory::restore(history).expect("it was just written"));
    let mut minutes = DemandMinutes::beginning_at(29_000_000);
    minutes.push(Some(MinuteDemand { mean: 1.0, maximum: 4.0 }));
    let demand = Arc::new(DemandDays::of(Metric::Rps, &minutes));
    for event in [
        ControlEvent::HistoryRestored { revision: revision.clone(), history },
        ControlEvent::DemandImported { revision: revision.clone(), demand },
    ] {
        let shown = format!("{event:?}");
        let input = RecordInput::Event(Box::new(event));
        let body = crate::frames::input_out(&input, &crate::secrets::SecretHasher::default());
        let frame = FrameMessage { after: 0, body, outcome: None };
        let read = FrameMessage::decode(frame.encode_to_vec().as_slice()).expect("it was just written");
        let mut rereader = crate::rereading::SettingsRereader::default();
        let content = crate::frames::content_in(read.body, &mut rereader).expect("it was just written");
        let crate::frames::FrameContent::Event(again) = content else {
            panic!("it is an event: {content:?}")
        };
        assert_eq!(format!("{again:?}"), shown);
    }
}

#[test]
fn an_anonymous_record_has_no_name_and_decides_the_same_counts() {
    let entries = entries(&calls());
    let names = RecordedNames::Hidden(NameKey::default());
    let folder = recorded_with(&entries, |folder| RecordSettings {
        names: names.clone(),
        ..settings(folder, 256 << 20)
    });
    for skipped in 0..files(&folder).len() {
        let mut reader =
            RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
        reader.skip_segments(skipped);
        let report = RecordReplay::new(reader).run().expect("nothing is changed").clone();
        assert!(report.is_anonymous && report.gaps.is_empty() && report.unknown_frames == 0, "{report:?}");
        assert!(report.likeness.compared > Duration::from_secs(800), "{report:?}");
        assert!(report.likeness.share() > 0.97, "from segment {skipped} on: {report:?}");
    }
    // Its frames are compressed, so what stands in them is looked at as a reader reads it.
    let mut reader =
        RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there");
    let mut text = String::new();
    while let Some(part) = reader.next().expect("nothing is changed") {
        writeln!(text, "{part:?}").expect("a text takes everything");
    }
    assert!(text.contains("Hello") && text.contains("RevisionChanged"), "it holds a run");
    for name in ["steady", "timer", "default/", "autoscaler-1", "example.com"] {
        let place =
            text.find(name).map(|place| text[place.saturating_sub(200)..].chars().take(300).collect());
        assert_eq!(place, None::<String>, "{name} is in the record");
    }
    // The load is found again, under other names.
    let load = RecordedLoad::read(&[folder.path().to_owned()]).expect("the folder is there");
    let load = load.expect("the record says when it begins");
    assert_eq!(load.revisions.len(), 3, "{:?}", load.revisions.keys());
}

#[test]
fn a_load_is_read_out_of_a_record_as_it_was() {
    let (report, calls) = run();
    let folder = recorded(&entries(&calls), 256 << 20);
    let load = RecordedLoad::read(&[folder.path().to_owned()]).expect("the folder is there");
    let load = load.expect("the record says when it begins");
    assert!(load.gaps.is_empty() && load.length > Duration::from_secs(1_490), "{load:?}");
    for service in &report.services {
        let name = service.name.name();
        let recorded = &load.revisions[&service.name];
        let arrived: f64 = recorded.arrivals.iter().map(|requests| f64::from(*requests)).sum();
        let expected = f64::from(u32::try_from(service.requests).expect("few"));
        // The requests of the last second are not reported yet.
        assert!(
            arrived <= expected + 0.5 && arrived > expected * 0.99 - 2.0,
            "{name}: {arrived} of {expected}"
        );
        // An app works for 120 ms, and a message to the pod and back takes no time in its queue.
        let mean = recorded.mean_service_time().expect("there were requests");
        assert!(mean.abs_diff(Duration::from_millis(120)) < Duration::from_millis(6), "{name}: {mean:?}");
        // Messages of the platform and the first look of a queue-proxy take a little beside the 2 s.
        let two_seconds = Duration::from_millis(1_950)..Duration::from_millis(2_200);
        assert_eq!(
            recorded.start_ups.is_empty(),
            name == "waiting",
            "its pods are there from the beginning on"
        );
        assert!(recorded.start_ups.iter().all(|took| two_seconds.contains(took)), "{recorded:?}");
        let decided: Vec<PodCount> = recorded.counts.iter().map(|(_, count)| *count).collect();
        let ordered: Vec<PodCount> = service.counts.iter().map(|count| count.count).collect();
        assert!(decided.ends_with(&ordered[1..]), "{name}: {decided:?}, {ordered:?}");
    }
}

/// Written by the first program that wrote records. It is read by every later one, whatever that decides.
#[test]
fn the_first_record_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/first");
    let reader = RecordReader::open(&folder, SettingsChanges::default()).expect("it is committed");
    let report = RecordReplay::new(reader).run().expect("nothing is changed").clone();
    assert_eq!((report.calls, report.unknown_frames), (1_213, 0), "{report:?}");
    assert!(report.gaps.is_empty() && !report.is_cut_off && report.decisions > 0, "{report:?}");
    assert_eq!(report.ends.wall.as_secs(), 345_689);
}
