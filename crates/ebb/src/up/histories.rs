//! Where what was measured of Services outlives `ebb up`, and a restart of its autoscaler.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use autoscaler::{HistorySource, HistoryStore};
use tracing::{info, warn};

use super::state_folder;
use crate::cli::UpOptions;

/// The store of histories, and the problem with it that people should know of.
pub(super) struct Histories {
    /// `None` where nothing outlives the process.
    folder: Option<PathBuf>,
    store: HistoryStore,
    problem: Option<String>,
}

impl Histories {
    /// Opens the store of the `ebb up` whose API is at this address. Where no folder will do histories are
    /// kept in memory, which is said once.
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
        Self { folder, store, problem }
    }

    /// The problem with the folder, in one line.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    /// What an autoscaler that begins is given. What could not be read is said.
    pub(super) async fn source(&self) -> HistorySource {
        let (store, reading) = (self.store.clone(), self.store.clone());
        // A panic while reading leaves nothing read: measuring begins anew.
        let past = tokio::task::spawn_blocking(move || reading.read()).await.unwrap_or_default();
        for fault in &past.faults {
            warn!(fault, "a part of the histories was not read, so it counts as not measured");
        }
        HistorySource { store, read: past.histories }
    }

    /// Lets go of the folder, in which another process goes on.
    pub(super) fn leave(&self) {
        self.store.leave();
    }

    /// Goes on after all: the other process did not take over.
    pub(super) fn resume(&mut self) {
        (self.store, self.problem) = store_in(self.folder.as_ref());
    }
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
