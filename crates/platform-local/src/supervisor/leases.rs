//! Which autoscaler owns which bucket, and until when?
//!
//! Each bucket has a home: the autoscaler that gets it whenever it takes a seat. It leaves that one when it
//! stops, at once, or when it has not renewed its lease in time, and stays where it went until the home is
//! rebuilt: one that hung once is no better place for it than where it is.
//!
//! A lease that ran out stays its holder's while no other autoscaler is alive. The supervisor alone judges
//! orders, so no two can act on one bucket, and a bucket without an owner would help no revision.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::Fence;
use vocabulary::{Bucket, Epoch, Ownership, ReplicaName, Timestamp};

/// How long an autoscaler may go without renewing: what Kubernetes' own controllers allow.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// How often it renews: two attempts may fail.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(5);
/// A supervisor that looks at leases later than this after one ran out was held up itself, and cannot tell
/// which autoscaler was.
const LATE: Duration = Duration::from_secs(1);

/// One seat of one autoscaler; never given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeatId(pub(crate) u64);

/// The seats of the autoscalers, and the lease of each bucket.
#[derive(Debug)]
pub(crate) struct Leases {
    /// By number of the bucket.
    buckets: Vec<Lease>,
    seats: BTreeMap<SeatId, Occupant>,
    /// The greatest epoch of any bucket; the next owner gets the next one.
    epochs_given: Epoch,
    /// The last moment at which leases were looked at.
    looked_at: Timestamp,
}

#[derive(Debug)]
struct Lease {
    /// The autoscaler that gets the bucket whenever it takes a seat.
    home: ReplicaName,
    tenure: Tenure,
}

/// The autoscaler that has a bucket, if one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenure {
    /// Its home's, which has this long to take its seat for the first time.
    Reserved {
        until: Timestamp,
    },
    Free,
    Held {
        seat: SeatId,
        epoch: Epoch,
    },
}

#[derive(Debug)]
struct Occupant {
    name: ReplicaName,
    /// When its lease runs out.
    until: Timestamp,
}

impl Leases {
    /// One bucket for each of these autoscalers, none of which has taken its seat.
    pub(crate) fn new(autoscalers: &[ReplicaName], now: Timestamp) -> Self {
        let reserved = Tenure::Reserved { until: now + LEASE };
        let lease = |home: &ReplicaName| Lease { home: home.clone(), tenure: reserved };
        Self {
            buckets: autoscalers.iter().map(lease).collect(),
            seats: BTreeMap::new(),
            epochs_given: Epoch::default(),
            looked_at: now,
        }
    }

    /// Another process gave epochs up to this one.
    pub(crate) fn begin_after(&mut self, epoch: Epoch) {
        self.epochs_given = self.epochs_given.max(epoch);
    }

    /// The greatest that was given.
    pub(crate) fn latest_epoch(&self) -> Epoch {
        self.epochs_given
    }

    /// How often leases are to be renewed; `None` where no other autoscaler could take over.
    pub(crate) fn renew_every(autoscalers: usize) -> Option<Duration> {
        (autoscalers > 1).then_some(RENEW_EVERY)
    }

    /// An autoscaler takes a seat, and with it the buckets whose home it is and those of its former seat.
    pub(crate) fn take_seat(&mut self, seat: SeatId, name: ReplicaName, now: Timestamp) {
        let former = self.seats.extract_if(.., |_, occupant| occupant.name == name);
        let former: Vec<SeatId> = former.map(|(seat, _)| seat).collect();
        for index in 0..self.buckets.len() {
            let lease = &self.buckets[index];
            let was_its = matches!(lease.tenure, Tenure::Held { seat, .. } if former.contains(&seat));
            if was_its || lease.home == name {
                self.assign(index, seat);
            }
        }
        self.seats.insert(seat, Occupant { name, until: self.lease_from(now) });
        self.assign_vacant(now);
    }

    /// An autoscaler has left its seat.
    pub(crate) fn leave_seat(&mut self, seat: SeatId, now: Timestamp) {
        self.seats.remove(&seat);
        for lease in &mut self.buckets {
            if matches!(lease.tenure, Tenure::Held { seat: holder, .. } if holder == seat) {
                lease.tenure = Tenure::Free;
            }
        }
        self.assign_vacant(now);
    }

