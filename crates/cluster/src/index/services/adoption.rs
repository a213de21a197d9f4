//! Since when do clients of a Service reach its pods through ebb, and which pods had clients before?
//!
//! Before that they were led to the apps' own ports, and connections from then go on there. Times are the API
//! server's, so that every owner names the same adoption by the same number: that of the first slice of ours.

use jiff::Timestamp as WallTime;
use vocabulary::{AdoptionId, RevisionName};

use super::{ServiceAdoption, Services};
use crate::custody::Custody;
use crate::resources::ObjectKey;
use crate::resources::pod::PodObject;
use crate::resources::service::ServiceSelection;

/// A Service whose first slice of ours was made this soon after the Service itself was ours from the start:
/// no client reached a pod by it before. Where Kubernetes was seen to serve it, that counts.
const OURS_FROM_THE_START_SECONDS: i64 = 5;

impl Services {
    /// Looks anew whether a Service is adopted; returns whether its pods have to be told of a change.
    pub(in crate::index) fn review_adoption(&mut self, key: &ObjectKey) -> bool {
        let Some(service) = self.records.get(key) else {
            self.adoptions.remove(key);
            return false;
        };
        let known = self.adoptions.get(key).filter(|known| known.uid == service.uid).cloned();
        let known = known.unwrap_or_default();
        let is_shared = self.leftovers_of(key).next().is_some();
        let has_selector = service.selection != ServiceSelection::None;
        let had_other_endpoints = known.had_other_endpoints || is_shared || has_selector;
        let first_slice = self.first_slice(key, &service.uid, known.first_slice);
        let is_ours = matches!(self.custody.get(key), Some(Custody::Adopted(_))) && !is_shared;
        let had_clients = |first: &WallTime| {
            let created = service.created.map_or(i64::MAX, WallTime::as_second);
            had_other_endpoints || first.as_second().saturating_sub(created) >= OURS_FROM_THE_START_SECONDS
        };
        let adopted = first_slice.filter(|first| is_ours && had_clients(first));
        let uid = service.uid.clone();
        let adoption = ServiceAdoption { uid, had_other_endpoints, first_slice, adopted };
        self.adoptions.insert(key.clone(), adoption);
        adopted != known.adopted
    }

    /// When the first slice of ours was made; `None` without one.
    fn first_slice(&self, key: &ObjectKey, uid: &str, known: Option<WallTime>) -> Option<WallTime> {
        let mut slices = self.slices_of(key, uid).peekable();
        slices.peek()?;
        let made = slices.filter_map(|slice| Some(slice.metadata.creation_timestamp.as_ref()?.0));
        made.chain(known).min()
    }

    /// The latest adoption of a Service of the revision's that a pod has lived through.
    pub(in crate::index) fn adoption_of(
        &self,
        revision: &RevisionName,
        pod: &PodObject,
    ) -> Option<AdoptionId> {
        let created = pod.created?;
        pod.queue_proxy.as_ref()?;
        let adopted = self.keys_of(revision).filter_map(|key| self.adoptions.get(key)?.adopted);
        let lived_through = adopted.filter(|adopted| created <= *adopted).max();
        lived_through.and_then(|adopted| u64::try_from(adopted.as_second()).ok()).map(AdoptionId)
    }
}
