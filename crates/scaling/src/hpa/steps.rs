//! Why a count is what it is, step by step, in the order in which it happened.
//!
//! Unlike the reasons of a KPA decision, a step stands here even if it leaves the number as it is: each
//! metric's ratio, each policy's bound and the window's envelope belong to the answer, whichever of them held
//! in the end.

use serde::{Deserialize, Serialize};
use vocabulary::PodCount;

use super::sentence::HpaSentence;
use crate::decision::{Reason, Stage};

/// A number on its way through the steps of one evaluation. The list is kept from one evaluation to the next,
/// so that it need not grow again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Steps {
    list: Vec<Reason>,
    number: Option<PodCount>,
}

impl Steps {
    /// Forgets the steps of the last evaluation; the number is unknown again.
    pub(super) fn restart(&mut self) {
        self.list.clear();
        self.number = None;
    }

    /// Goes on from where other reasons led to.
    pub(super) fn go_on_from(&mut self, reasons: &[Reason]) {
        self.list.extend_from_slice(reasons);
        self.number = reasons.last().and_then(|reason| reason.after);
    }

    /// A step that leads to this number.
    pub(super) fn lead_to(&mut self, after: PodCount, stage: Stage, text: HpaSentence) {
        self.list.push(Reason { stage, before: self.number, after: Some(after), text: text.into() });
        self.number = Some(after);
    }

    /// A step that leaves the number as it is.
    pub(super) fn note(&mut self, stage: Stage, text: HpaSentence) {
        self.list.push(Reason { stage, before: self.number, after: self.number, text: text.into() });
    }

    /// The number is not to be acted upon.
    pub(super) fn drop_number(&mut self, stage: Stage, text: HpaSentence) {
        self.list.push(Reason { stage, before: self.number, after: None, text: text.into() });
        self.number = None;
    }

    pub(super) fn as_slice(&self) -> &[Reason] {
        &self.list
    }
}
