//! What an autoscaler is told at its start, by the program that it runs in.

use std::path::PathBuf;
use std::sync::Arc;

use link::Dial;
use orchestration::ActivatorChoice;
use recording::RecordedNames;
use runtime::Clock;
use vocabulary::ReplicaName;

use crate::history_store::{HistoryStore, UnclaimedHistories};
use crate::metrics::AutoscalerMetrics;
use crate::stat_desk::StatDesk;

/// Whether a run is recorded, and what says where.
#[derive(Clone, Debug, Default)]
pub enum RecordChoice {
    /// The run is recorded nowhere.
    #[default]
    Nowhere,
    /// The run is recorded at this place.
    At(RecordTarget),
    /// The ConfigMap says so (`record-directory`), which the platform tells; until then everything is kept in
    /// memory that is to be in the record.
    AsConfigured {
        /// The version of this program.
        version: &'static str,
    },
}

/// Where a run is recorded.
#[derive(Clone, Debug)]
pub struct RecordTarget {
    /// The folder of the record, which is made. No other autoscaler writes there.
    pub folder: PathBuf,
    /// The most bytes that the record may have.
    pub bytes_max: u64,
    /// The version of this program. The record names the executable beside it.
    pub version: &'static str,
    /// Whether names and addresses are written as they are.
    pub names: RecordedNames,
}

/// A store of histories, and what was read of it.
#[derive(Clone, Debug)]
pub struct HistorySource {
    /// The store in which histories are written.
    pub store: HistoryStore,
    /// The histories that revisions go on from.
    pub read: UnclaimedHistories,
}

/// What an autoscaler needs to know before it knows anything.
#[derive(Clone, Debug)]
pub struct AutoscalerConfig {
    /// Its name among autoscalers: to activators a new link of the same name replaces its former one.
    pub name: ReplicaName,
    /// The clock of the process, by which deadlines and ages count.
    pub clock: Clock,
    /// Registered once per process; an autoscaler that is rebuilt goes on counting in the same.
    pub metrics: AutoscalerMetrics,
    /// What reaches the addresses that the platform names.
    pub dialler: Arc<dyn Dial>,
    /// Which activators serve a revision.
    pub choice: ActivatorChoice,
    /// Whether everything is written down that the control loop is told.
    pub record: RecordChoice,
    /// What activators of Knative's push, where a [`crate::StatServer`] takes that.
    pub stats: StatDesk,
    /// Where histories of revisions outlive it; `None`: nowhere.
    pub history: Option<HistorySource>,
}
