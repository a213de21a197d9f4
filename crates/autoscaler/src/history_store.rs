//! Where the histories of revisions outlive the autoscaler that measures them.
//!
//! One store serves all autoscalers of a process, one after the other and beside each other: each writes of
//! the revisions that it decides about, once a minute and when it ends. A store without a folder keeps what
//! an autoscaler leaves at its end for the one that takes its place.
//!
//! What was read is shared by the autoscalers that begin together ([`UnclaimedHistories`]), and each takes
//! that of the revisions that it decides about.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use forecasting::{PredictionRecord, RecordMark};
use orchestration::{ControlEvent, ControlSnapshot, Orchestrator};
use parking_lot::Mutex;
use recording::{HistoryFolder, PastHistories, StoredHistory};
use scaling::RevisionHistory;
use vocabulary::{RevisionName, Timestamp};

/// The store of a process. Clones are the same store.
#[derive(Clone, Debug)]
pub struct HistoryStore(Arc<Mutex<StoreState>>);

#[derive(Debug)]
struct StoreState {
    place: StorePlace,
    /// The end of what was written of each revision.
    ends: BTreeMap<RevisionName, WrittenEnd>,
    /// What could not be read, as readers were told last.
    told_faults: Vec<String>,
    /// Whether the last write failed: one that fails as well is not worth a line each minute.
    is_failing: bool,
}

#[derive(Debug)]
enum StorePlace {
    Folder(HistoryFolder),
    Memory(BTreeMap<RevisionName, RevisionHistory>),
    /// Given to the process that takes over.
    Left,
}

/// Histories that were read, until an autoscaler decides about their revisions. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct UnclaimedHistories(Arc<Mutex<BTreeMap<RevisionName, RevisionHistory>>>);

impl UnclaimedHistories {
    /// Takes out the first history whose revision has appeared since, and returns the event that gives it to
    /// the revision; `None` if none has appeared.
    pub(crate) fn next_restored(&self, orchestrator: &Orchestrator) -> Option<ControlEvent> {
        let mut histories = self.0.lock();
        let name = histories.keys().find(|name| orchestrator.decides_about(name))?.clone();
        let (revision, history) = histories.remove_entry(&name)?;
        Some(ControlEvent::HistoryRestored { revision, history: Box::new(history) })
    }
}

impl Extend<(RevisionName, RevisionHistory)> for UnclaimedHistories {
    fn extend<Histories: IntoIterator<Item = (RevisionName, RevisionHistory)>>(&mut self, more: Histories) {
        self.0.lock().extend(more);
    }
}

/// The end of what was written of a revision.
#[derive(Clone, Copy, Debug)]
struct WrittenEnd {
    second: u64,
    forecast: RecordMark,
}

/// How much of a history is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrittenPart {
    /// What has come since it was written last.
    News,
    /// All of it, with the seconds: the autoscaler ends.
    Whole,
}

impl HistoryStore {
    /// A store in this folder. Fails with [`io::ErrorKind::WouldBlock`] while another process writes there.
    pub fn in_folder(path: &Path) -> io::Result<Self> {
        Ok(Self::at(StorePlace::Folder(HistoryFolder::open(path)?)))
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Self {
        Self::at(StorePlace::Memory(BTreeMap::new()))
    }

    fn at(place: StorePlace) -> Self {
        let (ends, told_faults) = (BTreeMap::new(), Vec::new());
        Self(Arc::new(Mutex::new(StoreState { place, ends, told_faults, is_failing: false })))
    }

    /// Reads everything; to be called where a disk may be waited for. What cannot be read is told in the
    /// result, and counts as a past that is not known.
    pub fn read(&self) -> PastHistories {
        let mut state = self.0.lock();
        // The next owner writes its revisions anew, whatever it has taken in of them.
        state.ends.clear();
        let past = match &state.place {
            StorePlace::Folder(folder) => folder.read().unwrap_or_else(|error| PastHistories {
                faults: vec![format!("the folder cannot be read: {error}")],
                ..PastHistories::default()
            }),
            StorePlace::Memory(histories) => {
                PastHistories { histories: histories.clone(), ..PastHistories::default() }
            }
            StorePlace::Left => PastHistories::default(),
        };
        state.told_faults.clone_from(&past.faults);
        past
    }

    /// Lets go of the folder: another process takes over, and writes there from now on.
    pub fn leave(&self) {
        self.0.lock().place = StorePlace::Left;
    }

    /// Of these revisions everything is written next time, since a past of theirs was told from elsewhere; to
    /// be called where a disk may be waited for.
    pub(crate) fn write_anew(&self, revisions: &[RevisionName]) {
        let mut state = self.0.lock();
        for revision in revisions {
            state.ends.remove(revision);
        }
    }

    /// Writes what is known at `now`, in the second since 1970 that runs; to be called where a disk may be
    /// waited for. Returns whether the store has it; if not, the reason was logged.
    pub(crate) fn write(
        &self,
        control: &ControlSnapshot,
        part: WrittenPart,
        now: Timestamp,
        second: u64,
    ) -> bool {
        let mut state = self.0.lock();
        let written = state.write(control, part, now, second);
        match &written {
            Ok(()) => state.is_failing = false,
            Err(error) if !std::mem::replace(&mut state.is_failing, true) => {
                tracing::warn!(%error, "histories of revisions are not written, and a restart would lose them");
            }
            Err(_) => {}
        }
        written.is_ok()
    }
}

impl StoreState {
    fn write(
        &mut self,
        control: &ControlSnapshot,
        part: WrittenPart,
        now: Timestamp,
        second: u64,
    ) -> io::Result<()> {
        match (&mut self.place, part) {
            (StorePlace::Left, _) | (StorePlace::Memory(_), WrittenPart::News) => return Ok(()),
            (StorePlace::Memory(histories), WrittenPart::Whole) => {
                let records = control.history_records(now);
                // It was made of a history a moment ago.
                let read = records.filter_map(|(name, record)| {
                    Some((name.clone(), RevisionHistory::restore(record).ok()?))
                });
                histories.extend(read);
                return Ok(());
            }
            (StorePlace::Folder(_), _) => {}
        }
        let (mut parts, mut ends) = (Vec::new(), Vec::new());
        for (revision, record) in control.history_records_since(now, |name| self.known_second(name, part)) {
            let forecast = record.forecast().cloned();
            let end = WrittenEnd {
                second: record.end(),
                forecast: forecast.as_ref().map(PredictionRecord::mark).unwrap_or_default(),
            };
            let known = self.ends.get(revision).map(|known| known.forecast).unwrap_or_default();
            let forecast = forecast.map(|forecast| forecast.since(known));
            parts.push(StoredHistory { revision: revision.clone(), record: record.with_forecast(forecast) });
            ends.push((revision.clone(), end));
        }
        if let StorePlace::Folder(folder) = &mut self.place {
            let lost = folder.append(&parts, second)?;
            // What was told when it was read is not said again.
            for fault in lost.iter().filter(|fault| !self.told_faults.contains(fault)) {
                tracing::warn!(
                    fault,
                    "a part of the histories could not be read when it was to be written anew, and is lost"
                );
            }
        }
        self.ends.extend(ends);
        Ok(())
    }

    /// The second up to which a revision was written; `None` for one that is to be written whole.
    fn known_second(&self, name: &RevisionName, part: WrittenPart) -> Option<u64> {
        match part {
            WrittenPart::News => self.ends.get(name).map(|end| end.second),
            WrittenPart::Whole => None,
        }
    }
}
