//! Edits of the files and deletions by a person take effect here; each change is a line in the log.

use std::path::Path;
use std::sync::Arc;

use vocabulary::RevisionName;

use super::event_loop::Supervisor;
use super::fleet::TargetPresence;
use super::order_inbox::{Deletion, RolloutAnswer};
use super::outbox::PlatformTopic;
use super::rolled_back::RolledBackService;
use crate::manifest::{FilesReading, LoadedManifest, PlacedService, Trouble};

impl Supervisor {
    /// Takes in what the files say after a change.
    pub(super) fn take_reading(&mut self, mut reading: FilesReading) {
        self.note_troubles(std::mem::take(&mut reading.troubles));
        self.note_warnings(reading.warnings.iter().chain(&reading.absences).cloned().collect());
        self.deleted.retain(|_, file| !reading.written.contains(file));
        self.rolled_back.retain(|_, service| !reading.written.contains(&service.file));
        reading.leave_out(&self.deleted);
        let mut loaded = reading.merged_over(&self.loaded);
        for (name, rolled_back) in &self.rolled_back {
            // A Service that stands in another file now was written there since.
            let placed = loaded.services.get_mut(name).filter(|placed| placed.file == rolled_back.file);
            if let Some(placed) = placed {
                placed.service.template.clone_from(&rolled_back.template);
            }
        }
        self.adopt(loaded);
    }

    /// Lets new pods of the same template take over.
    pub(super) fn restart_pods(&mut self, name: &RevisionName) -> RolloutAnswer {
        let Some(placed) = self.loaded.services.get(name).filter(|_| !self.fleet.is_ending()) else {
            return RolloutAnswer::Unknown;
        };
        match self.fleet.renew_pods(name, self.clock.now()) {
            TargetPresence::Yes => {
                tracing::info!(revision = %name, "restarted: new pods take over");
                RolloutAnswer::Begun { file: placed.file.clone() }
            }
            TargetPresence::No => RolloutAnswer::Unknown,
        }
    }

    /// Lets pods of the template before the last edit take over, whatever the file says until it is written
    /// again.
    pub(super) fn roll_back(&mut self, name: &RevisionName) -> RolloutAnswer {
        let mut loaded = LoadedManifest::clone(&self.loaded);
        let Some(placed) = loaded.services.get_mut(name).filter(|_| !self.fleet.is_ending()) else {
            return RolloutAnswer::Unknown;
        };
        let Some(template) = self.fleet.former_template(name).cloned() else {
            return RolloutAnswer::NothingBefore;
        };
        placed.service.template.clone_from(&template);
        let file = placed.file.clone();
        self.rolled_back.insert(name.clone(), RolledBackService { file: file.clone(), template });
        self.adopt(loaded);
        RolloutAnswer::Begun { file }
    }

    /// Removes a Service, whatever its file says until it is written again.
    pub(super) fn delete(&mut self, name: &RevisionName) -> Deletion {
        let mut loaded = LoadedManifest::clone(&self.loaded);
        let Some(placed) = loaded.services.remove(name).filter(|_| !self.fleet.is_ending()) else {
            return Deletion::Unknown;
        };
        self.deleted.insert(name.clone(), placed.file.clone());
        self.adopt(loaded);
        Deletion::Begun { file: placed.file }
    }

    /// Lets something else apply than before.
    fn adopt(&mut self, loaded: LoadedManifest) {
        let loaded = Arc::new(loaded);
        if loaded.cluster != self.loaded.cluster {
            tracing::info!("the ConfigMap changed");
            self.status.cluster = loaded.cluster.clone();
            self.subscribers.note_topic(PlatformTopic::Config);
        }
        if loaded.observability != self.loaded.observability {
            tracing::info!("the ConfigMap config-observability changed");
            self.reporting.send_replace(loaded.reporting());
        }
        log_edits(&self.loaded, &loaded);
        self.apply(&loaded);
        self.last_good.send_replace(Arc::clone(&loaded));
        self.loaded = loaded;
    }

    fn note_troubles(&mut self, troubles: Vec<Trouble>) {
        if self.troubles == troubles {
            return;
        }
        for trouble in &troubles {
            tracing::warn!("{trouble}; the last good version stays in force");
        }
        if troubles.is_empty() {
            tracing::info!("the files have no problems any more");
        }
        self.status.problems = troubles.iter().map(Trouble::to_string).collect();
        self.troubles = troubles;
        self.subscribers.note_topic(PlatformTopic::Problems);
    }

    fn note_warnings(&mut self, warnings: Vec<Trouble>) {
        for warning in warnings.iter().filter(|warning| !self.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        self.warnings = warnings;
    }
}

fn log_edits(before: &LoadedManifest, after: &LoadedManifest) {
    for (name, placed) in &before.services {
        if !after.services.contains_key(name) {
            tracing::info!(revision = %name, file = shown(&placed.file), "removed: its pods drain");
        }
    }
    for (name, placed) in &after.services {
        let Some(change) = change(before.services.get(name), placed) else { continue };
        tracing::info!(revision = %name, file = shown(&placed.file), "{change}");
    }
}

/// What is new about a Service, if anything is.
fn change(before: Option<&PlacedService>, after: &PlacedService) -> Option<&'static str> {
    match before {
        None => Some("added"),
        Some(before) if before.service == after.service => None,
        Some(before) if before.service.template == after.service.template => {
            Some("edited: it applies to the pods that run")
        }
        Some(_) => Some("edited: new pods take over"),
    }
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}
