//! Is this run recorded, and where?
//!
//! `ebb up` says it at the start. On a cluster the ConfigMap says it, and what that holds is known only when
//! the platform has told everything that is there. Until then the calls of the control loop are kept: a
//! record that began later could not be replayed exactly. For the same reason a record that is wanted later
//! begins with the next start of the autoscaler, while one that is wanted no more ends at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use orchestration::{ControlCommand, Orchestrator, StateSize};
use recording::{RecordEntry, RecordInput, RecordedNames};
use settings::RecordPlace;
use vocabulary::Timestamp;

use crate::config::{RecordChoice, RecordTarget};
use crate::recorder::{RecordedLoop, Recorder};

/// Calls that are kept until the ConfigMap is known: a fact for each object of a large cluster. With more of
/// them the run is not recorded.
const KEPT_MAX: usize = 100_000;

/// Where the record of an autoscaler is, for readers of it: nowhere, until it has begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRecordFolder(Arc<OnceLock<PathBuf>>);

impl RunRecordFolder {
    /// The folder of the record, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.get().map(PathBuf::as_path)
    }

    /// That of a record which has begun there.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self(Arc::new(folder.to_owned().into()))
    }

    /// An autoscaler begins one record at most.
    fn set(&self, folder: &Path) {
        let _ = self.0.set(folder.to_owned());
    }
}

/// The event loop's end of the record, if there is one.
#[derive(Debug)]
pub(crate) struct RunRecord {
    recorded: RecordedLoop,
    folder: RunRecordFolder,
    state: RecordState,
}

#[derive(Debug)]
enum RecordState {
    /// There is none, whatever the ConfigMap says.
    Off,
    /// The ConfigMap is not known yet.
    Undecided(UndecidedRecord),
    /// The ConfigMap says that nothing is recorded.
    Unwanted,
    /// Calls go to a record.
    On(Box<OpenRecord>),
}

/// What will be in a record, if one is wanted.
#[derive(Debug)]
struct UndecidedRecord {
    version: &'static str,
    calls: Vec<RecordEntry>,
}

#[derive(Debug)]
struct OpenRecord {
    recorder: Recorder,
    /// As the ConfigMap had it when the record began; `None` where it says nothing of the record.
    configured: Option<RecordPlace>,
}

impl RunRecord {
    /// The record of a run that begins now.
    pub(crate) fn new(choice: RecordChoice, recorded: RecordedLoop) -> Self {
        let mut record = Self { recorded, folder: RunRecordFolder::default(), state: RecordState::Off };
        match choice {
            RecordChoice::Nowhere => {}
            RecordChoice::At(target) => record.open(target, Vec::new(), None),
            RecordChoice::AsConfigured { version } => {
                record.state = RecordState::Undecided(UndecidedRecord { version, calls: Vec::new() });
            }
        }
        record
    }

    /// Where readers find the record, from its beginning on.
    pub(crate) fn folder(&self) -> RunRecordFolder {
        self.folder.clone()
    }

    /// The orchestrator is about to be called. The input is made only where it is noted.
    pub(crate) fn begin(&mut self, input: impl FnOnce() -> RecordInput, now: Timestamp) {
        match &mut self.state {
            RecordState::Off | RecordState::Unwanted => {}
            RecordState::Undecided(kept) if kept.calls.len() >= KEPT_MAX => {
                tracing::error!(
                    "too much was told before the ConfigMap was known, and the run is not recorded"
                );
                self.state = RecordState::Off;
            }
            RecordState::Undecided(kept) => {
                kept.calls.push(RecordEntry { at: now, input: input(), commands: Vec::new() });
            }
            RecordState::On(open) => open.recorder.begin(input(), now),
        }
    }

    /// A command came out of the last call.
    pub(crate) fn command(&mut self, command: &ControlCommand) {
        match &mut self.state {
            RecordState::Off | RecordState::Unwanted => {}
            RecordState::Undecided(kept) => {
                if let Some(call) = kept.calls.last_mut() {
                    call.commands.push(command.clone());
                }
            }
            RecordState::On(open) => open.recorder.command(command),
        }
    }

    /// Whether the state of the control loop is to be noted before its next call.
    pub(crate) fn takes_state(&mut self, size: StateSize, now: Timestamp) -> bool {
        match &mut self.state {
            RecordState::Off | RecordState::Undecided(_) | RecordState::Unwanted => false,
            RecordState::On(open) => open.recorder.takes_state(size, now),
        }
    }

    /// The control loop makes no more calls: its state ends the record, if that has room for it.
    pub(crate) fn end(&mut self, orchestrator: &Orchestrator, now: Timestamp) {
        if let RecordState::On(open) = &mut self.state
            && open.recorder.takes_last_state(orchestrator.state_size())
        {
            open.recorder.begin(RecordInput::State(Box::new(orchestrator.exact_state())), now);
        }
    }

    /// Hands over the calls that were noted, if they are many or old.
    pub(crate) fn hand_over_if_due(&mut self, now: Timestamp) {
        if let RecordState::On(open) = &mut self.state {
            open.recorder.hand_over_if_due(now);
        }
    }

    /// The platform has told everything that is there, and so the ConfigMap.
    pub(crate) fn decide(&mut self, place: &RecordPlace) {
        let RecordState::Undecided(kept) = &mut self.state else { return };
        let (version, calls) = (kept.version, std::mem::take(&mut kept.calls));
        self.state = RecordState::Unwanted;
        let Some(directory) = &place.directory else { return };
        let folder = Path::new(directory).join(self.recorded.owner.as_str());
        let names = RecordedNames::Plain;
        let target = RecordTarget { folder, bytes_max: place.bytes_max, version, names };
        self.open(target, calls, Some(place.clone()));
    }

    /// The platform has told another ConfigMap.
    pub(crate) fn configured(&mut self, place: &RecordPlace) {
        let begun = match &self.state {
            RecordState::Off | RecordState::Undecided(_) => return,
            RecordState::Unwanted => None,
            RecordState::On(open) => {
                let Some(begun) = &open.configured else { return };
                Some(begun)
            }
        };
        match (begun, &place.directory) {
            (None, None) => {}
            (Some(_), None) => {
                tracing::info!("the record of the run ends, as the ConfigMap says");
                if let RecordState::On(open) = std::mem::replace(&mut self.state, RecordState::Unwanted) {
                    open.recorder.leave();
                }
            }
            (Some(begun), Some(_)) if begun == place => {}
            (_, Some(directory)) => {
                tracing::info!(directory, "the record is there from the next start of the autoscaler on");
            }
        }
    }

    /// Hands over the rest, and waits until it is written, but not long.
    pub(crate) async fn finish(self) {
        if let RecordState::On(open) = self.state {
            open.recorder.finish().await;
        }
    }

    fn open(&mut self, target: RecordTarget, calls: Vec<RecordEntry>, configured: Option<RecordPlace>) {
        let folder = target.folder.clone();
        if let Some(recorder) = Recorder::start(target, self.recorded.clone(), calls) {
            self.folder.set(&folder);
            self.state = RecordState::On(Box::new(OpenRecord { recorder, configured }));
        }
    }
}

#[cfg(test)]
mod tests;
