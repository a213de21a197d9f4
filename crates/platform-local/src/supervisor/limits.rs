//! Are the limits of manifests kept here? If not, that is a problem of each Service that has some, and a line
//! in the log once, with what to do about it.

use std::path::Path;

use vocabulary::RevisionName;

use crate::control_groups::{ContainerLimits, ControlGroupError, ControlGroups};
use crate::manifest::LoadedManifest;
use crate::supervisor::outbox::service_problem;

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

    /// The problems of the Services whose limits are not enforced; the first one is also warned of, once.
    pub(super) fn problems_of(&mut self, loaded: &LoadedManifest) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, placed) in &loaded.services {
            // Those of an image are its engine's to keep.
            let processes = placed.service.template.containers().filter(|one| one.image.is_none());
            let mut limits = processes.map(|container| container.limits);
            let Some(why) = limits.find_map(|limits| self.unenforced(limits)) else { continue };
            if !self.was_said {
                warn_of(name, &why);
                self.was_said = true;
            }
            problems.push(problem_of(name, &why));
        }
        problems
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

fn problem_of(revision: &RevisionName, why: &str) -> String {
    let text = format!("the limits of CPU and memory in its manifest have no effect: {why}");
    service_problem(revision, &text)
}

fn warn_of(revision: &RevisionName, why: &str) {
    tracing::warn!(%revision, "the limits of CPU and memory in its manifest have no effect: {why}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_effect_is_a_problem_of_its_service() {
        let name = RevisionName::new("shop", "service", "cart").expect("a name");
        assert_eq!(
            problem_of(&name, "this machine has none"),
            "service shop/cart: the limits of CPU and memory in its manifest have no effect: this machine has none"
        );
    }
}
