//! Records that the ConfigMap asks for: from the beginning of the run on, or not at all.

use std::sync::Arc;
use std::time::Duration;

use orchestration::{ControlEvent, Orchestrator, OrchestratorSettings, PlatformFact};
use recording::{RecordReader, RecordReplay, ReplayReport, SettingsChanges};
use runtime::{Clock, MetricsRegistry};
use settings::ClusterConfig;
use tempfile::TempDir;
use vocabulary::{Epoch, Ownership, ReplicaName};

use super::*;
use crate::metrics::AutoscalerMetrics;
use crate::snapshot::snapshots;

/// A control loop as the event loop calls it, with its record.
struct RecordedRun {
    record: RunRecord,
    orchestrator: Orchestrator,
    now: Timestamp,
}

impl RecordedRun {
    fn new(choice: RecordChoice) -> Self {
        let owner = ReplicaName::new("autoscaler-1");
        let (_, snapshots) = snapshots(owner.clone(), Clock::start());
        let recorded = RecordedLoop {
            owner,
            orchestrator: OrchestratorSettings::default(),
            metrics: AutoscalerMetrics::register(&MetricsRegistry::default()),
            snapshots,
        };
        Self {
            record: RunRecord::new(choice, recorded),
            orchestrator: Orchestrator::new(OrchestratorSettings::default()),
            now: Timestamp::from_secs(3_600),
        }
    }

    /// A run on a cluster with this folder in its ConfigMap, up to its Synced.
    fn as_configured(directory: Option<&Path>) -> Self {
        let mut run = Self::new(RecordChoice::AsConfigured { version: "a test" });
        run.tell(PlatformFact::OwnershipChanged(Ownership::of_everything(Epoch(1))));
        run.tell(PlatformFact::ConfigChanged(config(directory)));
        run.tell(PlatformFact::ActivatorsChanged(Vec::new()));
        run.tell(PlatformFact::Synced);
        run
    }

    fn tell(&mut self, fact: PlatformFact) {
        if let PlatformFact::ConfigChanged(config) = &fact {
            self.record.configured(&config.record);
        }
        if matches!(fact, PlatformFact::Synced) {
            self.record.decide(&self.orchestrator.config().record);
        }
        let event = ControlEvent::Platform(fact);
        self.record.begin(|| RecordInput::Event(Box::new(event.clone())), self.now);
        self.orchestrator.handle(event, self.now);
        while let Some(command) = self.orchestrator.next_command() {
            self.record.command(&command);
        }
        self.record.hand_over_if_due(self.now);
        self.now += Duration::from_secs(1);
    }
}

fn config(directory: Option<&Path>) -> Arc<ClusterConfig> {
    let directory = directory.map(|directory| directory.display().to_string());
    let record = RecordPlace { directory, ..RecordPlace::default() };
    Arc::new(ClusterConfig { record, ..ClusterConfig::default() })
}

fn replayed(folder: &Path) -> ReplayReport {
    let reader = RecordReader::open(folder, SettingsChanges::default()).expect("it was written");
    RecordReplay::new(reader).run().expect("nothing is changed").clone()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[tokio::test]
async fn a_record_of_the_config_map_begins_with_the_run() {
    let directory = directory();
    let run = RecordedRun::as_configured(Some(directory.path()));
    let folder = run.record.folder.path().expect("it has begun").to_owned();
    assert_eq!(folder, directory.path().join("autoscaler-1"));
    run.record.finish().await;
    let report = replayed(&folder);
    assert_eq!((report.calls, report.differing, report.gaps.len()), (4, 0, 0), "{report:?}");
    assert_eq!((report.keyframes, report.exact_from), (0, report.begins), "{report:?}");
}

/// The bytes of the files of a record.
fn bytes_of(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("it was written");
    files.map(|file| file.and_then(|file| file.metadata()).expect("a file is there").len()).sum()
}

/// A replay from the beginning on is exact without the state, so it says nothing of one.
#[tokio::test]
async fn the_end_of_a_run_adds_its_state_to_the_record_and_changes_no_call() {
    let mut bytes = Vec::new();
    for is_ended in [false, true] {
        let directory = directory();
        let mut run = RecordedRun::as_configured(Some(directory.path()));
        let folder = run.record.folder.path().expect("it has begun").to_owned();
        if is_ended {
            run.record.end(&run.orchestrator, run.now);
        }
        run.record.finish().await;
        let report = replayed(&folder);
        assert_eq!((report.calls, report.differing, report.gaps.len()), (4, 0, 0), "{report:?}");
        bytes.push(bytes_of(&folder));
    }
    // An empty control loop is some hundred bytes; other numbers of the header are a few.
    assert!(bytes[1] > bytes[0] + 20, "{bytes:?}");
}

#[tokio::test]
async fn a_run_without_a_folder_in_the_config_map_is_not_recorded_until_the_next_start() {
    let directory = directory();
    let mut run = RecordedRun::as_configured(None);
    run.tell(PlatformFact::ConfigChanged(config(Some(directory.path()))));
    assert!(run.record.folder.path().is_none() && matches!(run.record.state, RecordState::Unwanted));
    run.record.finish().await;
    assert_eq!(std::fs::read_dir(directory.path()).expect("it is there").count(), 0);
}

#[tokio::test]
async fn a_record_ends_when_the_config_map_has_no_folder_any_more() {
    let directory = directory();
    let mut run = RecordedRun::as_configured(Some(directory.path()));
    let other = directory.path().join("other");
    run.tell(PlatformFact::ConfigChanged(config(Some(&other))));
    assert!(matches!(run.record.state, RecordState::On(_)), "another folder is for the next start");
    run.tell(PlatformFact::ConfigChanged(config(None)));
    assert!(matches!(run.record.state, RecordState::Unwanted));
    run.tell(PlatformFact::ActivatorsChanged(Vec::new()));
    assert!(run.record.folder.path().is_some(), "it can be read still");
    assert!(!other.exists());
}

#[tokio::test]
async fn a_record_of_options_is_not_changed_by_a_config_map() {
    let directory = directory();
    let folder = directory.path().join("record");
    let target = RecordTarget {
        folder: folder.clone(),
        bytes_max: 1 << 20,
        version: "a test",
        names: RecordedNames::Plain,
    };
    let mut run = RecordedRun::new(RecordChoice::At(target));
    run.tell(PlatformFact::ConfigChanged(config(None)));
    run.tell(PlatformFact::ConfigChanged(config(Some(directory.path()))));
    run.tell(PlatformFact::Synced);
    run.record.finish().await;
    assert_eq!(replayed(&folder).calls, 3);
    assert!(!directory.path().join("autoscaler-1").exists());
}

#[test]
fn more_calls_than_are_kept_end_the_wish_for_a_record() {
    let mut run = RecordedRun::new(RecordChoice::AsConfigured { version: "a test" });
    for _ in 0..=KEPT_MAX {
        run.record.begin(|| RecordInput::Advance, Timestamp::ZERO);
    }
    assert!(matches!(run.record.state, RecordState::Off));
}
