//! A way on which words arrive in the order in which they left, also where later ones take less time.

use std::time::Duration;

use vocabulary::Timestamp;

/// A way on which nothing overtakes anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OrderedWay {
    last: Timestamp,
}

impl OrderedWay {
    /// When something arrives that leaves now.
    pub(crate) fn arrival(&mut self, now: Timestamp, delay: Duration) -> Timestamp {
        self.last = self.last.max(now + delay);
        self.last
    }
}
