//! What do the ConfigMaps of ebb say, and what is wrong with them?

use std::collections::BTreeMap;

use settings::CONFIG_MAP_NAME;
use settings::ClusterConfig;
use vocabulary::RevisionName;

use super::{Index, Topic};
use crate::knative::{KnownKeys, known_config, late_timeout};
use crate::notice::{BAD_ANNOTATION, HISTORIES_NOT_KEPT, Notice};

/// The ConfigMap by which ebb's programs log, trace and serve metrics.
const OBSERVABILITY: &str = "config-observability";
/// The ConfigMaps of histories have names that begin so.
const HISTORIES: &str = "ebb-history";

impl Index {
    /// `config-autoscaler` as it is written; without one the defaults apply.
    pub(crate) fn put_config(&mut self, data: &BTreeMap<String, String>) {
        // In an installed Knative keys of vendors may stand beside ours. A configuration that is refused at
        // start would forbid every scale-down.
        let keys = if self.revisions.domain().is_some() {
            self.take_own_keys(data)
        } else {
            KnownKeys { known: data.clone(), warnings: Vec::new() }
        };
        let problems = match ClusterConfig::parse(&keys.known) {
            Ok(checked) => {
                self.workloads.configure(checked.value);
                self.notices.tell(Topic::Configuration);
                let all: Vec<RevisionName> = self.workloads.names().cloned().collect();
                for revision in &all {
                    self.read_settings(revision);
                }
                checked.warnings
            }
            Err(problems) => problems,
        };
        let messages = problems.into_iter().map(|problem| problem.message);
        self.put_config_map(CONFIG_MAP_NAME, keys.warnings.into_iter().chain(messages));
    }

    /// Takes in the keys that ebb has in an installed Knative alone; returns the others.
    fn take_own_keys(&mut self, data: &BTreeMap<String, String>) -> KnownKeys {
        let (late, mut keys) = late_timeout(data);
        if std::mem::replace(&mut self.late_timeout, late) != late {
            let revisions: Vec<RevisionName> = self.revisions.names().collect();
            self.notices.tell_all(revisions.into_iter().map(Topic::Revision));
        }
        let KnownKeys { known, warnings } = known_config(&keys.known);
        keys.warnings.extend(warnings);
        KnownKeys { known, ..keys }
    }

    /// What is wrong with `config-observability`, as its reader found it. Nothing here follows from that
    /// ConfigMap: activators and injectors read it themselves. But here people look for what is wrong.
    pub(crate) fn put_observability(&mut self, findings: Vec<String>) {
        self.put_config_map(OBSERVABILITY, findings.into_iter());
    }

    /// Why the histories of revisions are not kept as they should be, and what follows; `None` while they
    /// are. Returns the notice that holds from now on.
    pub(crate) fn put_histories(&mut self, trouble: Option<String>) -> Option<Notice> {
        let text = trouble.map(|trouble| format!("ConfigMaps {HISTORIES}-…: {trouble}"));
        let notice = text.map(|text| Notice::new(HISTORIES_NOT_KEPT, text));
        self.notices.put_of_config_map(HISTORIES, notice.clone().into_iter().collect());
        notice
    }

    fn put_config_map(&mut self, name: &'static str, messages: impl Iterator<Item = String>) {
        let notices = messages.map(|message| Notice::new(BAD_ANNOTATION, message)).collect();
        self.notices.put_of_config_map(name, notices);
    }
}
