//! Is a bucket ours, and until when?
//!
//! A Lease object names its holder. Every replica watches it: a Lease that was not renewed for as long as it
//! lasts, by our own clock since we saw the renewal, is free, and so is a Lease without a holder. The holder
//! counts from before it *sent* its renewal, so it stops before another replica begins, although the clocks
//! of the two may differ. Its epoch is the object's count of transitions, which grows with every acquisition:
//! beyond those of all other buckets too, for a revision may have been in another bucket while there were
//! more or fewer, and activators and pods follow the greatest epoch that they have heard of.
//!
//! Pure: what is to be written comes out of [`LeaseKeeper::next_write`], what the API server has comes in by
//! [`LeaseKeeper::observe`].

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use vocabulary::{Epoch, ReplicaName, Timestamp};

use crate::port_book::{LeaseNotes, PortNotes};

/// How long an owner may go without renewing: what Kubernetes' own controllers allow.
pub const LEASE: Duration = Duration::from_secs(15);
/// How often it renews: two attempts may fail.
pub const RENEW_EVERY: Duration = Duration::from_secs(5);
/// The wait after a write that failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A Lease object, as far as it concerns us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The autoscaler that holds the Lease; empty or none while no autoscaler does.
    pub(crate) holder: Option<String>,
    pub(crate) transitions: i32,
    /// How long it lasts after a renewal.
    pub(crate) lasts: Duration,
    pub(crate) resource_version: String,
    /// What its holder noted there for the next one.
    pub(crate) notes: LeaseNotes,
}

/// Reads a Lease object as far as it concerns us.
pub fn read_lease(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds =
        spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default();
    LeaseRecord {
        holder: spec.holder_identity,
        transitions: spec.lease_transitions.unwrap_or_default(),
        lasts: Duration::from_secs(seconds),
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
        notes: PortNotes::among(lease.metadata.annotations.as_ref()),
    }
}

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseWrite {
    /// The name to write as the holder's; `None` when the holder leaves.
    pub holder: Option<String>,
    /// How often the Lease changed hands, this time included.
    pub transitions: i32,
    /// The version of the object that the write replaces; `None` if there is no object yet.
    pub over: Option<String>,
    /// The annotations that are to stand on the Lease.
    pub notes: LeaseNotes,
}

/// Whether a Lease without a holder is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VacancyUse {
    TakeIt,
    /// It is left for now to a replica with fewer buckets.
    LeaveIt,
}

/// The right by which orders about a bucket are given: an epoch, and when it runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// The epoch that stands in orders which this right allows.
    pub epoch: Epoch,
    /// When the right runs out, unless it is renewed.
    pub until: Timestamp,
}

/// One autoscaler's view of the lease.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    name: ReplicaName,
    /// The Lease as the API server had it last, and since when we know.
    seen: Option<(LeaseRecord, Timestamp)>,
    /// Since when the Lease was looked for. Before that nothing is known, not even that there is none.
    known_since: Option<Timestamp>,
    right: Option<Right>,
    /// The write under way, and when it was sent.
    under_way: Option<(LeaseWrite, Timestamp)>,
    is_renewal_due: bool,
    is_leaving: bool,
    not_before: Timestamp,
    /// The most transitions that were ever seen: a Lease that was deleted is made again with more.
    greatest: Option<i32>,
    /// The notes that are to stand on the Lease while it is ours.
    notes: LeaseNotes,
}

impl LeaseKeeper {
    pub(crate) fn new(name: ReplicaName) -> Self {
        Self {
            name,
            seen: None,
            known_since: None,
            right: None,
            under_way: None,
            is_renewal_due: false,
            is_leaving: false,
            not_before: Timestamp::ZERO,
            greatest: None,
            notes: LeaseNotes::new(),
        }
    }

    /// The right in force, if any.
    pub(crate) fn right(&self, now: Timestamp) -> Option<Right> {
        self.right.filter(|right| right.until > now)
    }

