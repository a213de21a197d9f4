//! Are the limits of manifests kept here? If not, that is said once, with what to do about it.

use std::path::Path;

use vocabulary::RevisionName;

use crate::control_groups::{ContainerLimits, ControlGroupError, ControlGroups};
use crate::manifest::LoadedManifest;

/// The control groups of the pods, or why there are none.
#[derive(Debug)]
pub(super) struct LimitKeeper {
    groups: Result<ControlGroups, ControlGroupError>,
    was_said: bool,
}

impl LimitKeeper {
    /// Sets the groups up, or joins those that were `handed_over`.
    pub(super) fn start(handed_over: Option<&Path>) -> Self {
        let groups = ControlGroups::set_up(handed_over);
        if let Ok(groups) = &groups {
            tracing::info!(group = %groups.root().display(), "limits of CPU and memory are kept by control groups");
        }
        Self { groups, was_said: false }
    }

    /// The group that is divided among the pods.
    pub(super) fn root(&self) -> Option<&Path> {
        self.groups.as_ref().ok().map(ControlGroups::root)
    }

    /// Warns once that limits are not enforced, if a manifest has some.
    pub(super) fn warn_of_unenforced(&mut self, loaded: &LoadedManifest) {
        let unenforced = loaded.services.iter().find_map(|(name, placed)| {
            let mut limits = placed.service.template.containers().map(|container| container.limits);
            limits.find_map(|limits| self.unenforced(limits)).map(|why| (name, why))
        });
        if let Some((revision, why)) = unenforced.filter(|_| !self.was_said) {
            warn_of(revision, &why);
            self.was_said = true;
        }
    }

    /// Why these do not hold, if so. A request alone is no limit, and holds nowhere but between neighbours.
    fn unenforced(&self, limits: ContainerLimits) -> Option<String> {
        limits.memory_bytes.or(limits.cpu_milli)?;
        match &self.groups {
            Ok(groups) => groups.unenforced(limits).map(|what| {
                format!("the control group of ebb may not limit {what}; its unit needs Delegate=yes")
            }),
            Err(why) => Some(why.to_string()),
        }
    }
}

fn warn_of(revision: &RevisionName, why: &str) {
    tracing::warn!(%revision, "the limits of CPU and memory in its manifest have no effect: {why}");
}
