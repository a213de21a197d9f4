//! What may be done to a workload's count, whatever load and settings say?
//!
//! Who is served past us is not measured by us: a count that looked idle would be lowered under those
//! clients. So as long as there are any, it may grow and does not fall; nor does it while nobody knows what
//! its people want. And where a person or another
//! autoscaler decides, nothing is written at all; at zero a request then waits for nobody, and is told so at
//! once.

use vocabulary::{PodCount, RevisionName};

use super::handover::selects;
use super::{Index, Workload};
use crate::custody::Custody;
use crate::notice::{BAD_ANNOTATION, NOT_ROUTABLE, Notice, OTHER_AUTOSCALER, PAUSED};
use crate::resources::ObjectKey;
use crate::resources::ports::{PortKind, ServicePort};
use crate::resources::service::{ServiceAddressing, ServiceRecord, ServiceSelection};

/// What holds back whoever decides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Restraint {
    pub(super) reach: WriteScope,
    /// The least count.
    pub(super) floor: PodCount,
    /// Why nobody should wait for a pod while there is none.
    pub(super) hold: Option<String>,
    pub(super) notices: Vec<Notice>,
}

/// What may be written of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope {
    /// The count, and who serves.
    Everything,
    /// No count: no Service of it is ours yet, or somebody else decides.
    Nothing,
}

/// Somebody else decides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OtherDecider {
    /// For whoever sends a request while there is no pod.
    hold: String,
    notice: Notice,
}

impl Index {
    pub(super) fn restraint(&self, revision: &RevisionName, workload: &Workload) -> Restraint {
        let keys = self.served.get(revision).into_iter().flatten();
        let custody: Vec<&Custody> = keys.filter_map(|key| self.custody.get(key)).collect();
        let is_waiting = custody.iter().all(|custody| matches!(custody, Custody::Prepared(_)));
        if let Some(OtherDecider { hold, notice }) = self.stop(revision, workload) {
            let notices = if is_waiting { Vec::new() } else { vec![notice] };
            return Restraint {
                reach: WriteScope::Nothing,
                floor: PodCount::ZERO,
                hold: Some(hold),
                notices,
            };
        }
        if is_waiting {
            // What would be decided is shown, and not bent by what it would be held to.
            return Restraint {
                reach: WriteScope::Nothing,
                floor: PodCount::ZERO,
                hold: None,
                notices: Vec::new(),
            };
        }
        let subset_notice = workload.has_valid_subset_only.then(|| {
            let text = "while ebb has looked, its annotations were never all right: what is wrong in them counts as not written, and its count is not lowered until they are mended";
            Notice::new(BAD_ANNOTATION, text)
        });
        let notices: Vec<Notice> = self.bypass(revision, workload).into_iter().chain(subset_notice).collect();
        let wanted = workload.record.wanted;
        // Whose Service is being given back is served without us at any moment, so a pod must be there. A
        // bypass, or not knowing what its people want, only keeps what there is.
        let floor = if custody.iter().any(|custody| custody.keeps_a_pod()) {
            wanted.max(PodCount::ONE)
        } else if !notices.is_empty() {
            wanted
        } else {
            PodCount::ZERO
        };
        Restraint { reach: WriteScope::Everything, floor, hold: None, notices }
    }

    /// Who else decides about a count, if somebody does. What a person asked only to be watched is nobody's
    /// here.
    pub(super) fn stop(&self, revision: &RevisionName, workload: &Workload) -> Option<OtherDecider> {
        let settings = workload.settings.as_ref()?;
        if settings.scaling.paused == Some(true) {
            let text = "annotation ebb.dev/paused is \"true\", so ebb leaves its count alone, and at zero answers requests 504 at once; take it away to go on";
            return Some(OtherDecider { hold: "paused".to_owned(), notice: Notice::new(PAUSED, text) });
        }
        if settings.scaling.shadow == Some(true) {
            return None;
        }
        let other = self.other_autoscaler(revision, workload)?;
        let name = &other.name;
        let text = format!(
            "HorizontalPodAutoscaler {name} scales it too, so ebb leaves its count alone; delete that one, or set ebb.dev/shadow: \"true\" to see what ebb would do"
        );
        let hold = format!("HorizontalPodAutoscaler {name} decides its count");
        Some(OtherDecider { hold, notice: Notice::new(OTHER_AUTOSCALER, text) })
    }

    /// A Service that leads to its pods past us.
    fn bypass(&self, revision: &RevisionName, workload: &Workload) -> Option<Notice> {
        let namespace = revision.namespace();
        let first = ObjectKey { namespace: namespace.to_owned(), name: String::new() };
        let mut in_namespace = self.services.range(first..).take_while(|(key, _)| key.namespace == namespace);
        let (key, _) = in_namespace.find(|(key, service)| {
            let is_being_given_back = self.custody.get(*key).is_some_and(Custody::keeps_a_pod);
            !is_being_given_back && leads_past_us(key, service, workload)
        })?;
        let text = format!(
            "Service {} leads to its pods past ebb, so its count is not lowered: give that Service the annotation ebb.dev/revision too and remove its selector, or ebb.dev/bypass: \"true\" if its clients may find no pod",
            key.name
        );
        Some(Notice::new(NOT_ROUTABLE, text))
    }
}

/// Whether clients of a Service reach requests' ports of a workload's pods. Peers of a `StatefulSet` find
/// each other by its governing Service, and ports that are no affair of ours keep nobody: plain ones, those
/// that nobody declared, those of other protocols.
fn leads_past_us(key: &ObjectKey, service: &ServiceRecord, workload: &Workload) -> bool {
    let ServiceSelection::Labels(wanted) = &service.selection else { return false };
    let record = &workload.record;
    let is_governing = record.governing_service.as_deref() == Some(key.name.as_str());
    let is_served = |port: &ServicePort| record.ports.kind(port) == PortKind::Served;
    let reaches_requests = !service.names_ports || service.shape.ports.iter().any(is_served);
    let has_endpoints = service.addressing != ServiceAddressing::ExternalName;
    has_endpoints
        && reaches_requests
        && !service.is_bypass
        && !is_governing
        && selects(wanted, &record.template_labels)
}
