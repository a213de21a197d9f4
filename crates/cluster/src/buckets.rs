//! About which buckets of revisions does this autoscaler decide?
//!
//! Each bucket is a Lease ([`LeaseKeeper`]). Replicas share buckets by waiting: a bucket without a holder is
//! taken at once by a replica that has none, and half a second later by a replica that has some already. So
//! of two buckets two replicas that start together get one each, and when one of them leaves in order a new
//! replica comes before the one that stays. Where a replica has several nevertheless (it was there first, or
//! another one has died) and another replica has none, the latter holds the Lease
//! [`AutoscalerLease::Waiting`] until it has been given a bucket:
//!
//! ```text
//! one    owns 0 and 1 ──────────────► gives up 1                       owns 0
//! two    owns none ► holds "waiting"              ► takes 1, gives "waiting" up
//! ```
//!
//! The number of buckets is the same for all replicas, and every Lease says it. While a live replica goes by
//! another number, no replica takes a bucket, or a revision would be in a bucket of each. Once the number has
//! changed a revision may be in another bucket than before, so the new holder of a bucket has an epoch beyond
//! those of all buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use vocabulary::{BUCKETS_ANNOTATION, Bucket, Epoch, Ownership, ReplicaName, RevisionName, Timestamp};

use crate::incident::ClusterIncident;
use crate::lease::{LEASE, LeaseKeeper, LeaseRecord, LeaseWrite, Right, VacancyUse};
use crate::lease_names::{AutoscalerLease, LeaseNames};
use crate::port_book::LeaseNotes;

/// How long a replica that has a bucket leaves another one, without a holder, to replicas that have none.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a replica gives no second bucket away. A waiting replica that was killed holds its Lease for as
/// long; a bucket would be given to it, and taken back, again and again.
const GIVE_EVERY: Duration = LEASE;

/// The rights in force, by bucket.
pub type Rights = BTreeMap<Bucket, Right>;

/// One autoscaler's view of all buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// One keeper for each bucket, in the order of the buckets' numbers.
    keepers: Vec<LeaseKeeper>,
    /// Keepers of the Leases of buckets that exist only where others count more of them.
    beyond_our_count: BTreeMap<Bucket, LeaseKeeper>,
    waiting: LeaseKeeper,
    /// The bucket of ours that is being given to the waiting replica: nothing is decided about it any more.
    being_given: Option<Bucket>,
    last_given_at: Option<Timestamp>,
    is_leaving: bool,
    name: ReplicaName,
    /// When this autoscaler last asked for a bucket without a holder.
    asked_at: Option<Timestamp>,
    /// Which other live autoscaler goes by another number of buckets, in words. While one does, nothing is
    /// taken.
    bucket_count_mismatch: Option<String>,
    /// Such a mismatch, found since the last look at it.
    new_mismatch: Option<String>,
    /// The autoscalers that decide about all buckets while this one has none; `None` while it has one, or
    /// while a bucket has no holder.
    followed: Option<String>,
    /// The same, found since the last look at it.
    new_followed: Option<String>,
    names: LeaseNames,
}

impl Buckets {
    /// So many; zero is read as one.
    pub(crate) fn new(name: &ReplicaName, count: u16) -> Self {
        let mut keepers: Vec<LeaseKeeper> = Vec::new();
        for _ in 0..count.max(1) {
            keepers.push(LeaseKeeper::new(name.clone()));
        }
        let mut buckets = Self {
            keepers,
            beyond_our_count: BTreeMap::new(),
            waiting: LeaseKeeper::new(name.clone()),
            being_given: None,
            last_given_at: None,
            is_leaving: false,
            name: name.clone(),
            asked_at: None,
            bucket_count_mismatch: None,
            new_mismatch: None,
            followed: None,
            new_followed: None,
            names: LeaseNames::Ebb,
        };
        // The very first write of a Lease says the number of buckets already. From a Lease without it, a
        // replica that goes by another number would not see that the two disagree.
        for bucket in buckets.all().collect::<Vec<_>>() {
            buckets.note(bucket, LeaseNotes::new());
        }
        buckets
    }

    /// The same buckets, whose Leases have these names.
    pub(crate) fn with_names(self, names: LeaseNames) -> Self {
        Self { names, ..self }
    }

