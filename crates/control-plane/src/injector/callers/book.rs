//! Which caller goes when another one needs a place? The table stands in the module above.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use vocabulary::Timestamp;

/// A caller that is about to send its first bytes does so within this time.
const SETTLING_TIME: Duration = Duration::from_millis(50);

/// A handshake takes two round trips and a signature of each side.
const HANDSHAKE_MIN: Duration = Duration::from_millis(250);

/// How long a caller's TLS handshake may take while others have no place.
const CROWDED_HANDSHAKE_MAX: Duration = Duration::from_secs(1);

/// The limits of connections to the webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallerLimits {
    /// The number of callers that may have a connection at once.
    pub(crate) places: usize,
    /// No caller that has agreed loses its place to another before it was silent for this long.
    pub(crate) silence_min: Duration,
    /// The number of callers that keep their places because they have sent a review.
    pub(crate) known: usize,
    /// How long a caller keeps its place after a review.
    pub(crate) known_for: Duration,
}

impl CallerLimits {
    /// Some dozen API servers with room for others. Each may ask as much as it likes: how many questions are
    /// held at once has a limit of its own.
    pub(crate) const WEBHOOK: Self = Self {
        places: 64,
        silence_min: Duration::from_secs(1),
        known: 16,
        known_for: Duration::from_mins(5),
    };
}

#[derive(Default)]
pub(super) struct CallerBook {
    pub(super) last: u64,
    pub(super) callers: BTreeMap<u64, CallerRecord>,
}

impl CallerBook {
    /// Those that keep their places because they have sent a review.
    fn known(&self, limits: CallerLimits, now: Timestamp) -> Vec<u64> {
        let reviewed =
            self.callers.iter().filter_map(|(number, caller)| Some((caller.reviewed_at?, *number)));
        let mut reviewed: Vec<_> = reviewed.filter(|(at, _)| now < *at + limits.known_for).collect();
        reviewed.sort_unstable();
        reviewed.into_iter().rev().take(limits.known).map(|(_, number)| number).collect()
    }

    /// Sends callers away, if some may go. Otherwise says when one may.
    pub(super) fn make_room(
        &mut self,
        limits: CallerLimits,
        now: Timestamp,
    ) -> Result<usize, Option<Timestamp>> {
        if self.callers.values().any(|caller| caller.must_go) {
            return Ok(0);
        }
        let mut gone = 0;
        for caller in self.callers.values_mut() {
            if !caller.has_agreed && now >= caller.came_at + CROWDED_HANDSHAKE_MAX {
                caller.send_away();
                gone += 1;
            }
        }
        if gone > 0 {
            return Ok(gone);
        }
        let known = self.known(limits, now);
        let others = self.callers.iter_mut().filter(|(number, _)| !known.contains(number));
        let mut others: Vec<_> =
            others.map(|(_, caller)| caller).filter(|caller| caller.reviews_under_way == 0).collect();
        others.sort_by_key(|caller| (caller.rank(), caller.may_go_from(limits)));
        let next_at = others.iter().map(|caller| caller.may_go_from(limits).1).min();
        match others.into_iter().find(|caller| caller.may_go_from(limits).1 <= now) {
            Some(caller) => {
                caller.send_away();
                Ok(1)
            }
            None => Err(next_at),
        }
    }
}

/// What is known of a caller.
pub(super) struct CallerRecord {
    pub(super) came_at: Timestamp,
    pub(super) heard_at: Option<Timestamp>,
    pub(super) has_agreed: bool,
    pub(super) reviews_under_way: usize,
    pub(super) reviewed_at: Option<Timestamp>,
    pub(super) must_go: bool,
    pub(super) task: Arc<AtomicWaker>,
}

/// In which order callers make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DismissalRank {
    Silent,
    Agreeing,
    Agreed,
}

impl CallerRecord {
    fn rank(&self) -> DismissalRank {
        match (self.has_agreed, self.heard_at) {
            (true, _) => DismissalRank::Agreed,
            (false, Some(_)) => DismissalRank::Agreeing,
            (false, None) => DismissalRank::Silent,
        }
    }

    /// Since when it has been of its rank without a word, and from when on it may be sent away.
    fn may_go_from(&self, limits: CallerLimits) -> (Timestamp, Timestamp) {
        let (since, patience) = match self.rank() {
            DismissalRank::Silent => (self.came_at, SETTLING_TIME),
            DismissalRank::Agreeing => (self.came_at, HANDSHAKE_MIN),
            DismissalRank::Agreed => (self.heard_at.unwrap_or(self.came_at), limits.silence_min),
        };
        (since, since + patience)
    }

    fn send_away(&mut self) {
        self.must_go = true;
        self.task.wake();
    }
}
