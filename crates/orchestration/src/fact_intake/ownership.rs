//! Which buckets are ours, and what follows from a change of that: revisions that are taken over or given up.

use scaling::Event;
use vocabulary::{Ownership, ReplicaId, Reporter, RevisionId};

use super::FactIntake;
use crate::activators::ActivatorReach;
use crate::facts::ActivatorFacts;
use crate::links::LinkId;
use crate::readiness::LinkCondition;

impl FactIntake<'_> {
    pub(super) fn ownership_changed(&mut self, ownership: Ownership) {
        if *self.state.ownership.present() == ownership {
            return;
        }
        let former = self.state.ownership.replace(ownership);
        let all: Vec<RevisionId> = self.state.registry.revisions.keys().copied().collect();
        for id in all {
            let Some(record) = self.state.registry.revisions.get(&id) else { continue };
            // The number of buckets is shown with each revision.
            self.state.publication.note_changed(id);
            let epoch = self.state.ownership.epoch_of(&record.facts.name);
            // Another epoch means that the bucket may have been another's in between, and its decisions are
            // not known here: given up and taken over in one go.
            if record.epoch.is_some() && record.epoch != epoch {
                self.give_up(id);
            }
            if epoch.is_some()
                && self.state.registry.revisions.get(&id).is_some_and(|record| record.epoch.is_none())
            {
                self.take_over(id);
            }
        }
        let ownership = self.state.ownership.present();
        self.state.removed.keep_owned(ownership);
        let mut present = ownership.epochs.iter();
        // Buckets that are only lost need no new hello: there is nothing to learn about them, only something
        // to say.
        if present.any(|(bucket, epoch)| former.epochs.get(bucket) != Some(epoch)) {
            self.relink_activators();
        } else {
            self.resync_activators();
        }
    }

    /// The new owner of a bucket must hear what each activator holds of it, measured of it and was told of
    /// it. A hello says all that, and activators that have said theirs say it again on a new link.
    fn relink_activators(&mut self) {
        let told = self.state.activators.iter().filter(|(_, record)| record.is_told());
        let told: Vec<(ReplicaId, ActivatorFacts, LinkId)> =
            told.map(|(id, record)| (id, record.facts.clone(), record.link)).collect();
        for (id, facts, former) in told {
            self.state.end_link(former);
            self.state.unsettled.cancel_sync(id);
            self.link_activator(id, facts);
            self.state.tell(Event::LinkLost { reporter: Reporter::Activator(id) }, self.now);
        }
    }

    /// Tells every linked activator which buckets are ours now.
    fn resync_activators(&mut self) {
        let linked = self.state.activators.iter_mut().filter(|(_, record)| record.is_told());
        for (id, record) in linked {
            record.reach = ActivatorReach::Unsynced;
            self.state.unsettled.request_sync(id);
        }
    }

    /// A revision is another owner's from now on: what we know stays, what we decided does not.
    fn give_up(&mut self, id: RevisionId) {
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        // The outcome of our last order will not be heard any more, so it is taken for written until a route
        // is found. When the revision is ours again that route is one from before, like any that is found.
        let written = record.route.latest().cloned();
        let links: Vec<_> = record.pods.values().filter_map(|pod| pod.link).collect();
        for pod in record.pods.values_mut() {
            pod.heard.connection = LinkCondition::Down;
        }
        record.give_up();
        if let Some(route) = written {
            record.route.note_found(route);
        }
        for link in links {
            self.state.end_link(link.id);
        }
        self.state.tell(Event::RevisionRemoved { revision: id }, self.now);
        self.state.activators.revision_given_up(id);
        self.forget_number(id);
    }
}
