//! The templates of a revision: the one in its manifest, those that pods still run, and the one before the
//! last edit.

use super::SupervisedRevision;
use crate::manifest::ManifestService;
use crate::pod::Template;
use crate::supervisor::pod::TemplateNumber;

impl SupervisedRevision {
    /// Takes in an edited manifest. A template that still has pods keeps its number, so undoing an edit costs
    /// nothing.
    pub(crate) fn edit(&mut self, service: ManifestService) {
        // Templates are compared by content and not by time: an edit that is undone while pods of the former
        // template still run keeps those pods. Of equal templates the newest counts: a restart has replaced
        // the others.
        let known = self.templates.iter().rev().find(|(_, template)| **template == service.template);
        let known = known.map(|(number, _)| *number);
        let before = std::mem::replace(&mut self.service, service);
        if before.template != self.service.template {
            self.former_template = Some(before.template);
        }
        match known {
            Some(number) => self.present = number,
            None => self.number_template(),
        }
        self.begin_rollout();
    }

    /// Lets new pods of the same template take over from those that run.
    pub(crate) fn renew_pods(&mut self) {
        self.number_template();
        self.begin_rollout();
    }

    /// Gives the manifest's template a new number, under which no pod runs yet.
    fn number_template(&mut self) {
        self.numbers_given += 1;
        self.templates.insert(self.numbers_given, self.service.template.clone());
        self.present = self.numbers_given;
    }

    /// Lets pods of the present template take over from all others.
    fn begin_rollout(&mut self) {
        self.is_rolling = !self.wanted_pods().1.is_empty();
        self.forget_templates();
    }

    /// The template before the last edit, if there was one.
    pub(crate) fn former_template(&self) -> Option<&Template> {
        self.former_template.as_ref()
    }

    /// Forgets templates that no pod runs and none will.
    pub(super) fn forget_templates(&mut self) {
        let used: Vec<TemplateNumber> = self.pods.values().map(|pod| pod.template).collect();
        let is_used = |number: &TemplateNumber| *number == self.present || used.contains(number);
        self.templates.retain(|number, _| is_used(number));
        self.restarts.retain(|number, _| is_used(number));
    }
}
