//! The pods of a revision: which may be picked, what runs in each, and which are suspect.

mod avoidance;

use std::net::SocketAddr;

use vocabulary::{Interner, PodAssignment, PodId, PodName, PodState, Slice, Timestamp};

use super::outside::OutsideAttempts;
use crate::balancer::{Balancer, Candidate, Policy};
use avoidance::{Fullness, Suspicion};
/// To the balancer, a pod that is left alone looks full.
const NO_ROOM: Candidate = Candidate { in_flight: u32::MAX, slots: u32::MAX };

/// The state of one pod, as this activator knows it.
#[derive(Clone, Debug)]
struct ThrottledPod {
    address: SocketAddr,
    state: PodState,
    slots: u32,
    is_listed: bool,
    in_flight: u32,
    direct: u32,
    slice: Slice,
    /// Set while the pod is left alone because it refused a request for want of room: other activators have
    /// filled it.
    fullness: Option<Fullness>,
    suspicion: Option<Suspicion>,
}

impl ThrottledPod {
    /// The pod as a candidate for its slots, if this activator fills it by its own count.
    fn own_slots(&self, now: Timestamp) -> Candidate {
        if self.slice == Slice::Outside || self.is_full(now) {
            return NO_ROOM;
        }
        Candidate { in_flight: self.in_flight, slots: self.slots }
    }

    /// The pod as a candidate for an attempt outside the slice, if it is another activator's.
    fn foreign_slots(&self) -> Candidate {
        match self.slice {
            Slice::Outside => Candidate { in_flight: self.in_flight, slots: self.slots },
            Slice::Undivided | Slice::Inside => NO_ROOM,
        }
    }

    fn is_full(&self, now: Timestamp) -> bool {
        self.fullness.is_some_and(|fullness| fullness.until > now)
    }
}

/// All pods that are listed or hold a request.
#[derive(Clone, Debug, Default)]
pub(super) struct ThrottledPods {
    names: Interner<PodName, PodId>,
    known: Vec<Option<ThrottledPod>>,
    /// The listed ready ones, in the order of the list.
    ready: Vec<PodId>,
    /// How many of those are in other slices.
    outside: usize,
}

/// How a request goes to a pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct PodEntry {
    pub(super) address: SocketAddr,
    pub(super) is_trial: bool,
    pub(super) slice: Slice,
}

impl ThrottledPods {
    /// Takes over a new list.
    pub(super) fn replace(&mut self, list: &[PodAssignment]) {
        for pod in self.known.iter_mut().flatten() {
            pod.is_listed = false;
        }
        self.ready.clear();
        for assigned in list {
            let id = self.names.intern(&assigned.pod);
            if self.update(id, assigned) == PodState::Ready {
                self.ready.push(id);
            }
        }
        let ready = self.ready.iter().filter_map(|&id| self.pod(id));
        self.outside = ready.filter(|pod| pod.slice == Slice::Outside).count();
        // Last, so that a pod of both lists keeps its number, what runs in it and what is held against it.
        for index in 0..self.known.len() {
            self.forget_if_gone(index);
        }
    }

    /// Applies one line of a list; returns what the pod is from now on.
    fn update(&mut self, id: PodId, assigned: &PodAssignment) -> PodState {
        let index = index_of(id);
        if self.known.len() <= index {
            self.known.resize(index + 1, None);
        }
        let pod = self.known[index].get_or_insert(ThrottledPod {
            address: assigned.address,
            state: PodState::Unheard,
            slots: assigned.slots,
            is_listed: true,
            in_flight: 0,
            direct: 0,
            slice: assigned.slice,
            fullness: None,
            suspicion: None,
        });
        pod.is_listed = true;
        pod.slots = assigned.slots;
        // Slices are cut anew: the activator that filled the pod may now send to others.
        if pod.slice != assigned.slice {
            pod.slice = assigned.slice;
            pod.fullness = None;
        }
        // The name is the same but the process is another: what the former one did not start says nothing of
        // it.
        if pod.address != assigned.address {
            pod.address = assigned.address;
            pod.suspicion = None;
        }
        // An autoscaler whose link is new may not have heard this pod yet; what we knew still holds.
        if assigned.state != PodState::Unheard {
            pod.state = assigned.state;
        }
        pod.state
    }

    /// Picks a ready pod of our slice with a free slot.
    pub(super) fn pick(&self, balancer: &mut Balancer, policy: Policy, now: Timestamp) -> Option<PodId> {
        let all_suspect = self.all_suspect();
        let candidate = |index| self.described(index, all_suspect, now, |pod| pod.own_slots(now));
        balancer.pick(policy, self.ready.len(), candidate).map(|index| self.ready[index])
    }

    /// Picks a ready pod of another slice to be tried now, if one may be.
    pub(super) fn pick_outside(&self, attempts: &mut OutsideAttempts, now: Timestamp) -> Option<PodId> {
        if self.outside == 0 {
            return None;
        }
        let all_suspect = self.all_suspect();
        let candidate = |index| self.described(index, all_suspect, now, ThrottledPod::foreign_slots);
        attempts.pick(now, self.ready.len(), candidate).map(|index| self.ready[index])
    }

    /// How many ready pods are in other slices.
    pub(super) fn outside(&self) -> usize {
        self.outside
    }

    /// Picks a ready pod, slots or not.
    pub(super) fn pick_direct(&self, balancer: &mut Balancer, now: Timestamp) -> Option<PodId> {
        let all_suspect = self.all_suspect();
        // No slots, since no request queues on this way: load alone tells the pods apart.
        let everything = |pod: &ThrottledPod| Candidate { in_flight: pod.in_flight + pod.direct, slots: 0 };
        let candidate = |index| self.described(index, all_suspect, now, everything);
        balancer.pick(Policy::BetterOfTwo, self.ready.len(), candidate).map(|index| self.ready[index])
    }

