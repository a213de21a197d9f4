//! How fast are slices written?
//!
//! An activator that goes stands in the slices of thousands of Services, and an API server that gets all of
//! these writes at once has no time for any client, ourselves included. So they begin one after the other,
//! and not too many are under way; which write begins first is decided elsewhere. A short burst is free: few
//! changes of a quiet cluster wait for nothing.

use std::time::Duration;

use vocabulary::Timestamp;

/// 200 writes a second: with the burst, and with answers that come closer together than writes begin, no
/// second has more than 300 (312 were seen at 250).
pub const WRITE_EVERY: Duration = Duration::from_millis(5);
/// Writes that may come at once after a pause.
pub const BURST: u32 = 50;
/// Revisions whose slices are being written: answers that take long hold up what follows.
const UNDER_WAY_MAX: usize = 64;

/// Says when the next revision's slices may be written.
#[derive(Debug, Default)]
pub(crate) struct WritePace {
    /// When the next write is due by the schedule, which may lie as far back as a burst is long.
    due: Timestamp,
    under_way: usize,
}

impl WritePace {
    /// From when on writes may begin; `None` while answers have to come first.
    pub(crate) fn next_turn(&self) -> Option<Timestamp> {
        (self.under_way < UNDER_WAY_MAX).then_some(self.due)
    }

    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.next_turn().is_some_and(|turn| turn <= now)
    }

    /// So many writes begin, one after the other.
    pub(crate) fn begin(&mut self, writes: usize, now: Timestamp) {
        let writes = u32::try_from(writes).unwrap_or(u32::MAX);
        self.due = self.due.max(now - WRITE_EVERY * (BURST - 1)) + WRITE_EVERY.saturating_mul(writes);
        self.under_way += 1;
    }

    /// The writes of one beginning have ended, with any answer.
    pub(crate) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_duration(Duration::from_millis(millis))
    }

    #[test]
    fn writes_begin_200_a_second_after_a_burst() {
        let mut pace = WritePace::default();
        let began = |pace: &mut WritePace, from: u64, to: u64| {
            let mut begun = 0;
            for millis in from..to {
                while pace.is_open(at(millis)) {
                    pace.begin(1, at(millis));
                    pace.ended();
                    begun += 1;
                }
            }
            begun
        };
        assert_eq!(began(&mut pace, 10_000, 10_001), 50);
        assert_eq!(began(&mut pace, 10_001, 11_000), 199);
        assert_eq!(began(&mut pace, 11_000, 12_000), 200);
        assert_eq!(began(&mut pace, 20_000, 21_000), 50 + 199);
    }

    #[test]
    fn many_writes_of_one_revision_take_their_time_and_answers_that_are_late_hold_up_all() {
        let mut pace = WritePace::default();
        pace.begin(75, at(10_000));
        assert_eq!(pace.next_turn(), Some(at(10_000 + 5 * (75 - 49))));
        for _ in 1..64 {
            pace.begin(1, at(20_000));
        }
        assert_eq!((pace.next_turn(), pace.is_open(at(90_000))), (None, false));
        pace.ended();
        assert!(pace.is_open(at(90_000)));
    }
}