    /// The autoscaler says that it still decides, so the Lease is to be renewed.
    pub(crate) fn renew(&mut self) {
        self.is_renewal_due = true;
    }

    /// The notes that are to stand on the Lease from now on, for the next owner; they are written at once.
    pub(crate) fn note(&mut self, notes: LeaseNotes) {
        if self.notes != notes {
            self.notes = notes;
            self.is_renewal_due = true;
        }
    }

    /// The most transitions that it ever had, as far as we know.
    pub(crate) fn greatest_transitions(&self) -> Option<i32> {
        self.greatest
    }

    /// The notes on the Lease, as far as we know.
    pub(crate) fn noted(&self) -> Option<&LeaseNotes> {
        self.seen.as_ref().map(|(lease, _)| &lease.notes)
    }

    /// The Lease is to be given up, and not to be taken.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// The Lease may be taken (again).
    pub(crate) fn enter(&mut self) {
        self.is_leaving = false;
    }

    /// What the API server has; `None`: there is no such object.
    pub(crate) fn observe(&mut self, lease: Option<LeaseRecord>, now: Timestamp) {
        self.known_since.get_or_insert(now);
        // Its own writes come back too, and an old copy of the object may come after a newer one was written.
        let is_news = self.seen.as_ref().map(|(seen, _)| seen) != lease.as_ref();
        if !is_news {
            return;
        }
        // A copy from before our right has fewer transitions, and takes nothing away. As many under another
        // name, or under none, mean that it was written over or given up.
        if let (Some(right), Some(lease)) = (self.right, &lease)
            && (lease.transitions > transitions_of(right.epoch)
                || (lease.transitions == transitions_of(right.epoch) && !self.is_named(lease)))
        {
            self.right = None;
        }
        // Another replica may make it anew at once, and two would decide.
        if lease.is_none() {
            self.right = None;
        }
        self.greatest = self.greatest.max(lease.as_ref().map(|lease| lease.transitions));
        self.seen = lease.map(|lease| (lease, now));
    }

    /// What is to be written now, if anything. One write is under way at a time. A Lease without a holder is
    /// taken only as `vacancy` says. `elsewhere` is the most transitions that any Lease of a bucket has: a
    /// new holder of this one writes more.
    pub(crate) fn next_write(
        &mut self,
        now: Timestamp,
        vacancy: VacancyUse,
        elsewhere: Option<i32>,
    ) -> Option<LeaseWrite> {
        if self.under_way.is_some() || !self.is_known() || now < self.not_before {
            return None;
        }
        if vacancy == VacancyUse::LeaveIt && self.vacant_since().is_some() {
            return None;
        }
        let write = self.wanted_write(now, elsewhere)?;
        self.is_renewal_due = false;
        self.under_way = Some((write.clone(), now));
        Some(write)
    }

    fn wanted_write(&self, now: Timestamp, elsewhere: Option<i32>) -> Option<LeaseWrite> {
        let holder = Some(self.name.as_str().to_owned());
        let acquired = self.greatest.max(elsewhere).map_or(0, |greatest| greatest.saturating_add(1));
        let Some((lease, seen_at)) = &self.seen else {
            let (transitions, notes) = (acquired, self.notes.clone());
            return (!self.is_leaving).then_some(LeaseWrite { holder, transitions, over: None, notes });
        };
        let over = Some(lease.resource_version.clone());
        let is_ours = self.right.is_some() && self.is_named(lease);
        if self.is_leaving {
            let (transitions, notes) = (lease.transitions, self.notes.clone());
            return is_ours.then_some(LeaseWrite { holder: None, transitions, over, notes });
        }
        if is_ours {
            // A Lease that ran out was perhaps without an owner for a moment. It counts as a new acquisition,
            // so that no order from before is in force.
            let has_run_out = self.right(now).is_none();
            let transitions = if has_run_out { acquired } else { lease.transitions };
            let notes = self.notes.clone();
            let is_due = self.is_renewal_due || has_run_out;
            return is_due.then_some(LeaseWrite { holder, transitions, over, notes });
        }
        let is_free = lease.holder.as_deref().unwrap_or_default().is_empty()
            || now.saturating_since(*seen_at) >= lease.lasts
            // A former process of our own name is gone: the platform gives no name to two pods that live.
            || self.is_named(lease);
        // With the notes of the former owner, not with ours: they are read once the Lease is won, so that no
        // port that was given is given again.
        let (transitions, notes) = (acquired, lease.notes.clone());
        is_free.then_some(LeaseWrite { holder, transitions, over, notes })
    }

