//! How large may the head of a request be while its revision is not known? The greatest limit of a known
//! revision counts; until all revisions were named once, the greatest that a revision may have.

use std::collections::BTreeMap;

use vocabulary::HeadSizeLimit;

/// How many of the known revisions have each limit.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadSizeTally(BTreeMap<HeadSizeLimit, usize>);

impl HeadSizeTally {
    pub(super) fn add(&mut self, limit: HeadSizeLimit) {
        *self.0.entry(limit).or_default() += 1;
    }

    pub(super) fn take(&mut self, limit: HeadSizeLimit) {
        if let Some(count) = self.0.get_mut(&limit) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&limit);
            }
        }
    }

    pub(super) fn most(&self) -> HeadSizeLimit {
        self.0.last_key_value().map(|(limit, _)| *limit).unwrap_or_default()
    }
}
