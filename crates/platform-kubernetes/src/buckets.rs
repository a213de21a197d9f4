//! About which buckets of revisions do we decide?
//!
//! Each bucket is a Lease ([`LeaseKeeper`]). Replicas share them by waiting: one that nobody holds is taken
//! at once by who has none, and half a second later by who has some already. So two replicas that start
//! together get one of two each, and when one of them leaves in order a newcomer comes before the one that
//! stays.
//!
//! How many there are is the same for all, and every Lease says it: beside somebody who goes by another
//! number nobody takes anything, or a revision would be in a bucket of each.

use std::collections::BTreeMap;
use std::time::Duration;

use vocabulary::{BUCKETS_ANNOTATION, Bucket, Epoch, Ownership, ReplicaName, RevisionName, Timestamp};

use crate::lease::{LeaseKeeper, LeaseRecord, LeaseWrite, Right, VacancyUse};
use crate::port_book::LeaseNotes;

/// How long who has a bucket already leaves another one to those who have none.
const PATIENCE: Duration = Duration::from_millis(500);

/// The rights in force, by bucket.
pub(crate) type Rights = BTreeMap<Bucket, Right>;

/// One autoscaler's view of all buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// By number.
    keepers: Vec<LeaseKeeper>,
    /// Of buckets that exist only for others.
    strangers: BTreeMap<Bucket, LeaseKeeper>,
    name: ReplicaName,
    /// When a bucket was last asked for that nobody held.
    asked_at: Option<Timestamp>,
    /// What is wrong with how many others say there are.
    quarrel: Option<String>,
}

impl Buckets {
    /// So many; zero is read as one.
    pub(crate) fn new(name: &ReplicaName, count: u16) -> Self {
        let mut keepers: Vec<LeaseKeeper> = Vec::new();
        for _ in 0..count.max(1) {
            keepers.push(LeaseKeeper::new(name.clone()));
        }
        let mut buckets =
            Self { keepers, strangers: BTreeMap::new(), name: name.clone(), asked_at: None, quarrel: None };
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

    fn keeper(&mut self, bucket: Bucket) -> Option<&mut LeaseKeeper> {
        self.keepers.get_mut(usize::from(bucket.0))
    }

    /// In which one a revision is.
    pub(crate) fn bucket_of(&self, revision: &RevisionName) -> Bucket {
        Ownership { epochs: BTreeMap::new(), buckets: self.count() }.bucket_of(revision)
    }

    /// The rights in force.
    pub(crate) fn rights(&self, now: Timestamp) -> Rights {
        let rights = self.all().zip(&self.keepers);
        rights.filter_map(|(bucket, keeper)| Some((bucket, keeper.right(now)?))).collect()
    }

    /// The same, as an autoscaler is told.
    pub(crate) fn ownership(&self, now: Timestamp) -> Ownership {
        Ownership { epochs: epochs(&self.rights(now)), buckets: self.count() }
    }

    /// Whoever decides here does so still.
    pub(crate) fn renew(&mut self) {
        self.keepers.iter_mut().for_each(LeaseKeeper::renew);
    }

    /// What is to stand on a bucket's Lease beside how many there are.
    pub(crate) fn note(&mut self, bucket: Bucket, mut notes: LeaseNotes) {
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
        own.chain(self.strangers.values()).filter_map(LeaseKeeper::noted).collect()
    }

    /// Nobody decides here any more.
    pub(crate) fn leave(&mut self) {
        self.keepers.iter_mut().for_each(LeaseKeeper::leave);
    }

    /// Whether somebody decides here (again).
    pub(crate) fn enter(&mut self) {
        self.keepers.iter_mut().for_each(LeaseKeeper::enter);
    }

    /// What the API server has; `None`: there is no such Lease. One of a bucket that does not exist here says
    /// that others count more of them.
    pub(crate) fn observe(&mut self, bucket: Bucket, lease: Option<LeaseRecord>, now: Timestamp) {
        let name = &self.name;
        let stranger = || LeaseKeeper::new(name.clone());
        match self.keepers.get_mut(usize::from(bucket.0)) {
            Some(keeper) => keeper.observe(lease, now),
            None => self.strangers.entry(bucket).or_insert_with(stranger).observe(lease, now),
        }
    }

    /// All Leases have been looked for: what was not observed is not there.
    pub(crate) fn listed(&mut self, now: Timestamp) {
        for keeper in self.keepers.iter_mut().filter(|keeper| !keeper.is_known()) {
            keeper.observe(None, now);
        }
    }

    /// What is to be written now, if anything.
    pub(crate) fn next_write(&mut self, now: Timestamp) -> Option<(Bucket, LeaseWrite)> {
        self.settle_quarrel(now);
        let is_peaceful = self.quarrel.is_none();
        let may_take = self.patience_ends(now).is_none_or(|at| at <= now);
        let vacancy = if may_take { VacancyUse::TakeIt } else { VacancyUse::LeaveIt };
        for (bucket, keeper) in self.all().zip(&mut self.keepers) {
            if !is_peaceful && !keeper.is_ours_or_asked_for(now) {
                continue;
            }
            let was_vacant = keeper.vacant_since().is_some();
            let Some(write) = keeper.next_write(now, vacancy) else { continue };
            if was_vacant {
                self.asked_at = Some(now);
            }
            return Some((bucket, write));
        }
        None
    }

    /// The write of a bucket went through.
    pub(crate) fn written(&mut self, bucket: Bucket, resource_version: String, now: Timestamp) {
        if let Some(keeper) = self.keeper(bucket) {
            keeper.written(resource_version, now);
        }
    }

    /// It failed, or nobody knows whether it did.
    pub(crate) fn failed(&mut self, bucket: Bucket, now: Timestamp) {
        if let Some(keeper) = self.keeper(bucket) {
            keeper.failed(now);
        }
    }

    /// When [`Buckets::next_write`] may have something to say, or a right runs out.
    pub(crate) fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let own = self.keepers.iter().filter_map(|keeper| keeper.next_deadline(now));
        let is_any_vacant = self.keepers.iter().any(|keeper| keeper.vacant_since().is_some());
        let patience = self.patience_ends(now).filter(|at| is_any_vacant && *at > now);
        own.chain(patience).min()
    }

