//! How many bytes does a report take in a file, and does a segment of them need any other one?

use vocabulary::{ActivatorWord, PodWord};

use super::*;
use crate::frames::FrameContent;
use crate::reader::RecordPart;

/// The most bytes for what a pod or an activator measured in a second.
const REPORT_BYTES_MAX: f64 = 12.0;

fn is_load(event: &ControlEvent) -> bool {
    matches!(
        event,
        ControlEvent::PodSpoke { word: PodWord::Load { .. }, .. }
            | ControlEvent::ActivatorSpoke { word: ActivatorWord::Loads { .. }, .. }
    )
}

/// What was measured in two minutes of a hundred Services, whose requests come through an activator.
fn reports() -> Vec<RecordEntry> {
    let service = |number: u32| ServiceScenario {
        service_time: TimeDistribution::parse("120ms,p99=800ms").expect("a time"),
        ..service(&format!("app-{number}"), "constant,rate=2rps", &[("autoscaling.knative.dev/target", "10")])
    };
    let scenario = Scenario {
        cluster: Arc::new(ClusterConfig::default()),
        services: (0..100).map(service).collect(),
        cores: BTreeMap::new(),
        delays: WorldDelays::default(),
        beginning: LoadBeginning::default(),
        length: Duration::from_secs(120),
        seed: 1,
        pace: SimulationPace::EveryRequest,
        faults: Vec::new(),
    };
    let (_, calls) = simulate_with_calls(&scenario).expect("a scenario that can be simulated");
    let is_report = |entry: &RecordEntry| match &entry.input {
        RecordInput::Event(event) => is_load(event),
        RecordInput::Advance | RecordInput::State(_) => false,
    };
    entries(&calls).into_iter().filter(is_report).collect()
}

/// The loads of a record, each with its time.
fn loads_in(mut reader: RecordReader) -> Vec<(Timestamp, String)> {
    let mut loads = Vec::new();
    while let Some(part) = reader.next().expect("nothing is changed") {
        let RecordPart::Frame(frame) = part else { panic!("nothing is missing: {part:?}") };
        if let FrameContent::Event(event) = &frame.content
            && is_load(event)
        {
            loads.push((frame.at, format!("{event:?}")));
        }
    }
    loads
}

fn shown(entries: &[RecordEntry]) -> Vec<(Timestamp, String)> {
    let shown = |entry: &RecordEntry| match &entry.input {
        RecordInput::Event(event) if is_load(event) => Some((entry.at, format!("{event:?}"))),
        RecordInput::Event(_) | RecordInput::Advance | RecordInput::State(_) => None,
    };
    entries.iter().filter_map(shown).collect()
}

fn opened(folder: &TempDir) -> RecordReader {
    RecordReader::open(folder.path(), SettingsChanges::default()).expect("the folder is there")
}

#[test]
fn a_report_takes_few_bytes_and_is_read_as_it_was_handled() {
    let reports = reports();
    let folder = recorded(&reports, 256 << 20);
    let bytes: u64 = files(&folder).iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
    let number = |bytes: u64| f64::from(u32::try_from(bytes).expect("less than 4 GB"));
    let each = number(bytes) / number(u64::try_from(reports.len()).expect("a few thousand"));
    println!("{each:.1} bytes for each of {} reports", reports.len());
    assert!(reports.len() > 10_000 && each <= REPORT_BYTES_MAX, "{each:.1} bytes for each report");
    assert_eq!(loads_in(opened(&folder)), shown(&reports));
}

#[test]
fn a_segment_is_read_without_the_ones_before_it() {
    let entries = entries(&calls());
    let folder = recorded(&entries, 256 << 20);
    let all = shown(&entries);
    assert_eq!(loads_in(opened(&folder)), all);
    for skipped in 1..files(&folder).len() {
        let mut reader = opened(&folder);
        reader.skip_segments(skipped);
        let loads = loads_in(reader);
        assert!(!loads.is_empty() && all.ends_with(&loads), "without {skipped} segments");
    }
}