    /// Renews the leases of these autoscalers. Renewals that wait together are taken in together, so that
    /// their order decides nothing.
    pub(crate) fn renew(&mut self, seats: impl IntoIterator<Item = SeatId>, now: Timestamp) {
        self.extend_after_own_stall(now);
        let until = self.lease_from(now);
        for seat in seats {
            if let Some(occupant) = self.seats.get_mut(&seat) {
                occupant.until = until;
            }
        }
        self.assign_vacant(now);
    }

    /// Assigns each bucket that no seat holds, or whose holder has not renewed in time, to another live seat
    /// if there is one.
    pub(crate) fn assign_vacant(&mut self, now: Timestamp) {
        self.extend_after_own_stall(now);
        self.looked_at = now;
        for index in 0..self.buckets.len() {
            let is_vacant = match self.buckets[index].tenure {
                Tenure::Reserved { until } => until <= now,
                Tenure::Free => true,
                Tenure::Held { seat, .. } => !self.is_alive(seat, now),
            };
            if is_vacant && let Some(successor) = self.least_loaded(now) {
                self.assign(index, successor);
            }
        }
    }

    /// When [`Leases::assign_vacant`] is due at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.expiries().filter(|end| *end > self.looked_at && *end < Timestamp::MAX).min()
    }

    /// The buckets of a seat with their epochs.
    pub(crate) fn ownership(&self, seat: SeatId) -> Ownership {
        let own = |(bucket, lease): (u16, &Lease)| match lease.tenure {
            Tenure::Held { seat: holder, epoch } if holder == seat => Some((Bucket(bucket), epoch)),
            Tenure::Held { .. } | Tenure::Reserved { .. } | Tenure::Free => None,
        };
        let buckets = u16::try_from(self.buckets.len()).expect("autoscalers are a few");
        Ownership { epochs: (0..buckets).zip(&self.buckets).filter_map(own).collect(), buckets }
    }

    /// Whether an order from this seat is its to give.
    pub(crate) fn is_in_force(&self, seat: SeatId, fence: Fence) -> bool {
        let lease = self.buckets.get(usize::from(fence.bucket.0));
        lease.is_some_and(|lease| lease.tenure == Tenure::Held { seat, epoch: fence.epoch })
    }

    fn assign(&mut self, index: usize, seat: SeatId) {
        // One count for all buckets: two owners never have the same number, whatever they own, so an order
        // says by its number alone whose it was.
        self.epochs_given = Epoch(self.epochs_given.0 + 1);
        self.buckets[index].tenure = Tenure::Held { seat, epoch: self.epochs_given };
    }

    /// The live seat with the fewest buckets; of equals the seat that was taken first.
    fn least_loaded(&self, now: Timestamp) -> Option<SeatId> {
        let alive = self.seats.keys().copied().filter(|seat| self.is_alive(*seat, now));
        alive.min_by_key(|seat| self.ownership(*seat).epochs.len())
    }

    fn is_alive(&self, seat: SeatId, now: Timestamp) -> bool {
        self.seats.get(&seat).is_some_and(|occupant| occupant.until > now)
    }

    /// Until when a lease lasts that is taken or renewed now: for ever where no other one could have it.
    fn lease_from(&self, now: Timestamp) -> Timestamp {
        if self.buckets.len() > 1 { now + LEASE } else { Timestamp::MAX }
    }

    /// The moments at which leases and reservations run out.
    fn expiries(&self) -> impl Iterator<Item = Timestamp> {
        let reserved = self.buckets.iter().filter_map(|lease| match lease.tenure {
            Tenure::Reserved { until } => Some(until),
            Tenure::Free | Tenure::Held { .. } => None,
        });
        reserved.chain(self.seats.values().map(|occupant| occupant.until))
    }

    /// If this process stood still itself (stopped, or on an overloaded machine), autoscalers that could not
    /// be heard meanwhile get another lease.
    fn extend_after_own_stall(&mut self, now: Timestamp) {
        // A lease says that its holder was silent while it could have been heard. When we did not listen it
        // says nothing.
        if self.next_deadline().is_some_and(|due| now.saturating_since(due) > LATE) {
            let until = self.lease_from(now);
            self.seats.values_mut().for_each(|occupant| occupant.until = until);
            self.looked_at = now;
        }
    }
}

#[cfg(test)]
mod tests;
