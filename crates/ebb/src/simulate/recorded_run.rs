//! The load of a recorded run: for each Service what is not said by options.

use std::io;
use std::path::Path;
use std::time::Duration;

use orchestration::RevisionFacts;
use recording::{RecordedLoad, RecordedRevision, record_folders};
use simulator::{LoadBeginning, LoadShape, MeasuredLoad, TimeDistribution};
use vocabulary::{RevisionName, format_duration};

use crate::cli::SimulateOptions;

/// The load, the work and the starts of one Service.
#[derive(Clone, Debug)]
pub(super) struct ServiceInputs {
    pub(super) load: Option<LoadShape>,
    pub(super) service_time: TimeDistribution,
    pub(super) start_up: TimeDistribution,
}

/// The load of the run that a folder tells of.
pub(super) fn read(record: &Path) -> Result<RecordedLoad, String> {
    let named = record.display();
    let told = |error: io::Error| format!("--record {named}: {error}");
    let folders = record_folders(record).map_err(told)?;
    if folders.is_empty() {
        return Err(format!("--record {named} holds no record; `ebb up --record {named}` writes one"));
    }
    let load = RecordedLoad::read(&folders).map_err(told)?;
    load.filter(|load| load.length >= Duration::from_secs(1))
        .ok_or_else(|| format!("--record {named}: the record tells of no whole second; record for longer"))
}

/// What is missing in the simulation of a record, beside what the record is about.
pub(super) fn warnings(record: &RecordedLoad, facts: &[RevisionFacts]) -> Vec<String> {
    let gaps = record.gaps.iter().map(|gap| format!("{gap}; no request arrives there"));
    let is_of_manifests = |name: &RevisionName| facts.iter().any(|facts| facts.name == *name);
    let others = record.revisions.keys().filter(|name| !is_of_manifests(name));
    gaps.chain(others.map(|name| format!("{name} is in the record and in no manifest: it is left out")))
        .collect()
}

/// What options and, where these say nothing, a record say of one Service.
pub(super) fn inputs_of(
    service: &RevisionName,
    said: Option<LoadShape>,
    record: Option<&RecordedLoad>,
    options: &SimulateOptions,
) -> Result<ServiceInputs, String> {
    let recorded = record.and_then(|record| record.revisions.get(service));
    let load = said.or_else(|| measured_load(recorded?, record?, options));
    let service_time = options.service_time.clone().or_else(|| mean_service_time(recorded?));
    let service_time = match (service_time, &load) {
        (Some(service_time), _) => service_time,
        (None, None) => TimeDistribution::Constant(Duration::ZERO),
        (None, Some(_)) => {
            return Err(format!("the record has no request of {service}; write --service-time TIME"));
        }
    };
    let start_up = options.start_up.clone().or_else(|| recorded_start_up(recorded, record?));
    let start_up =
        start_up.ok_or_else(|| "the record has no start of a pod; write --start-up TIME".to_owned())?;
    Ok(ServiceInputs { load, service_time, start_up })
}

/// When the load of a record begins: with the autoscaler, if the record does. Where its first part is missing
/// the instants at which the autoscaler evaluated are not known.
pub(super) fn beginning(record: &RecordedLoad) -> LoadBeginning {
    if record.begins_with_autoscaler {
        LoadBeginning::WithAutoscaler { past_second: record.past_second }
    } else {
        LoadBeginning::AfterDeployment
    }
}

/// Refuses to simulate for longer than the record tells of.
pub(super) fn check_length(record: &RecordedLoad, length: Duration) -> Result<(), String> {
    if length <= record.length {
        return Ok(());
    }
    Err(format!(
        "--record: the record ends after {}, and the load is to last {}; simulate no longer than the record",
        format_duration(Duration::from_secs(record.length.as_secs())),
        format_duration(length)
    ))
}

fn measured_load(
    recorded: &RecordedRevision,
    record: &RecordedLoad,
    options: &SimulateOptions,
) -> Option<LoadShape> {
    let load = MeasuredLoad::new(&recorded.arrivals, recorded.service_times())
        .with_known_times(record.past_second, &recorded.known_arrivals);
    let load = if options.service_time.is_some() { load.without_service_times() } else { load };
    (load.requests() > 0).then_some(LoadShape::Measured(load))
}

fn mean_service_time(recorded: &RecordedRevision) -> Option<TimeDistribution> {
    recorded.mean_service_time().map(TimeDistribution::Constant)
}