    /// Whether it was looked for.
    pub(crate) fn is_known(&self) -> bool {
        self.known_since.is_some()
    }

    /// Since when the Lease has had no holder, as far as we know, so that no holder's time has to run out
    /// first.
    pub(crate) fn vacant_since(&self) -> Option<Timestamp> {
        let since = match &self.seen {
            Some((lease, seen_at)) => {
                lease.holder.as_deref().unwrap_or_default().is_empty().then_some(*seen_at)
            }
            None => self.known_since,
        };
        since.filter(|_| !self.is_leaving)
    }

    /// Whether it is ours, or we are asking for it.
    pub(crate) fn is_ours_or_asked_for(&self, now: Timestamp) -> bool {
        self.right(now).is_some() || self.under_way.as_ref().is_some_and(|(write, _)| write.holder.is_some())
    }

    /// The Lease, if another replica that may be alive still holds it.
    pub(crate) fn held_by_another(&self, now: Timestamp) -> Option<&LeaseRecord> {
        let (lease, seen_at) = self.seen.as_ref()?;
        let lives = !lease.holder.as_deref().unwrap_or_default().is_empty()
            && now.saturating_since(*seen_at) < lease.lasts;
        (lives && !self.is_named(lease)).then_some(lease)
    }

    /// The API server took the write that was under way.
    pub(crate) fn written(&mut self, resource_version: String, now: Timestamp) {
        let Some((write, sent_at)) = self.under_way.take() else { return };
        self.right = write
            .holder
            .as_ref()
            .map(|_| Right { epoch: epoch_of(write.transitions), until: sent_at + LEASE });
        let LeaseWrite { holder, transitions, over: _, notes } = write;
        self.greatest = self.greatest.max(Some(transitions));
        self.seen = Some((LeaseRecord { holder, transitions, lasts: LEASE, resource_version, notes }, now));
    }

    /// The write failed, or its answer never came.
    pub(crate) fn failed(&mut self, now: Timestamp) {
        if self.under_way.take().is_some() {
            // `next_write` called it done when the write began.
            self.is_renewal_due = self.right.is_some();
            self.not_before = now + RETRY_AFTER;
        }
    }

    /// When [`LeaseKeeper::next_write`] may have something to say, or the right runs out.
    pub(crate) fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let others = self.seen.as_ref().filter(|_| self.right.is_none() && !self.is_leaving);
        let others = others.map(|(lease, seen_at)| *seen_at + lease.lasts);
        let until = self.right.map(|right| right.until);
        let retry = Some(self.not_before);
        [others, until, retry].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Whether nothing of ours is left to be written on the way out.
    pub(crate) fn has_left(&self) -> bool {
        self.is_leaving && self.under_way.is_none() && self.right.is_none()
    }

    fn is_named(&self, lease: &LeaseRecord) -> bool {
        lease.holder.as_deref() == Some(self.name.as_str())
    }
}

/// Transitions begin at zero, epochs at one: no owner ever has epoch zero.
fn epoch_of(transitions: i32) -> Epoch {
    Epoch(u64::try_from(transitions).unwrap_or_default() + 1)
}

fn transitions_of(epoch: Epoch) -> i32 {
    i32::try_from(epoch.0.saturating_sub(1)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
