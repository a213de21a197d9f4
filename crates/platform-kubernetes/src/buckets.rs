//! About which buckets of revisions do we decide?
//!
//! Each bucket is a Lease ([`LeaseKeeper`]). Replicas share them by waiting: one that nobody holds is taken
//! at once by who has none, and half a second later by who has some already. So two replicas that start
//! together get one of two each, and when one of them leaves in order a newcomer comes before the one that
//! stays. Where one has several nevertheless (it was there first, or another one has died) and a replica has
//! none, that one holds the Lease [`AutoscalerLease::Waiting`] until it has been given one:
//!
//! ```text
//! one    owns 0 and 1 ──────────────► gives up 1                       owns 0
//! two    owns none ► holds "waiting"              ► takes 1, gives "waiting" up
//! ```
//!
//! How many there are is the same for all, and every Lease says it: beside somebody who goes by another
//! number nobody takes anything, or a revision would be in a bucket of each. Once their number has changed a
//! revision may be in another bucket than before, so whoever takes one has an epoch beyond all of them.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{
    BUCKETS_ANNOTATION, Bucket, Epoch, Ownership, ReplicaName, RevisionName, Timestamp, WAITING_LEASE,
    bucket_of_lease, owner_lease,
};

use crate::lease::{LEASE, LeaseKeeper, LeaseRecord, LeaseWrite, Right, VacancyUse};
use crate::port_book::LeaseNotes;

/// How long who has a bucket already leaves another one to those who have none.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long nothing more is given to those who wait: as long as one of them may be gone without a word, or it
/// would be given, and taken back, again and again.
const GIVE_EVERY: Duration = LEASE;

/// A Lease of autoscalers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AutoscalerLease {
    /// Who decides about it.
    Bucket(Bucket),
    /// Who has no bucket, and asks for one of somebody's who has several.
    Waiting,
}

impl AutoscalerLease {
    /// Which one has this name, if any.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        if name == WAITING_LEASE { Some(Self::Waiting) } else { bucket_of_lease(name).map(Self::Bucket) }
    }

    /// What it is called.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Bucket(bucket) => owner_lease(bucket),
            Self::Waiting => WAITING_LEASE.to_owned(),
        }
    }
}

/// The rights in force, by bucket.
pub(crate) type Rights = BTreeMap<Bucket, Right>;

