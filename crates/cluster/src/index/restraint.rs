//! What may be done to a workload's count, whatever load and settings say?
//!
//! Requests that reach pods past ebb are not measured: a count that looked idle would be lowered under those
//! clients. So while a Service leads to the pods past ebb, the count may grow and does not fall; nor does it
//! while the workload's annotations were never valid. Where a person or another autoscaler decides, ebb
//! writes no count at all; at zero a request is then refused at once, with the reason.

use settings::FloorCause;
use vocabulary::{PodCount, RevisionName};

use super::labels::selects;
use super::{Index, Workload};
use crate::custody::Custody;
use crate::notice::{BAD_ANNOTATION, NOT_ROUTABLE, Notice, OTHER_AUTOSCALER, PAUSED};
use crate::resources::ObjectKey;
use crate::resources::ports::{PortKind, ServicePort};
use crate::resources::service::{ServiceAddressing, ServiceRecord, ServiceSelection};

/// What limits the autoscaler's decisions about one workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Restraint {
    pub(super) reach: WriteScope,
    /// Below this count the autoscaler may not scale.
    pub(super) floor: PodCount,
    /// Why there is a floor; without meaning while that is zero.
    pub(super) floor_cause: FloorCause,
    /// Why a request is refused, and does not wait, while there is no pod.
    pub(super) hold: Option<String>,
    pub(super) notices: Vec<Notice>,
}

/// What ebb may write of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteScope {
    /// The count, and the slices of its Services.
    Everything,
    /// No count: none of its Services is ours yet, or another program or a person decides.
    Nothing,
}

/// Why another program or a person, and not ebb, decides about a count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OtherDecider {
    /// The reason in the refusal of a request while there is no pod.
    hold: String,
    notice: Notice,
}

impl Index {
    pub(super) fn restraint(&self, revision: &RevisionName, workload: &Workload) -> Restraint {
        let keys = self.services.keys_of(revision);
        let custody: Vec<&Custody> = keys.filter_map(|key| self.services.custody(key)).collect();
        let is_waiting = custody.iter().all(|custody| matches!(custody, Custody::Prepared(_)));
        if let Some(OtherDecider { hold, notice }) = self.other_decider(revision, workload) {
            let notices = if is_waiting { Vec::new() } else { vec![notice] };
            return Restraint {
                reach: WriteScope::Nothing,
                floor: PodCount::ZERO,
                floor_cause: FloorCause::default(),
                hold: Some(hold),
                notices,
            };
        }
        if is_waiting {
            // What would be decided is shown, and not bent by what it would be held to.
            return Restraint {
                reach: WriteScope::Nothing,
                floor: PodCount::ZERO,
                floor_cause: FloorCause::default(),
                hold: None,
                notices: Vec::new(),
            };
        }
        let subset_notice = workload.has_valid_subset_only.then(|| {
            let text = "the annotations of the workload were never all valid since this autoscaler began to watch: those that are invalid count as not written, and its count is not lowered until they are mended";
            Notice::new(BAD_ANNOTATION, text)
        });
        let bypass = self.bypass(revision, workload);
        let cause_of_notices =
            if bypass.is_some() { FloorCause::Bypass } else { FloorCause::InvalidAnnotations };
        let notices: Vec<Notice> = bypass.into_iter().chain(subset_notice).collect();
        // A count that was written stands although the watch has not shown it.
        let present = self.workloads.counts().greatest_count(revision).unwrap_or_default();
        // A Service that is being given back is served without ebb at any moment, so a pod must be there.
        // With a bypass, or settings that were never valid, the count only stays what it is.
        let (floor, floor_cause) =
            if let Some(cause) = custody.iter().find_map(|custody| custody.floor_cause()) {
                (present.max(PodCount::ONE), cause)
            } else if !notices.is_empty() {
                (present, cause_of_notices)
            } else {
                (PodCount::ZERO, FloorCause::default())
            };
        Restraint { reach: WriteScope::Everything, floor, floor_cause, hold: None, notices }
    }

    /// The count below which a workload may not be scaled.
    pub(super) fn floor(&self, revision: &RevisionName) -> PodCount {
        let workload = self.workloads.get(revision);
        workload.map_or(PodCount::ZERO, |workload| self.restraint(revision, workload).floor)
    }

    /// The other program or the person that decides about a count, if there is one. A workload that ebb only
    /// shadows needs none.
    pub(super) fn other_decider(&self, revision: &RevisionName, workload: &Workload) -> Option<OtherDecider> {
        let settings = workload.settings.as_ref()?;
        if settings.scaling.paused == Some(true) {
            let text = "annotation ebb.dev/paused is \"true\", so ebb leaves its count alone, and at zero answers requests 504 at once; take it away to go on";
            return Some(OtherDecider { hold: "paused".to_owned(), notice: Notice::new(PAUSED, text) });
        }
        if settings.scaling.shadow == Some(true) {
            return None;
        }
        let other = self.workloads.other_autoscaler(revision, workload)?;
        let name = &other.name;
        let text = format!(
            "HorizontalPodAutoscaler {name} scales it too, so ebb leaves its count alone; delete that one, or set ebb.dev/shadow: \"true\" to see what ebb would do"
        );
        let hold = format!("HorizontalPodAutoscaler {name} decides its count");
        Some(OtherDecider { hold, notice: Notice::new(OTHER_AUTOSCALER, text) })
    }

    /// A notice of a Service that leads to the workload's pods past ebb.
    fn bypass(&self, revision: &RevisionName, workload: &Workload) -> Option<Notice> {
        let mut in_namespace = self.services.in_namespace(revision.namespace());
        let (key, _) = in_namespace.find(|(key, service)| {
            let is_being_given_back = self.services.custody(key).is_some_and(Custody::keeps_a_pod);
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
/// each other by its governing Service, and ports that ebb does not serve count for nothing: plain ones,
/// undeclared ones, those of other protocols.
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
