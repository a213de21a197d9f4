//! What was measured of revisions that predict, for keyframes.
//!
//! Prediction decides from days of the past, which no entry of a record tells: they were measured before it
//! began, or long ago. So a keyframe has the histories of revisions that predict, as a store would hold them.
//! No keyframe has more of them than a small part of the record, or they would push out the entries.

use std::fmt;
use std::ops::ControlFlow;

use scaling::HistoryRecord;
use vocabulary::RevisionName;

use crate::history_frames::history_out;
use crate::wire::proto::HistoryMessage;

/// The histories of one keyframe take at most this part of the bytes that a record may have.
const PART_OF_RECORD: u64 = 32;

/// Where a writer of records finds histories, whenever it writes a keyframe.
pub trait KeyframeHistories: fmt::Debug + Send {
    /// Hands out the history of each revision that predicts, one after the other, as it is now, until it is
    /// told to end.
    fn hand_out(&self, take: &mut dyn FnMut(&RevisionName, HistoryRecord) -> ControlFlow<()>);
}

/// The histories for a keyframe of a record that may have so many bytes. The first that has no room ends
/// them.
pub(crate) fn histories_out(source: &dyn KeyframeHistories, bytes_max: u64) -> Vec<HistoryMessage> {
    let (mut histories, mut room) = (Vec::new(), bytes_max / PART_OF_RECORD);
    source.hand_out(&mut |revision, record| {
        let message = history_out(revision, &record);
        let bytes = u64::try_from(message.history.len()).unwrap_or(u64::MAX);
        let Some(rest) = room.checked_sub(bytes) else { return ControlFlow::Break(()) };
        room = rest;
        histories.push(message);
        ControlFlow::Continue(())
    });
    histories
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many histories that tell of nothing.
    #[derive(Debug)]
    struct EmptyHistories(u32);

    impl KeyframeHistories for EmptyHistories {
        fn hand_out(&self, take: &mut dyn FnMut(&RevisionName, HistoryRecord) -> ControlFlow<()>) {
            for number in 0..self.0 {
                let name = RevisionName::new("default", "service", &format!("r{number}")).expect("a name");
                if take(&name, HistoryRecord::default()).is_break() {
                    return;
                }
            }
        }
    }

    #[test]
    fn histories_take_no_more_than_their_part_of_a_record() {
        let one = u64::try_from(histories_out(&EmptyHistories(1), 1 << 20)[0].history.len()).expect("few");
        let found = |bytes_max: u64| histories_out(&EmptyHistories(10), bytes_max).len();
        assert_eq!(found(1 << 20), 10);
        assert_eq!(found(one * 3 * PART_OF_RECORD), 3);
        assert_eq!(found(one * 3 * PART_OF_RECORD - 1), 2);
        assert_eq!(found(0), 0);
    }
}