/// One autoscaler's view of all buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// By number.
    keepers: Vec<LeaseKeeper>,
    /// Keepers of the Leases of buckets that exist only where others count more of them.
    beyond_our_count: BTreeMap<Bucket, LeaseKeeper>,
    waiting: LeaseKeeper,
    /// One of ours that is given to whoever waits: nothing is decided about it any more.
    giving: Option<Bucket>,
    gave_at: Option<Timestamp>,
    is_leaving: bool,
    name: ReplicaName,
    /// When a bucket was last asked for that nobody held.
    asked_at: Option<Timestamp>,
    /// Which other live autoscaler goes by another number of buckets, in words. While one does, nothing is
    /// taken.
    bucket_count_mismatch: Option<String>,
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
            giving: None,
            gave_at: None,
            is_leaving: false,
            name: name.clone(),
            asked_at: None,
            bucket_count_mismatch: None,
        };
        // The very first write of a Lease says it already: by a Lease without it somebody who counts
        // otherwise would not see that we disagree.
        for bucket in buckets.all().collect::<Vec<_>>() {
            buckets.note(bucket, LeaseNotes::new());
        }
        buckets
    }

    /// Whose view it is.
    pub(crate) fn name(&self) -> &ReplicaName {
        &self.name
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.keepers.len()).expect("made of one")
    }

    fn all(&self) -> impl Iterator<Item = Bucket> + use<> {
        (0..self.count()).map(Bucket)
    }

    /// Of all buckets that there are for anybody.
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

    /// The rights in force.
    pub(crate) fn rights(&self, now: Timestamp) -> Rights {
        let rights = self.all().zip(&self.keepers).filter(|(bucket, _)| Some(*bucket) != self.giving);
        rights.filter_map(|(bucket, keeper)| Some((bucket, keeper.right(now)?))).collect()
    }

    /// The same, as an autoscaler is told.
    pub(crate) fn ownership(&self, now: Timestamp) -> Ownership {
        Ownership { epochs: epochs(&self.rights(now)), buckets: self.count() }
    }

    /// Whoever decides here does so still.
    pub(crate) fn renew(&mut self) {
        self.keepers.iter_mut().for_each(LeaseKeeper::renew);
        self.waiting.renew();
    }

    /// What is to stand on a bucket's Lease beside how many there are.
    pub(crate) fn note(&mut self, bucket: Bucket, mut notes: LeaseNotes) {
        // A Lease that does not say it stands for one bucket (`check_bucket_counts`).
        if self.count() > 1 {
            notes.insert(BUCKETS_ANNOTATION.to_owned(), self.count().to_string());
        }
        if let Some(keeper) = self.keeper(bucket) {
            keeper.note(notes);
        }
    }

    /// What stands on the Lease of a bucket, as far as we know.
    pub(crate) fn noted(&self, bucket: Bucket) -> Option<&LeaseNotes> {
        self.keepers.get(usize::from(bucket.0))?.noted()
    }

    /// What stands on the Leases of all others, also of those that exist only where others count more.
    pub(crate) fn noted_elsewhere(&self, bucket: Bucket) -> Vec<&LeaseNotes> {
        let own =
            self.all().zip(&self.keepers).filter(|(other, _)| *other != bucket).map(|(_, keeper)| keeper);
        own.chain(self.beyond_our_count.values()).filter_map(LeaseKeeper::noted).collect()
    }

    /// Nobody decides here any more.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.keepers.iter_mut().for_each(LeaseKeeper::leave);
    }

    /// Whether somebody decides here (again).
    pub(crate) fn enter(&mut self) {
        (self.is_leaving, self.giving) = (false, None);
        self.keepers.iter_mut().for_each(LeaseKeeper::enter);
    }

    /// What the API server has; `None`: there is no such Lease. One of a bucket that does not exist here says
    /// that others count more of them.
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
        // A Lease that nobody ever made is no event of a watch, and waiting for one would be waiting for
        // ever.
        let keepers = self.keepers.iter_mut().chain([&mut self.waiting]);
        for keeper in keepers.filter(|keeper| !keeper.is_known()) {
            keeper.observe(None, now);
        }
    }

    /// What is to be written now, if anything.
    pub(crate) fn next_write(&mut self, now: Timestamp) -> Option<(AutoscalerLease, LeaseWrite)> {
        self.check_bucket_counts(now);
        self.settle_shares(now);
        let do_counts_agree = self.bucket_count_mismatch.is_none();
        let may_take = self.patience_ends(now).is_none_or(|at| at <= now);
        let vacancy = if may_take { VacancyUse::TakeIt } else { VacancyUse::LeaveIt };
        let greatest = self.all_keepers().filter_map(LeaseKeeper::greatest_transitions).max();
        for (bucket, keeper) in self.all().zip(&mut self.keepers) {
            // What is ours is renewed all the same: nobody else would take it meanwhile, and its revisions
            // would be nobody's.
            if !do_counts_agree && !keeper.is_ours_or_asked_for(now) {
                continue;
            }
            let was_vacant = keeper.vacant_since().is_some();
            let Some(write) = keeper.next_write(now, vacancy, greatest) else { continue };
            // One at a time. With this the wait begins anew, in which another replica may come first to the
            // next one.
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

    /// It failed, or nobody knows whether it did.
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
        // Only where there is something to take, and only once: a time that has passed would wake us again
        // and again.
        let patience = self.patience_ends(now).filter(|at| is_any_vacant && *at > now);
        let gives_again = self.gave_at.map(|at| at + GIVE_EVERY).filter(|at| *at > now);
        own.chain(patience).chain(gives_again.filter(|_| self.is_asked(now))).min()
    }

    /// Whether nothing of ours is left to be written on the way out.
    pub(crate) fn has_left(&self) -> bool {
        self.keepers.iter().chain([&self.waiting]).all(LeaseKeeper::has_left)
    }

    /// Until when one that nobody holds is left to others; `None` for who has none.
    fn patience_ends(&self, now: Timestamp) -> Option<Timestamp> {
        let has_some = self.keepers.iter().any(|keeper| keeper.is_ours_or_asked_for(now));
        let since = self.keepers.iter().filter_map(LeaseKeeper::vacant_since).chain(self.asked_at).max()?;
        has_some.then_some(since + PATIENCE)
    }

    /// Asks for a bucket, or gives one, where one replica has several and another none.
    fn settle_shares(&mut self, now: Timestamp) {
        let is_leaving = self.is_leaving;
        if let Some(bucket) = self.giving
            && let Some(keeper) = self.keeper(bucket).filter(|keeper| keeper.has_left())
        {
            // It is anybody's now, ours too, if whoever has asked for it does not take it.
            if !is_leaving {
                keeper.enter();
            }
            self.giving = None;
        }
        if self.is_to_ask(now) {
            self.waiting.enter();
        } else {
            self.waiting.leave();
        }
        if self.giving.is_none()
            && self.gave_at.is_none_or(|at| at + GIVE_EVERY <= now)
            && self.is_asked(now)
            && let Some(bucket) = self.rights(now).into_keys().next_back()
            && let Some(keeper) = self.keeper(bucket)
        {
            keeper.leave();
            (self.giving, self.gave_at) = (Some(bucket), Some(now));
        }
    }

    /// Whether we have none, none is free, and somebody has several.
    fn is_to_ask(&self, now: Timestamp) -> bool {
        let is_open =
            |keeper: &LeaseKeeper| keeper.is_ours_or_asked_for(now) || keeper.vacant_since().is_some();
        if self.is_leaving || self.bucket_count_mismatch.is_some() || self.keepers.iter().any(is_open) {
            return false;
        }
        let mut holders: Vec<_> = self.holders(now).collect();
        holders.sort_unstable();
        holders.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Whether we have several, and somebody asks who has none.
    fn is_asked(&self, now: Timestamp) -> bool {
        let asks = self.waiting.held_by_another(now).and_then(|lease| lease.holder.as_deref());
        !self.is_leaving
            && self.rights(now).len() > 1
            && asks.is_some_and(|asks| self.holders(now).all(|holder| holder != asks))
    }

    /// Who else has buckets, each as often as it has some.
    fn holders(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        self.keepers.iter().filter_map(move |keeper| keeper.held_by_another(now)?.holder.as_deref())
    }

    /// Whether somebody who may live still goes by another number of buckets.
    fn check_bucket_counts(&mut self, now: Timestamp) {
        let others = self.all_keepers().filter_map(|keeper| keeper.held_by_another(now));
        let mismatch = others.filter_map(|lease| {
            let theirs = lease.notes.get(BUCKETS_ANNOTATION).map_or("1", String::as_str);
            let holder = lease.holder.as_deref().unwrap_or_default();
            (theirs != self.count().to_string()).then(|| format!("{holder} goes by {theirs}"))
        });
        // Of several always the same one, or each look would find another and say it.
        let mismatch = mismatch.min();
        if mismatch != self.bucket_count_mismatch
            && let Some(mismatch) = &mismatch
        {
            tracing::error!(
                buckets = self.count(),
                "{mismatch} buckets; nothing is decided here before it has ended (change their number only with all autoscalers stopped)"
            );
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
