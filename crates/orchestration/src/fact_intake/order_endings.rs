//! How an order ended, and what follows from that.

use std::sync::Arc;

use scaling::{Event, ScaleEnding};
use vocabulary::{PodCount, PodId, RevisionId};

use super::FactIntake;
use crate::departures::LeaveTaking;
use crate::order_outcome::{OrderId, OrderOutcome};
use crate::outbox::Purpose;
use crate::pod_start::AskedPods;

impl FactIntake<'_> {
    pub(super) fn order_ended(&mut self, order: OrderId, outcome: OrderOutcome) {
        let Some(purpose) = self.state.outbox.order_ended(order, &outcome) else { return };
        match purpose {
            Purpose::Scale(id) => self.scale_ended(id, outcome),
            Purpose::Route(id) => self.route_ended(id, order, outcome),
            Purpose::Release(id, pod) => self.release_ended(id, pod, &outcome),
            Purpose::Notice => {}
        }
    }

    fn scale_ended(&mut self, id: RevisionId, outcome: OrderOutcome) {
        self.state.publication.note_changed(id);
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        let failed = Event::ScaleEnded { revision: id, ending: ScaleEnding::Failed };
        match outcome {
            OrderOutcome::Conflict { found } => {
                self.state.tell(failed, self.now);
                self.count_found(id, found);
            }
            OrderOutcome::Refused(text) | OrderOutcome::Forbidden(text) => {
                record.scale_trouble = Some(text);
                // That order is not tried again. Class hpa does at its next sync, from the count that there
                // is; class kpa when its answer changes.
                let present = record.spec.hpa.is_some().then_some(record.facts.wanted);
                self.state.tell(failed, self.now);
                if let Some(present) = present {
                    self.count_found(id, present);
                }
            }
            OrderOutcome::Retrying(text) => {
                // The platform goes on trying. Until it succeeds the change has not happened, and policies
                // must not count it.
                record.scale_trouble = Some(text);
                self.state.tell(failed, self.now);
            }
            OrderOutcome::Done => {
                // Only a change that was called failed has to be called written.
                if record.scale_trouble.take().is_some() {
                    let ending = ScaleEnding::WrittenAfterAll;
                    self.state.tell(Event::ScaleEnded { revision: id, ending }, self.now);
                }
            }
            OrderOutcome::Superseded | OrderOutcome::Gone | OrderOutcome::NotOwner => {}
        }
    }

    /// Another count than the ordered one is there; it stays, and the next decision goes on from it.
    fn count_found(&mut self, id: RevisionId, found: PodCount) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        // The pods that were asked for do not come.
        record.asked = AskedPods::default();
        let (spec, origin) = (Arc::clone(&record.spec), record.facts.origin);
        self.state.tell(Event::RevisionChanged { revision: id, spec, wanted: found, origin }, self.now);
        self.state.unsettled.touch(id);
    }

    fn route_ended(&mut self, id: RevisionId, order: OrderId, outcome: OrderOutcome) {
        self.state.publication.note_changed(id);
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        match outcome {
            OrderOutcome::Done => {
                if record.route.note_written(order) {
                    // Activators hear nothing new of it, but it may have been all that the path's
                    // acknowledgement waited for.
                    self.state.unsettled.note_proven(id);
                }
            }
            OrderOutcome::Refused(text) | OrderOutcome::Forbidden(text) | OrderOutcome::Retrying(text) => {
                record.route.note_trouble(order, text);
            }
            OrderOutcome::Superseded
            | OrderOutcome::Conflict { .. }
            | OrderOutcome::Gone
            | OrderOutcome::NotOwner => {}
        }
    }

    fn release_ended(&mut self, id: RevisionId, pod: PodId, outcome: &OrderOutcome) {
        let Some(record) = self.state.registry.pod_mut(id, pod) else { return };
        // A pod that is to stay after all has been taken back meanwhile, and must not hear that it may go.
        if *outcome == OrderOutcome::Done && record.leave == LeaveTaking::Released {
            record.leave = LeaveTaking::Gone;
            self.state.tell_pod_its_own_settings(id, pod);
        }
    }
}