    /// A ready pod as the balancer sees it.
    fn described(
        &self,
        index: usize,
        all_suspect: bool,
        now: Timestamp,
        describe: impl Fn(&ThrottledPod) -> Candidate,
    ) -> Candidate {
        match self.pod(self.ready[index]) {
            Some(pod) if may_be_tried(pod, all_suspect, now) => describe(pod),
            Some(_) | None => NO_ROOM,
        }
    }

    /// A request goes to a pod, by its slots: where, and how.
    pub(super) fn enter(&mut self, id: PodId, now: Timestamp) -> PodEntry {
        let pod = self.picked(id, now);
        pod.in_flight += 1;
        PodEntry { address: pod.address, is_trial: pod.suspicion.is_some(), slice: pod.slice }
    }

    /// A request goes to a pod past its slots: where, and whether it is a trial.
    pub(super) fn enter_direct(&mut self, id: PodId, now: Timestamp) -> (SocketAddr, bool) {
        let pod = self.picked(id, now);
        pod.direct += 1;
        (pod.address, pod.suspicion.is_some())
    }

    /// A suspect pod gets one request per rest until it has started one.
    fn picked(&mut self, id: PodId, now: Timestamp) -> &mut ThrottledPod {
        let pod = self.known[index_of(id)].as_mut().expect("only known pods are picked");
        // The rest begins again with each trial; else a second request would follow before the first has
        // shown anything.
        pod.suspicion = pod.suspicion.map(|suspicion| Suspicion::after(suspicion.failures, now));
        pod
    }

    /// A request that had a slot ended.
    pub(super) fn leave(&mut self, id: PodId) {
        if let Some(pod) = self.pod_mut(id) {
            pod.in_flight = pod.in_flight.saturating_sub(1);
        }
        self.forget_if_gone(index_of(id));
    }

    /// A request past the slots ended.
    pub(super) fn leave_direct(&mut self, id: PodId) {
        if let Some(pod) = self.pod_mut(id) {
            pod.direct = pod.direct.saturating_sub(1);
        }
        self.forget_if_gone(index_of(id));
    }

    /// A pod of our slice had no room for a request: others have filled it.
    pub(super) fn note_full(&mut self, id: PodId, now: Timestamp) {
        if let Some(pod) = self.pod_mut(id) {
            let refusals = pod.fullness.map_or(0, |fullness| fullness.refusals);
            pod.fullness = Some(Fullness::after(refusals.saturating_add(1), now));
        }
    }

    /// A pod did not start a request.
    pub(super) fn suspect(&mut self, id: PodId, now: Timestamp) {
        if let Some(pod) = self.pod_mut(id) {
            let failures = pod.suspicion.map_or(0, |suspicion| suspicion.failures);
            pod.suspicion = Some(Suspicion::after(failures.saturating_add(1), now));
        }
    }

    /// A pod started a request.
    pub(super) fn clear_suspicion(&mut self, id: PodId) {
        if let Some(pod) = self.pod_mut(id) {
            pod.suspicion = None;
            // Where a request has begun to run there was room.
            pod.fullness = None;
        }
    }

    /// Whether there is a ready pod, suspect or not.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next suspect or full pod may be tried, of those that may not at `now`.
    pub(super) fn next_trial(&self, now: Timestamp) -> Option<Timestamp> {
        let all_suspect = self.all_suspect();
        let pods = || self.ready.iter().filter_map(|&id| self.pod(id));
        let suspicions = pods().filter_map(|pod| Some(pod.suspicion?.ends(all_suspect)));
        let full = pods().filter_map(|pod| Some(pod.fullness?.until));
        suspicions.chain(full).filter(|&at| at > now).min()
    }

    /// Whether a pod of another slice could take a request, by our own count.
    pub(super) fn has_room_outside(&self) -> bool {
        self.outside > 0
            && self.ready.iter().filter_map(|&id| self.pod(id)).any(|pod| pod.foreign_slots().has_room())
    }

    /// The name behind an id.
    pub(super) fn name(&self, id: PodId) -> Option<&PodName> {
        self.names.name(id)
    }

    fn all_suspect(&self) -> bool {
        self.ready.iter().all(|&id| self.pod(id).is_some_and(|pod| pod.suspicion.is_some()))
    }

    /// Requests that run in pods, through the queue or past it.
    pub(super) fn held(&self) -> u32 {
        self.known
            .iter()
            .flatten()
            .map(|pod| pod.in_flight.saturating_add(pod.direct))
            .fold(0, u32::saturating_add)
    }

    fn pod(&self, id: PodId) -> Option<&ThrottledPod> {
        self.known.get(index_of(id))?.as_ref()
    }

    fn pod_mut(&mut self, id: PodId) -> Option<&mut ThrottledPod> {
        self.known.get_mut(index_of(id))?.as_mut()
    }

    /// Forgets a pod that is neither listed nor holds a request; its id may be another's from then on.
    fn forget_if_gone(&mut self, index: usize) {
        let Some(slot) = self.known.get_mut(index) else { return };
        if slot.as_ref().is_some_and(|pod| !pod.is_listed && pod.in_flight == 0 && pod.direct == 0) {
            *slot = None;
            let id = PodId(u32::try_from(index).expect("ids are 32 bits"));
            if let Some(name) = self.names.name(id).cloned() {
                self.names.release(&name);
            }
        }
    }
}

fn may_be_tried(pod: &ThrottledPod, all_suspect: bool, now: Timestamp) -> bool {
    pod.suspicion.is_none_or(|suspicion| suspicion.ends(all_suspect) <= now)
}

fn index_of(id: PodId) -> usize {
    usize::try_from(id.0).expect("usize has at least 32 bits")
}
