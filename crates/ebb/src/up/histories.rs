//! Where what was measured of Services outlives `ebb up`, and a restart of its autoscaler.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use autoscaler::{HistorySource, HistoryStore, UnclaimedHistories};
use recording::PastHistories;
use tracing::{info, warn};

use super::state_folder;
use crate::cli::UpOptions;

/// A disk that takes longer is not waited for when autoscalers begin anew: they decide without a past.
const READ_MAX: Duration = Duration::from_secs(10);

/// The store of histories, and the problems with it that people should know of.
pub(super) struct Histories {
    /// `None` where nothing outlives the process.
    folder: Option<PathBuf>,
    store: HistoryStore,
    /// What was read when the store was opened, until the first autoscalers have it.
    read: Option<PastHistories>,
    /// Why nothing is kept in the folder, if so.
    problem_of_store: Option<String>,
    /// Which part of what was read last cannot be read, if any.
    problem_of_read: Option<String>,
}

impl Histories {
    /// Opens and reads the store of the `ebb up` whose API is at this address. Where no folder will do
    /// histories are kept in memory, which is said once.
    pub(super) fn open(api: SocketAddr, options: &UpOptions) -> Self {
        let state = state_folder::named_or_found(options.operation.state_dir.clone());
        let folder = match state {
            Some(_) if options.api.port() == 0 => {
                info!("the port of the API is another one at each start, so histories end with this process");
                None
            }
            Some(state) => Some(state.join(format!("history-{}-{}", api.ip(), api.port()))),
            None => {
                warn!("histories end with this process: name a folder with --state-dir, or set HOME");
                None
            }
        };
        let (store, problem) = store_in(folder.as_ref());
        let read = store.read();
        log_faults(&read);
        let problem_of_read = problem_of_faults(place_of(folder.as_deref()), &read.faults);
        Self { folder, store, read: Some(read), problem_of_store: problem, problem_of_read }
    }

    /// The problems with the folder and with what stands in it, in one line each.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> + use<> {
        let problems = [self.problem_of_store.clone(), self.problem_of_read.clone()];
        problems.into_iter().flatten()
    }

    /// What autoscalers that begin together are given. What could not be read is said.
    pub(super) async fn source(&mut self) -> HistorySource {
        let past = match self.read.take() {
            Some(read) => read,
            None => read_again(self.store.clone()).await,
        };
        self.problem_of_read = problem_of_faults(place_of(self.folder.as_deref()), &past.faults);
        let mut read = UnclaimedHistories::default();
        read.extend(past.histories);
        HistorySource { store: self.store.clone(), read }
    }

    /// Lets go of the folder, in which another process goes on.
    pub(super) fn leave(&self) {
        self.store.leave();
    }

    /// Goes on after all: the other process did not take over.
    pub(super) fn resume(&mut self) {
        let (store, problem) = store_in(self.folder.as_ref());
        (self.store, self.read) = (store, None);
        self.problem_of_store = problem;
    }
}

/// The place of histories, in words.
fn place_of(folder: Option<&Path>) -> &Path {
    folder.unwrap_or(Path::new("memory"))
}

/// Reads what the autoscalers before these ones have left.
async fn read_again(store: HistoryStore) -> PastHistories {
    // A panic while reading is one of its faults: nothing is read, and measuring begins anew.
    let reading = tokio::task::spawn_blocking(move || store.read());
    let past = match tokio::time::timeout(READ_MAX, reading).await {
        Ok(Ok(past)) => past,
        Ok(Err(panic)) => nothing_read(format!("reading failed by a bug of ebb: {panic}")),
        Err(_) => nothing_read(format!("the disk did not answer within {} s", READ_MAX.as_secs())),
    };
    log_faults(&past);
    past
}

fn nothing_read(fault: String) -> PastHistories {
    PastHistories { faults: vec![fault], ..PastHistories::default() }
}

fn log_faults(past: &PastHistories) {
    for fault in &past.faults {
        warn!(fault, "a part of the histories was not read, so it counts as not measured");
    }
}

/// One line for all that could not be read: a disk that fails may damage hundreds of histories.
fn problem_of_faults(place: &Path, faults: &[String]) -> Option<String> {
    let first = faults.first()?;
    let others = match faults.len() {
        1 => String::new(),
        all => format!(" (and {} more parts, which the log names)", all - 1),
    };
    Some(format!(
        "histories in {}: {first}{others}; what it told counts as not measured, and where prediction reads it class kpa alone decides until enough is measured again; nothing is to be done, unless the disk fails",
        place.display()
    ))
}

fn store_in(folder: Option<&PathBuf>) -> (HistoryStore, Option<String>) {
    let Some(folder) = folder else { return (HistoryStore::in_memory(), None) };
    match HistoryStore::in_folder(folder) {
        Ok(store) => {
            info!(folder = %folder.display(), "histories are kept here");
            (store, None)
        }
        Err(error) => {
            let is_locked = error.kind() == io::ErrorKind::WouldBlock;
            let reason =
                if is_locked { "another process writes there".to_owned() } else { error.to_string() };
            let problem = format!(
                "histories in {}: {reason}; nothing that was measured before is known, and what is measured ends with this process; write --state-dir with a folder that this user can write to",
                folder.display()
            );
            warn!(problem, "histories are kept in memory");
            (HistoryStore::in_memory(), Some(problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_that_cannot_be_read_are_one_problem() {
        let place = Path::new("/state/history");
        assert_eq!(problem_of_faults(place, &[]), None);
        let faults = ["20003.history: a block is damaged", "20002.history: a block is damaged"];
        let faults = faults.map(str::to_owned);
        let problem = problem_of_faults(place, &faults).expect("there are two");
        assert!(
            problem.starts_with("histories in /state/history: 20003.history: a block is damaged (and 1 more"),
            "{problem}"
        );
        let problem = problem_of_faults(place, &faults[..1]).expect("there is one");
        assert!(problem.contains("a block is damaged; what it told counts as not measured"), "{problem}");
    }
}