    /// The names of the Leases.
    pub(crate) fn names(&self) -> &LeaseNames {
        &self.names
    }

    /// The number of buckets by which this autoscaler goes; at least one.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.keepers.len()).expect("made of one")
    }

    fn all(&self) -> impl Iterator<Item = Bucket> + use<> {
        (0..self.count()).map(Bucket)
    }

    /// The keepers of all Leases of buckets, also of those beyond our own count.
    fn all_keepers(&self) -> impl Iterator<Item = &LeaseKeeper> {
        self.keepers.iter().chain(self.beyond_our_count.values())
    }

    fn keeper(&mut self, bucket: Bucket) -> Option<&mut LeaseKeeper> {
        self.keepers.get_mut(usize::from(bucket.0))
    }

    /// In which one a revision is.
    pub(crate) fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        Ownership { epochs: BTreeMap::new(), buckets: self.count() }.bucket_of(revision)
    }

    /// The rights to buckets that are in force now; none to a bucket that is being given away.
    pub(crate) fn rights(&self, now: Timestamp) -> Rights {
        let rights = self.all().zip(&self.keepers).filter(|(bucket, _)| Some(*bucket) != self.being_given);
        rights.filter_map(|(bucket, keeper)| Some((bucket, keeper.right(now)?))).collect()
    }

    /// The same, as an autoscaler is told.
    pub(crate) fn ownership(&self, now: Timestamp) -> Ownership {
        Ownership { epochs: epochs(&self.rights(now)), buckets: self.count() }
    }

    /// The autoscaler says that it still decides: the Leases that are ours are to be renewed.
    pub(crate) fn renew(&mut self) {
        self.keepers.iter_mut().for_each(LeaseKeeper::renew);
        self.waiting.renew();
    }

    /// The notes that are to stand on a bucket's Lease beside the number of buckets.
    pub(crate) fn note(&mut self, bucket: Bucket, mut notes: LeaseNotes) {
        // A Lease that does not say it stands for one bucket (`check_bucket_counts`).
        if self.count() > 1 {
            notes.insert(BUCKETS_ANNOTATION.to_owned(), self.count().to_string());
        }
        if let Some(keeper) = self.keeper(bucket) {
            keeper.note(notes);
        }
    }

    /// The notes on the Lease of a bucket, as the watch showed them last.
    pub(crate) fn noted(&self, bucket: Bucket) -> Option<&LeaseNotes> {
        self.keepers.get(usize::from(bucket.0))?.noted()
    }

    /// The notes on the Leases of all other buckets, also of those beyond our own count.
    pub(crate) fn noted_elsewhere(&self, bucket: Bucket) -> Vec<&LeaseNotes> {
        let own =
            self.all().zip(&self.keepers).filter(|(other, _)| *other != bucket).map(|(_, keeper)| keeper);
        own.chain(self.beyond_our_count.values()).filter_map(LeaseKeeper::noted).collect()
    }

    /// The autoscaler has left its seat: all Leases that are ours are to be given up.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.keepers.iter_mut().for_each(LeaseKeeper::leave);
    }

    /// An autoscaler has taken the seat (again): Leases may be taken.
    pub(crate) fn enter(&mut self) {
        (self.is_leaving, self.being_given) = (false, None);
        self.keepers.iter_mut().for_each(LeaseKeeper::enter);
    }

    /// A Lease as the API server has it; `None` if there is no such Lease. A Lease of a bucket beyond our own
    /// count says that others go by a larger number.
    pub(crate) fn observe(&mut self, which: AutoscalerLease, lease: Option<LeaseRecord>, now: Timestamp) {
        let AutoscalerLease::Bucket(bucket) = which else { return self.waiting.observe(lease, now) };
        let name = &self.name;
        let new_keeper = || LeaseKeeper::new(name.clone());
        match self.keepers.get_mut(usize::from(bucket.0)) {
            Some(keeper) => keeper.observe(lease, now),
            None => self.beyond_our_count.entry(bucket).or_insert_with(new_keeper).observe(lease, now),
        }
    }

    /// All Leases have been looked for: what was not observed is not there.
    pub(crate) fn listed(&mut self, now: Timestamp) {
        // A Lease that was never made is in no event of a watch, so waiting for one would never end.
        let keepers = self.keepers.iter_mut().chain([&mut self.waiting]);
        for keeper in keepers.filter(|keeper| !keeper.is_known()) {
            keeper.observe(None, now);
        }
    }

    /// What is to be written now, if anything.
    pub(crate) fn next_write(&mut self, now: Timestamp) -> Option<(AutoscalerLease, LeaseWrite)> {
        self.check_bucket_counts(now);
        self.check_followed(now);
        self.settle_shares(now);
        let do_counts_agree = self.bucket_count_mismatch.is_none();
        let may_take = self.patience_ends(now).is_none_or(|at| at <= now);
        let vacancy = if may_take { VacancyUse::TakeIt } else { VacancyUse::LeaveIt };
        let greatest = self.all_keepers().filter_map(LeaseKeeper::greatest_transitions).max();
        for (bucket, keeper) in self.all().zip(&mut self.keepers) {
            // A bucket of ours is renewed all the same: no other replica would take it meanwhile, and its
            // revisions would have no owner.
            if !do_counts_agree && !keeper.is_ours_or_asked_for(now) {
                continue;
            }
            let was_vacant = keeper.vacant_since().is_some();
            let Some(write) = keeper.next_write(now, vacancy, greatest) else { continue };
            // One at a time. The wait begins anew with each bucket, so that another replica may take the next
            // one.
            if was_vacant {
                self.asked_at = Some(now);
            }
            return Some((AutoscalerLease::Bucket(bucket), write));
        }
        let asking = self.waiting.next_write(now, VacancyUse::TakeIt, None);
        asking.map(|write| (AutoscalerLease::Waiting, write))
    }

    fn keeper_of(&mut self, which: AutoscalerLease) -> Option<&mut LeaseKeeper> {
        match which {
            AutoscalerLease::Bucket(bucket) => self.keeper(bucket),
            AutoscalerLease::Waiting => Some(&mut self.waiting),
        }
    }

    /// The write of a Lease went through.
    pub(crate) fn written(&mut self, which: AutoscalerLease, resource_version: String, now: Timestamp) {
        if let Some(keeper) = self.keeper_of(which) {
            keeper.written(resource_version, now);
        }
    }

    /// The write of a Lease failed, or its answer never came.
    pub(crate) fn failed(&mut self, which: AutoscalerLease, now: Timestamp) {
        if let Some(keeper) = self.keeper_of(which) {
            keeper.failed(now);
        }
    }

    /// When [`Buckets::next_write`] may have something to say, or a right runs out.
    pub(crate) fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let keepers = self.keepers.iter().chain([&self.waiting]);
        let own = keepers.filter_map(|keeper| keeper.next_deadline(now));
        let is_any_vacant = self.keepers.iter().any(|keeper| keeper.vacant_since().is_some());
        // Only while a bucket is without a holder, and only ahead of us: a deadline that has passed would
        // wake the task again and again.
        let patience = self.patience_ends(now).filter(|at| is_any_vacant && *at > now);
        let gives_again = self.last_given_at.map(|at| at + GIVE_EVERY).filter(|at| *at > now);
        own.chain(patience).chain(gives_again.filter(|_| self.is_bucket_requested(now))).min()
    }

    /// Whether nothing of ours is left to be written on the way out.
    pub(crate) fn has_left(&self) -> bool {
        self.keepers.iter().chain([&self.waiting]).all(LeaseKeeper::has_left)
    }

    /// Until when a bucket without a holder is left to other replicas; `None` if this replica has no bucket.
    fn patience_ends(&self, now: Timestamp) -> Option<Timestamp> {
        let has_some = self.keepers.iter().any(|keeper| keeper.is_ours_or_asked_for(now));
        let since = self.keepers.iter().filter_map(LeaseKeeper::vacant_since).chain(self.asked_at).max()?;
        has_some.then_some(since + PATIENCE)
    }

    /// Asks for a bucket, or gives one, where one replica has several and another none.
    fn settle_shares(&mut self, now: Timestamp) {
        let is_leaving = self.is_leaving;
        if let Some(bucket) = self.being_given
            && let Some(keeper) = self.keeper(bucket).filter(|keeper| keeper.has_left())
        {
            // Any replica may take the bucket now, this one too, if the waiting replica does not take it.
            if !is_leaving {
                keeper.enter();
            }
            self.being_given = None;
        }
        if self.has_to_request_bucket(now) {
            self.waiting.enter();
        } else {
            self.waiting.leave();
        }
        if self.being_given.is_none()
            && self.last_given_at.is_none_or(|at| at + GIVE_EVERY <= now)
            && self.is_bucket_requested(now)
            && let Some(bucket) = self.rights(now).into_keys().next_back()
            && let Some(keeper) = self.keeper(bucket)
        {
            keeper.leave();
            (self.being_given, self.last_given_at) = (Some(bucket), Some(now));
        }
    }

    /// Whether this replica has no bucket, none is free, and another replica has several.
    fn has_to_request_bucket(&self, now: Timestamp) -> bool {
        let is_open =
            |keeper: &LeaseKeeper| keeper.is_ours_or_asked_for(now) || keeper.vacant_since().is_some();
        if self.is_leaving || self.bucket_count_mismatch.is_some() || self.keepers.iter().any(is_open) {
            return false;
        }
        let mut holders: Vec<_> = self.holders(now).collect();
        holders.sort_unstable();
        holders.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Whether this replica has several buckets, and a replica without one asks.
    fn is_bucket_requested(&self, now: Timestamp) -> bool {
        let asks = self.waiting.held_by_another(now).and_then(|lease| lease.holder.as_deref());
        !self.is_leaving
            && self.rights(now).len() > 1
            && asks.is_some_and(|asks| self.holders(now).all(|holder| holder != asks))
    }

    /// The other holders of buckets; a replica with two buckets comes twice.
    fn holders(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.keepers.iter().filter_map(move |keeper| keeper.held_by_another(now)?.holder.as_deref())
    }

    /// Takes the news that another live replica goes by another number of buckets.
    pub(crate) fn take_mismatch(&mut self) -> Option<ClusterIncident> {
        let mismatch = self.new_mismatch.take()?;
        Some(ClusterIncident::BucketCountsDiffer { buckets: self.count(), mismatch })
    }

    /// Takes the news that this replica has no bucket, and which others have all.
    pub(crate) fn take_followed(&mut self) -> Option<ClusterIncident> {
        self.new_followed.take().map(|owners| ClusterIncident::StandsBy { owners })
    }

    fn check_followed(&mut self, now: Timestamp) {
        let holders: BTreeSet<&str> = self.holders(now).collect();
        let are_all_held = self.holders(now).count() == self.keepers.len();
        let followed =
            (are_all_held && !self.is_leaving).then(|| holders.into_iter().collect::<Vec<_>>().join(", "));
        if self.followed != followed {
            self.new_followed.clone_from(&followed);
            self.followed = followed;
        }
    }

    /// Looks for a live replica that goes by another number of buckets; the first time it is found is news.
    fn check_bucket_counts(&mut self, now: Timestamp) {
        if self.names.tell_bucket_count() {
            // Knative's autoscalers annotate nothing: read as one bucket, their Leases would stop ours for
            // good.
            return;
        }
        let others = self.all_keepers().filter_map(|keeper| keeper.held_by_another(now));
        let mismatch = others.filter_map(|lease| {
            let theirs = lease.notes.get(BUCKETS_ANNOTATION).map_or("1", String::as_str);
            let holder = lease.holder.as_deref().unwrap_or_default();
            (theirs != self.count().to_string()).then(|| format!("{holder} goes by {theirs}"))
        });
        // Of several replicas always the same one, or each look would find and log another.
        let mismatch = mismatch.min();
        if mismatch != self.bucket_count_mismatch
            && let Some(mismatch) = &mismatch
        {
            self.new_mismatch = Some(mismatch.clone());
        }
        self.bucket_count_mismatch = mismatch;
    }
}

/// The epochs of these rights.
pub(crate) fn epochs(rights: &Rights) -> BTreeMap<Bucket, Epoch> {
    rights.iter().map(|(bucket, right)| (*bucket, right.epoch)).collect()
}

#[cfg(test)]
mod tests;
