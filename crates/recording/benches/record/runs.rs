//! Runs of the simulator as entries of a record, and how they are written and judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use orchestration::OrchestratorSettings;
use recording::{RecordEntry, RecordInput, RecordSettings, RecordWriter, RecordedNames};
use settings::{ClusterConfig, RevisionSettings};
use simulator::{
    LoadBeginning, LoadSource, OwnerCall, Scenario, ServiceLoad, ServiceScenario, SimulationPace,
    TimeDistribution, WorldDelays, new_service, simulate_with_calls,
};
use vocabulary::{ReplicaName, RevisionName};

use crate::figures::Figure;

/// The program that writes the records, as their headers name it.
pub(crate) const BUILD: &str = "a benchmark";
/// How many pods a crowded Service has.
pub(crate) const CROWD: u32 = 100;
const TARGET: (&str, &str) = ("autoscaling.knative.dev/target", "10");
/// Entries come to the writer in such groups.
const TOGETHER: usize = 256;

/// Whether numbers are as good as they should be.
pub(crate) struct GoalEnd {
    pub(crate) figures: Vec<Figure>,
    /// Whether nothing but speed can be what is missing.
    pub(crate) is_about_speed: bool,
}

impl GoalEnd {
    pub(crate) fn is_met(&self) -> bool {
        self.figures.iter().all(|figure| figure.is_met)
    }
}

/// The calls of the control loop in one run; its chance follows from the number of the life.
pub(crate) fn run(
    services: impl Iterator<Item = ServiceScenario>,
    length: Duration,
    life: u64,
) -> Vec<OwnerCall> {
    let scenario = Scenario {
        cluster: Arc::new(ClusterConfig::default()),
        services: services.collect(),
        cores: BTreeMap::new(),
        delays: WorldDelays::default(),
        beginning: LoadBeginning::default(),
        length,
        seed: life,
        pace: SimulationPace::EveryRequest,
        faults: Vec::new(),
    };
    simulate_with_calls(&scenario).expect("a scenario that can be simulated").1
}

pub(crate) fn service(number: u32) -> ServiceScenario {
    let load = if number.is_multiple_of(10) {
        "bursty,burst=40rps,every=4m,length=20s"
    } else {
        "constant,rate=2rps"
    };
    service_with(number, load, &[TARGET])
}

/// A Service with many pods.
pub(crate) fn crowded_service(number: u32) -> ServiceScenario {
    let crowd = CROWD.to_string();
    let annotations = [TARGET, ("autoscaling.knative.dev/min-scale", crowd.as_str())];
    service_with(number, "constant,rate=2rps", &annotations)
}

fn service_with(number: u32, load: &str, annotations: &[(&str, &str)]) -> ServiceScenario {
    let LoadSource::Shape(load) = ServiceLoad::parse(&format!("*={load}")).expect("a load").source else {
        panic!("{load} is a file");
    };
    let cluster = ClusterConfig::default();
    let annotations: BTreeMap<String, String> =
        annotations.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let settings = RevisionSettings::read(&annotations, &cluster, None).expect("good annotations").value;
    let name = RevisionName::new("default", "service", &format!("app-{number}")).expect("a name");
    ServiceScenario {
        facts: new_service(name, settings, 0, &cluster),
        load: Some(load),
        service_time: TimeDistribution::parse("120ms,p99=800ms").expect("a time"),
        start_up: TimeDistribution::parse("2s..5s").expect("a time"),
    }
}

/// Writes a record of these entries.
pub(crate) fn write(folder: &Path, entries: &[RecordEntry]) {
    let mut writer = RecordWriter::new(RecordSettings {
        folder: folder.to_owned(),
        bytes_max: 4 << 30,
        owner: ReplicaName::new("autoscaler-1"),
        orchestrator: OrchestratorSettings::default(),
        build: BUILD.to_owned(),
        names: RecordedNames::Plain,
    });
    for group in entries.chunks(TOGETHER) {
        writer.write(group).expect("the disk has room");
    }
    writer.flush().expect("the disk has room");
}

pub(crate) fn entry(call: OwnerCall) -> RecordEntry {
    let input = call.event.map_or(RecordInput::Advance, |event| RecordInput::Event(Box::new(event)));
    RecordEntry { at: call.at, input, commands: call.commands }
}

/// The time that this thread, the only one, has spent on a processor.
pub(crate) fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds: f64 =
        text.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number comes first");
    nanoseconds / 1e9
}