/// The starts of the Service or, if none is recorded, those of all Services.
fn recorded_start_up(recorded: Option<&RecordedRevision>, record: &RecordedLoad) -> Option<TimeDistribution> {
    let own = recorded.map(|recorded| recorded.start_ups.clone()).filter(|spans| !spans.is_empty());
    let spans: Vec<Duration> = own.unwrap_or_else(|| {
        record.revisions.values().flat_map(|revision| revision.start_ups.iter().copied()).collect()
    });
    (!spans.is_empty()).then(|| TimeDistribution::Measured(spans.into()))
}

#[cfg(test)]
mod tests {
    use simulator::{LoadSource, ServiceLoad, SimulationPace};

    use crate::cli::{ImageArguments, ManifestOptions, ReadingOptions};

    use super::*;

    fn name(service: &str) -> RevisionName {
        RevisionName::parse(&format!("default/service/{service}")).expect("three parts")
    }

    fn options() -> SimulateOptions {
        let reading = ReadingOptions {
            domain: "example.com".to_owned(),
            ignore_foreign: false,
            images: ImageArguments::default(),
        };
        SimulateOptions {
            manifests: ManifestOptions { files: Vec::new(), reading },
            load: Vec::new(),
            record: None,
            bin: None,
            service_time: None,
            start_up: None,
            cores: None,
            pace: SimulationPace::EveryRequest,
            faults: Vec::new(),
            length: None,
            compare: Vec::new(),
            seed: 1,
            objective: None,
            json: None,
            svg: None,
            html: None,
        }
    }

    fn record() -> RecordedLoad {
        let (mut hello, mut other) = (RecordedRevision::default(), RecordedRevision::default());
        hello.arrivals.extend([2.0, 0.0, 1.0]);
        other.start_ups.extend([Duration::from_secs(2), Duration::from_secs(3)]);
        RecordedLoad {
            length: Duration::from_secs(90),
            revisions: [(name("hello"), hello), (name("other"), other)].into(),
            ..RecordedLoad::default()
        }
    }

    #[test]
    fn options_take_the_place_of_what_is_recorded() {
        let record = record();
        let time = |text| TimeDistribution::parse(text).expect("a time");
        let all_said =
            SimulateOptions { service_time: Some(time("80ms")), start_up: Some(time("1s")), ..options() };
        let inputs = inputs_of(&name("hello"), None, Some(&record), &all_said).expect("all is said");
        let Some(LoadShape::Measured(load)) = inputs.load else { panic!("it is recorded: {inputs:?}") };
        assert_eq!((load.requests(), inputs.start_up), (3, time("1s")));
        // The starts of all Services are those of one without a start of its own.
        let partly = SimulateOptions { service_time: Some(time("80ms")), ..options() };
        let inputs = inputs_of(&name("hello"), None, Some(&record), &partly).expect("the rest is recorded");
        let spans = [2, 3].map(Duration::from_secs);
        assert_eq!(inputs.start_up, TimeDistribution::Measured(spans.into()));
        // A load that is said is simulated; a Service without one needs no time of requests.
        let LoadSource::Shape(said) = ServiceLoad::parse("hello=constant,rate=5rps").expect("a load").source
        else {
            panic!("it is a shape")
        };
        let inputs =
            inputs_of(&name("hello"), Some(said.clone()), Some(&record), &partly).expect("all is there");
        assert_eq!(inputs.load, Some(said));
        let inputs = inputs_of(&name("other"), None, Some(&record), &options()).expect("no request comes");
        assert_eq!((inputs.load, inputs.service_time), (None, TimeDistribution::Constant(Duration::ZERO)));
    }

    #[test]
    fn missing_parts_of_a_record_are_asked_for() {
        let mut record = record();
        let error = inputs_of(&name("hello"), None, Some(&record), &options()).expect_err("no request ended");
        assert_eq!(error, "the record has no request of default/service/hello; write --service-time TIME");
        record.revisions.remove(&name("other"));
        let error = inputs_of(&name("none"), None, Some(&record), &options()).expect_err("no pod started");
        assert_eq!(error, "the record has no start of a pod; write --start-up TIME");
        assert_eq!(check_length(&record, Duration::from_secs(90)), Ok(()));
        let error = check_length(&record, Duration::from_secs(120)).expect_err("it is too short");
        assert!(error.contains("the record ends after 1m30s, and the load is to last 2m"), "{error}");
        let [warning] = warnings(&record, &[]).try_into().expect("one warning");
        assert_eq!(warning, "default/service/hello is in the record and in no manifest: it is left out");
    }

    #[test]
    fn a_folder_without_a_record_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let error = read(folder.path()).expect_err("it is empty");
        assert!(error.contains("holds no record; `ebb up --record"), "{error}");
        assert!(read(&folder.path().join("none")).expect_err("there is none").starts_with("--record "));
    }
}
