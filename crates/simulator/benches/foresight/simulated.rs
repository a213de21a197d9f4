//! The counts that the real control loop asks for when a load arrives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use settings::{ClusterConfig, RevisionSettings};
use simulator::{
    LoadBeginning, LoadFile, LoadShape, RecordedCount, Scenario, ServiceScenario, SimulationPace,
    TimeDistribution, WorldDelays, new_service, simulate,
};
use vocabulary::RevisionName;

/// One revision, its load and its pods.
#[derive(Debug)]
pub(crate) struct SimulatedRevision<'a> {
    /// Keys with their prefixes, and values.
    pub(crate) annotations: &'a [(&'a str, String)],
    pub(crate) load: LoadFile,
    /// The time that each request takes.
    pub(crate) service_time: &'a str,
    pub(crate) start_up: usize,
    pub(crate) length: Duration,
}

impl SimulatedRevision<'_> {
    /// The counts in their order.
    pub(crate) fn counts(&self) -> Vec<RecordedCount> {
        let cluster = ClusterConfig::default();
        let annotations: BTreeMap<String, String> =
            self.annotations.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let settings = RevisionSettings::read(&annotations, &cluster, None).expect("good annotations").value;
        let name = RevisionName::new("default", "service", "foreseen").expect("a name");
        let service = ServiceScenario {
            facts: new_service(name, settings, 0, &cluster),
            load: Some(LoadShape::File(self.load.clone())),
            service_time: TimeDistribution::parse(self.service_time).expect("a time"),
            start_up: TimeDistribution::parse(&format!("{}s", self.start_up)).expect("a time"),
        };
        let scenario = Scenario {
            cluster: Arc::new(cluster),
            services: vec![service],
            cores: BTreeMap::new(),
            delays: WorldDelays::default(),
            beginning: LoadBeginning::default(),
            length: self.length,
            seed: 7,
            pace: SimulationPace::WholeSeconds,
            faults: Vec::new(),
        };
        simulate(&scenario).expect("a scenario that can be simulated").services.remove(0).counts
    }
}
