//! What follows from everything that was taken in since the last time: assignments, routes, pods and
//! entrances that are let go.
//!
//! It runs once for however many facts and words came together, so that a thousand of them about one revision
//! cost one assignment.

use std::collections::BTreeSet;
use std::sync::Arc;

use scaling::Event;
use vocabulary::{
    Assignment, Bucket, PodCount, PodId, ReplicaId, ReplicaName, RevisionId, RevisionName, Routing,
    Timestamp, choose_subset,
};

use crate::activators::{ActivatorReach, HoldingState, standing_to_tell};
use crate::assignments;
use crate::deadlines::Deadline;
use crate::departures::{FORGET_AFTER, LeaveTaking};
use crate::events::{ControlCommand, Unassignment, Urgency};
use crate::facts::{Entrance, Subject};
use crate::host_review::HostReview;
use crate::orchestrator_settings::ActivatorChoice;
use crate::orders::{Order, ReasonCode, ReleaseProof};
use crate::outbox::Purpose;
use crate::readiness::LinkCondition;
use crate::registry::RevisionRecord;
use crate::route;
use crate::sharing::chosen_by_address;
use crate::state::ControlState;
use crate::unsettled::RevisionStep;

/// Draws the conclusions at one point in time.
pub(crate) struct Settlement<'a> {
    pub(crate) state: &'a mut ControlState,
    pub(crate) now: Timestamp,
}