    /// Whether nothing of ours is left to be written on the way out.
    pub(crate) fn has_left(&self) -> bool {
        self.keepers.iter().all(LeaseKeeper::has_left)
    }

    /// Until when one that nobody holds is left to others; `None` for who has none.
    fn patience_ends(&self, now: Timestamp) -> Option<Timestamp> {
        let has_some = self.keepers.iter().any(|keeper| keeper.is_ours_or_asked_for(now));
        let since = self.keepers.iter().filter_map(LeaseKeeper::vacant_since).chain(self.asked_at).max()?;
        has_some.then_some(since + PATIENCE)
    }

    /// Whether somebody who may live still goes by another number of buckets.
    fn settle_quarrel(&mut self, now: Timestamp) {
        let all = self.keepers.iter().chain(self.strangers.values());
        let others = all.filter_map(|keeper| keeper.held_by_another(now));
        let quarrel = others.filter_map(|lease| {
            let theirs = lease.notes.get(BUCKETS_ANNOTATION).map_or("1", String::as_str);
            let holder = lease.holder.as_deref().unwrap_or_default();
            (theirs != self.count().to_string()).then(|| format!("{holder} goes by {theirs}"))
        });
        let quarrel = quarrel.min();
        if quarrel != self.quarrel
            && let Some(quarrel) = &quarrel
        {
            tracing::error!(
                buckets = self.count(),
                "{quarrel} buckets; nothing is decided here before it has ended (change their number only with all autoscalers stopped)"
            );
        }
        self.quarrel = quarrel;
    }
}

/// The epochs of these rights.
pub(crate) fn epochs(rights: &Rights) -> BTreeMap<Bucket, Epoch> {
    rights.iter().map(|(bucket, right)| (*bucket, right.epoch)).collect()
}

#[cfg(test)]
mod tests;
