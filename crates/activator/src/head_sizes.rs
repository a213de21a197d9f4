//! How large may the head of a request be while its revision is not known?
//!
//! The greatest limit of a known revision counts; until all revisions were named once, the greatest that a
//! revision may have.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use vocabulary::HeadSizeLimit;

/// The limits of all revisions that are known.
pub(crate) struct HeadSizes {
    /// Changed by the links alone.
    limits: Mutex<RevisionLimits>,
    /// The largest limit in bytes. Read before every head, without the lock.
    most: AtomicU32,
}

#[derive(Default)]
struct RevisionLimits {
    /// How many revisions have each.
    counts: BTreeMap<HeadSizeLimit, usize>,
    is_synced: bool,
}

impl Default for HeadSizes {
    fn default() -> Self {
        Self { limits: Mutex::default(), most: AtomicU32::new(HeadSizeLimit::MAX.bytes()) }
    }
}

impl HeadSizes {
    /// As large as a head may be for any revision.
    pub(crate) fn most(&self) -> HeadSizeLimit {
        HeadSizeLimit::new(self.most.load(Ordering::Relaxed)).expect("nothing but limits is stored")
    }

    /// A revision has this limit, and had that one; `None` where it was or is not known.
    pub(crate) fn replace(&self, before: Option<HeadSizeLimit>, now: Option<HeadSizeLimit>) {
        let mut limits = self.limits.lock();
        if before == now {
            return;
        }
        if let Some(now) = now {
            *limits.counts.entry(now).or_default() += 1;
        }
        if let Some(before) = before
            && let Some(count) = limits.counts.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                limits.counts.remove(&before);
            }
        }
        self.publish(&limits);
    }

    /// Everything was named at least once.
    pub(crate) fn note_synced(&self) {
        let mut limits = self.limits.lock();
        limits.is_synced = true;
        self.publish(&limits);
    }

    fn publish(&self, limits: &RevisionLimits) {
        if limits.is_synced {
            let most = limits.counts.last_key_value().map(|(limit, _)| *limit).unwrap_or_default();
            self.most.store(most.bytes(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_limit_of_a_known_revision_counts_once_all_were_named() {
        let sizes = HeadSizes::default();
        let of = |kib: u32| HeadSizeLimit::new(kib << 10);
        let most = |sizes: &HeadSizes| sizes.most().to_string();
        sizes.replace(None, of(64));
        assert_eq!(most(&sizes), "512Ki", "others may be named yet");
        sizes.note_synced();
        assert_eq!(most(&sizes), "64Ki");
        sizes.replace(None, of(256));
        sizes.replace(None, of(256));
        sizes.replace(of(256), of(8));
        assert_eq!(most(&sizes), "256Ki", "one revision has it still");
        sizes.replace(of(256), None);
        assert_eq!(most(&sizes), "64Ki");
        sizes.replace(of(64), None);
        sizes.replace(of(8), None);
        assert_eq!(most(&sizes), "128Ki", "without a revision the default counts");
    }
}