impl Settlement<'_> {
    /// Brings everything up to date that was touched, then tells everything to those activators that have
    /// just said hello.
    pub(crate) fn settle(&mut self) {
        // Telling the multiscaler of an acknowledged path may change a route, and so an assignment, once
        // more.
        while let Some(step) = self.state.unsettled.next_step() {
            match step {
                RevisionStep::Rebuild(id) => {
                    self.state.publication.note_changed(id);
                    // Before what goes by it: the room for a burst, and with it the path.
                    HostReview { state: self.state, now: self.now }.order_reach(id);
                    // In this order: a pod that leaves waits for the version that says so, which is made
                    // here.
                    self.reassign(id);
                    self.follow_up(id);
                }
                RevisionStep::FollowUp(id) => self.follow_up(id),
            }
        }
        // Last, so that a sync carries what was just rebuilt; until theirs these activators are told nothing
        // else.
        while let Some(activator) = self.state.unsettled.next_unsynced() {
            self.sync(activator);
        }
        self.release_entrances_of_removed();
        self.release_activators();
    }

    /// Does what is due by now.
    pub(crate) fn keep_deadlines(&mut self) {
        while let Some(deadline) = self.state.deadlines.take_due(self.now) {
            match deadline {
                Deadline::Release(revision, pod) => self.release(revision, pod, ReleaseProof::OutOfTime),
                Deadline::Refusal(revision, pod) => self.end_refusal(revision, pod),
                Deadline::Forget(revision, activator) => self.forget(revision, activator),
                Deadline::HostReview => HostReview { state: self.state, now: self.now }.review(),
            }
        }
    }

    fn end_refusal(&mut self, revision: RevisionId, pod: PodId) {
        if let Some(record) = self.state.registry.pod_mut(revision, pod)
            && record.heard.connection == LinkCondition::Refused
        {
            record.heard.connection = LinkCondition::RefusedLong;
            self.state.tell_pod(revision, pod, self.now);
        }
    }

    /// Rebuilds a revision's assignment, and sends it to each activator for which something is new.
    fn reassign(&mut self, id: RevisionId) {
        let Some(record) = self.state.registry.noted(id) else { return };
        let Some(epoch) = record.epoch else { return };
        let members = self.members(record);
        let mut next = assignments::assignment(record, self.state.wanted(id, record), &self.state.config);
        // The former version for the comparison: only what is said decides whether it is news.
        next.version = record.assignment.as_ref().map(|former| former.version).unwrap_or_default();
        let sharers = self.sharers(record, &members);
        let division = assignments::division_urgency(record, &sharers, &next);
        let urgency = self.revise(id, record, &members, &next).into_iter().chain(division).min();
        let Some(record) = self.state.registry.noted_mut(id) else { return };
        record.members.clone_from(&members);
        record.sharers = sharers;
        if urgency.is_some() {
            let version = self.state.ownership.next_version(epoch);
            // Kept from version to version: else the path would have to be proven anew whenever a pod comes
            // or goes.
            record.through_since = match next.routing {
                Routing::Direct => None,
                Routing::ThroughActivator => record.through_since.or(Some(version)),
            };
            record.assignment = Some(Arc::new(Assignment { version, ..next }));
        }
        let Some(whole) = record.assignment.clone() else { return };
        for activator in self.state.activators.ids() {
            self.inform(id, activator, &whole, urgency);
        }
    }

    /// Those that serve a revision, in the order of their names.
    fn members(&self, record: &RevisionRecord) -> Vec<ReplicaId> {
        let candidates = self.state.activators.candidates();
        let count = match self.state.settings.choice {
            ActivatorChoice::All | ActivatorChoice::AllOfWhichSomeShare => usize::MAX,
            ActivatorChoice::AsManyAsNeeded => record.activator_count.map_or(usize::MAX, PodCount::as_usize),
        };
        let chosen = choose_subset(&candidates, count, record.facts.name.as_str());
        let members = chosen.into_iter().filter_map(|name| self.state.activators.id(&ReplicaName::new(name)));
        members.collect()
    }

    /// Those of the members that share the slots of a revision's pods.
    fn sharers(&self, record: &RevisionRecord, members: &[ReplicaId]) -> Vec<ReplicaId> {
        match self.state.settings.choice {
            ActivatorChoice::All | ActivatorChoice::AsManyAsNeeded => members.to_vec(),
            ActivatorChoice::AllOfWhichSomeShare => {
                let address =
                    |&id: &ReplicaId| Some((id, self.state.activators.get(id)?.facts.link.socket.ip()));
                let addresses = members.iter().filter_map(address);
                chosen_by_address(addresses, record.activator_count, &record.facts.name)
            }
        }
    }

    /// How soon activators must hear of a revision again, whichever of them share its slots; `None` if
    /// nothing else about it is new.
    fn revise(
        &self,
        id: RevisionId,
        record: &RevisionRecord,
        members: &[ReplicaId],
        next: &Assignment,
    ) -> Option<Urgency> {
        let previous = record.assignment.as_deref();
        let content = assignments::urgency(previous, next);
        // A version that an activator has acted upon says what it is to the revision too.
        let standing = self.state.activators.iter().any(|(activator, known)| {
            known.holdings.get(&id).is_some_and(|holding| {
                let is_assigned = holding.standing == HoldingState::Assigned;
                is_assigned != members.contains(&activator)
                    && (is_assigned
                        || holding.standing != HoldingState::Retired
                        || holding.acknowledged.is_some())
            })
        });
        let standing = (standing && previous.is_some()).then_some(Urgency::Soon);
        // To one that forgot the revision nothing may be sent that is older than the word to forget it:
        // versions only grow.
        let is_overtaken = previous.is_some_and(|previous| record.forgotten > Some(previous.version))
            && (members.iter().filter_map(|&member| self.state.activators.get(member)))
                .any(|known| !known.holdings.contains_key(&id));
        let renewal = is_overtaken.then_some(Urgency::AtOnce);
        [content, standing, renewal].into_iter().flatten().min()
    }

    /// Tells one activator of a revision, if it is to know it and does not.
    fn inform(
        &mut self,
        id: RevisionId,
        activator: ReplicaId,
        whole: &Arc<Assignment>,
        news: Option<Urgency>,
    ) {
        let Some(revision) = self.state.registry.noted(id) else { return };
        let is_member = revision.members.contains(&activator);
        let Some(record) = self.state.activators.get_mut(activator) else { return };
        let known = record.holdings.get(&id).map(|holding| holding.standing);
        let Some(standing) = standing_to_tell(is_member, known) else { return };
        // Without news the word to forget stands; being told again would take it back for nothing.
        if matches!(known, Some(HoldingState::Forgetting { .. })) && !is_member && news.is_none() {
            return;
        }
        if let Some(holding) = record.holdings.get_mut(&id) {
            holding.standing = standing;
        }
        // An activator that waits for its sync hears of this assignment with it.
        if record.reach != ActivatorReach::Synced {
            return;
        }
        let is_new = known != Some(standing);
        let Some(urgency) = news.or(is_new.then_some(Urgency::AtOnce)) else { return };
        let link = record.link;
        record.holdings.entry(id).or_default().standing = standing;
        let assignment = assignments::part(whole, &revision.sharers, activator, standing);
        self.state.outbox.push(ControlCommand::Assign { activator: link, assignment, urgency });
    }

    /// Tells an activator everything that it must know, within our buckets, and repeats what it is to know no
    /// more.
    fn sync(&mut self, activator: ReplicaId) {
        let Some(record) = self.state.activators.get_mut(activator) else { return };
        let (mut assignments, mut forgotten) = (Vec::new(), Vec::new());
        for (&id, revision) in &self.state.registry.revisions {
            let Some(whole) = &revision.assignment else { continue };
            let is_member = revision.members.contains(&activator);
            let known = record.holdings.get(&id).map(|holding| holding.standing);
            if let Some(HoldingState::Forgetting { version }) = known
                && !is_member
            {
                forgotten.push((revision.facts.name.clone(), version, Unassignment::Forgotten));
                continue;
            }
            let Some(standing) = standing_to_tell(is_member, known) else { continue };
            record.holdings.entry(id).or_default().standing = standing;
            assignments.push(assignments::part(whole, &revision.sharers, activator, standing));
        }
        let removed = self.state.removed.known_to(activator);
        let removed = removed.filter(|(name, _)| self.state.registry.revision_id(name).is_none());
        forgotten.extend(removed.map(|(name, removed)| (name.clone(), removed.version, removed.how)));
        record.reach = ActivatorReach::Synced;
        let (activator, ownership) = (record.link, self.state.ownership.present().clone());
        self.state.outbox.push(ControlCommand::Sync { activator, ownership, assignments });
        // What a sync does not name is only retired. That it may be dropped has to be said, and the word may
        // have been lost with the former link.
        for (revision, version, how) in forgotten {
            self.state.outbox.push(ControlCommand::Unassign { activator, revision, version, how });
        }
    }

    /// What acknowledgements allow: pods may end, activators may forget, entrances may be given away, and the
    /// path may be proven.
    fn follow_up(&mut self, id: RevisionId) {
        // Releases begin before they are granted: where no activator can send to the pod, one pass does both.
        self.await_releases(id);
        self.release_acknowledged(id);
        self.release_entrances(id);
        // The route before what goes by it: an activator that the new route names does not forget, and a path
        // whose route is about to change is not proven.
        self.order_route(id);
        self.plan_forgetting(id);
        self.tell_path(id);
    }

    /// Pods that are to leave wait for the assignment that says so to be acknowledged.
    fn await_releases(&mut self, id: RevisionId) {
        let release_after = self.state.settings.release_after;
        let Some(revision) = self.state.registry.noted_mut(id) else { return };
        let Some(version) = revision.assignment.as_ref().map(|assignment| assignment.version) else { return };
        for (&pod, record) in &mut revision.pods {
            match (record.facts.leaving, record.leave) {
                (true, LeaveTaking::None) => {
                    // The assignment was rebuilt before this, so an activator that acts upon its version
                    // picks the pod no more.
                    let at_the_latest = self.now + release_after;
                    record.leave = LeaveTaking::Announced { version, at_the_latest };
                    self.state.deadlines.plan(at_the_latest, Deadline::Release(id, pod));
                }
                (false, LeaveTaking::Announced { at_the_latest, .. }) => {
                    record.leave = LeaveTaking::None;
                    self.state.deadlines.cancel(at_the_latest, Deadline::Release(id, pod));
                }
                (false, LeaveTaking::Released | LeaveTaking::Gone) => record.leave = LeaveTaking::None,
                (true, LeaveTaking::Announced { .. } | LeaveTaking::Released | LeaveTaking::Gone)
                | (false, LeaveTaking::None) => {}
            }
        }
    }

    fn release_acknowledged(&mut self, id: RevisionId) {
        let Some(revision) = self.state.registry.noted(id) else { return };
        let acknowledged = revision.pods.iter().filter_map(|(&pod, record)| match record.leave {
            LeaveTaking::Announced { version, .. } if self.state.activators.all_acknowledged(id, version) => {
                Some(pod)
            }
            LeaveTaking::Announced { .. } | LeaveTaking::None | LeaveTaking::Released | LeaveTaking::Gone => {
                None
            }
        });
        for pod in acknowledged.collect::<Vec<_>>() {
            self.release(id, pod, ReleaseProof::Acknowledged);
        }
    }

    fn release(&mut self, id: RevisionId, pod: PodId, proof: ReleaseProof) {
        let Some(revision) = self.state.registry.noted_mut(id) else { return };
        let name = revision.facts.name.clone();
        let Some(record) = revision.pods.get_mut(&pod) else { return };
        // The acknowledgement and the deadline may both come; whichever is first releases the pod, and the
        // other finds it so.
        let LeaveTaking::Announced { at_the_latest, .. } = record.leave else { return };
        record.leave = LeaveTaking::Released;
        let pod_name = record.facts.name.clone();
        self.state.deadlines.cancel(at_the_latest, Deadline::Release(id, pod));
        let order = Order::ReleasePod { pod: pod_name.clone(), proof };
        self.state.order(&name, order, Purpose::Release(id, pod));
        if proof == ReleaseProof::OutOfTime {
            let waited = self.state.settings.release_after.as_secs();
            let text = format!(
                "pod {pod_name} is ended although not every activator has acknowledged within {waited} s that it leaves"
            );
            let reason = ReasonCode::ReleasedUnacknowledged;
            self.state.tell_people(&name, Subject::Pod(pod_name), reason, text);
        }
    }

    /// Releases the entrances that a revision has no more, once no activator listens there.
    fn release_entrances(&mut self, id: RevisionId) {
        let Some(revision) = self.state.registry.noted_mut(id) else { return };
        if revision.former_entrances.is_empty() {
            return;
        }
        let activators = &self.state.activators;
        let free = revision.former_entrances.iter();
        let free = free.filter(|&(_, &version)| activators.all_acknowledged(id, version));
        let free: Vec<Entrance> = free.map(|(entrance, _)| entrance.clone()).collect();
        for entrance in &free {
            revision.former_entrances.remove(entrance);
        }
        let name = revision.facts.name.clone();
        self.release_entrances_of(&name, free);
    }

    fn release_entrances_of(&mut self, name: &RevisionName, entrances: impl IntoIterator<Item = Entrance>) {
        for entrance in entrances {
            let order = Order::ReleaseEntrance { revision: name.clone(), entrance };
            self.state.order(name, order, Purpose::Notice);
        }
    }

    fn release_entrances_of_removed(&mut self) {
        for (name, entrances) in self.state.removed.take_forgotten() {
            self.release_entrances_of(&name, entrances);
        }
    }

    /// Orders the route, if it differs from the one that was ordered last, or found.
    fn order_route(&mut self, id: RevisionId) {
        let Some(revision) = self.state.registry.noted(id) else { return };
        let Some(route) = route::route(id, revision, &self.state.activators) else { return };
        if revision.route.latest() == Some(&route) {
            return;
        }
        let name = revision.facts.name.clone();
        let order = Order::Route {
            revision: name.clone(),
            routing: route.routing,
            activators: route.activators.clone(),
        };
        let given = self.state.order(&name, order, Purpose::Route(id));
        if let (Some(order), Some(revision)) = (given, self.state.registry.revisions.get_mut(&id)) {
            revision.route.order(order, route);
        }
    }

    /// An activator that holds nothing of a retired revision forgets it some time after no route names it.
    fn plan_forgetting(&mut self, id: RevisionId) {
        let Some(revision) = self.state.registry.noted(id) else { return };
        for (activator, record) in self.state.activators.iter_mut() {
            let is_named = revision.route.may_name(&record.facts.name);
            let Some(holding) = record.holdings.get_mut(&id) else { continue };
            let HoldingState::Emptied { forget_at } = &mut holding.standing else { continue };
            // While a route names it something may come at any moment, so the wait begins when none does, and
            // anew if one does again.
            match (is_named, *forget_at) {
                (true, Some(at)) => {
                    self.state.deadlines.cancel(at, Deadline::Forget(id, activator));
                    *forget_at = None;
                }
                (false, None) => {
                    let at = self.now + FORGET_AFTER;
                    *forget_at = Some(at);
                    self.state.deadlines.plan(at, Deadline::Forget(id, activator));
                }
                (true, None) | (false, Some(_)) => {}
            }
        }
    }

    fn forget(&mut self, id: RevisionId, activator: ReplicaId) {
        let Some(revision) = self.state.registry.noted_mut(id) else { return };
        let (name, epoch) = (revision.facts.name.clone(), revision.epoch);
        let (Some(epoch), Some(record)) = (epoch, self.state.activators.get_mut(activator)) else { return };
        let Some(holding) = record.holdings.get_mut(&id) else { return };
        // It may have served, or got something, and have emptied again since this was planned.
        if !matches!(holding.standing, HoldingState::Emptied { forget_at: Some(at) } if at <= self.now) {
            return;
        }
        let version = self.state.ownership.next_version(epoch);
        holding.standing = HoldingState::Forgetting { version };
        revision.forgotten = Some(version);
        let (activator, how) = (record.link, Unassignment::Forgotten);
        self.state.outbox.push(ControlCommand::Unassign { activator, revision: name, version, how });
    }

    /// Knative's activator probe, with our own facts: every activator that serves, and at least one, acts
    /// upon a version that routes through it, and that route is written.
    fn tell_path(&mut self, id: RevisionId) {
        let Some(revision) = self.state.registry.noted_mut(id) else { return };
        if revision.epoch.is_none() {
            return;
        }
        let is_through = revision.routing() == Routing::ThroughActivator;
        let is_written = (revision.route.written.as_ref()).is_some_and(|route| {
            route.routing == Routing::ThroughActivator && revision.route.latest() == Some(route)
        });
        let activators = &self.state.activators;
        let acknowledged = revision.through_since.is_some_and(|since| {
            let mut members = revision.members.iter();
            let all = members.all(|&id_of| activators.get(id_of).is_some_and(|record| record.has(id, since)));
            is_through && is_written && !revision.members.is_empty() && all
        });
        if revision.is_path_acknowledged != acknowledged {
            revision.is_path_acknowledged = acknowledged;
            self.state.tell(Event::PathAcknowledged { revision: id, acknowledged }, self.now);
        }
    }

    /// Activators on their way out are told of the buckets in which no route names them any more.
    fn release_activators(&mut self) {
        let (registry, ownership) = (&self.state.registry, self.state.ownership.present());
        for (_, record) in self.state.activators.iter_mut().filter(|(_, record)| record.is_draining) {
            let naming =
                registry.revisions.values().filter(|revision| revision.route.may_name(&record.facts.name));
            let named: BTreeSet<Bucket> =
                naming.map(|revision| ownership.bucket_of(&revision.facts.name)).collect();
            let free = ownership.epochs.keys().copied().filter(|bucket| !named.contains(bucket));
            let buckets: BTreeSet<Bucket> = free.filter(|bucket| !record.released.contains(bucket)).collect();
            // Only where it can be heard: what counts as told is told again only after the next hello.
            if record.reach == ActivatorReach::Synced && !buckets.is_empty() {
                record.released.extend(buckets.iter().copied());
                self.state.outbox.push(ControlCommand::ReleaseActivator { activator: record.link, buckets });
            }
        }
    }
}
