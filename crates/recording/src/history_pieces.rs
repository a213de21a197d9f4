//! Histories in pieces of limited size, for a store that keeps no files.
//!
//! A piece is one block (`block.rs`) with the histories of some revisions, and is read by itself: one that is
//! damaged takes no other with it.

use std::io;

use vocabulary::RevisionName;

use crate::block::{block_of, next_block};
use crate::history_folder::{PastHistories, StoredHistory, json, take_in};

/// Histories as a store of pieces keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPieces {
    /// The pieces, none of them greater than was allowed.
    pub pieces: Vec<Vec<u8>>,
    /// Revisions whose history alone is greater.
    pub too_large: Vec<RevisionName>,
}

impl HistoryPieces {
    /// These histories in as few pieces as dividing them by two again and again makes.
    pub fn of(histories: &[StoredHistory], bytes_max: usize) -> io::Result<Self> {
        let mut pieces = Self::default();
        pieces.add(histories, bytes_max)?;
        Ok(pieces)
    }

    fn add(&mut self, histories: &[StoredHistory], bytes_max: usize) -> io::Result<()> {
        if histories.is_empty() {
            return Ok(());
        }
        let piece = block_of(&json(histories)?);
        if piece.len() <= bytes_max {
            self.pieces.push(piece);
            return Ok(());
        }
        if let [alone] = histories {
            self.too_large.push(alone.revision.clone());
            return Ok(());
        }
        let (one, other) = histories.split_at(histories.len() / 2);
        self.add(one, bytes_max)?;
        self.add(other, bytes_max)
    }
}

impl PastHistories {
    /// Takes in the histories of a piece, which go on from those of pieces before. What cannot be read is
    /// told with the place of the piece.
    pub fn take_in_piece(&mut self, place: &str, mut piece: &[u8]) {
        let parts = match next_block(&mut piece) {
            Ok(Some(block)) => {
                serde_json::from_slice::<Vec<StoredHistory>>(&block).map_err(|error| error.to_string())
            }
            Ok(None) => Err("it is empty".to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        match parts {
            Ok(parts) => {
                for part in parts {
                    take_in(part, &mut self.histories, &mut self.faults);
                }
            }
            Err(fault) => self.faults.push(format!("{place}: {fault}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use forecasting::{DemandMinutes, MinuteDemand, PastDemand as _};
    use proptest::prelude::*;
    use scaling::DemandDays;
    use settings::Metric;

    use super::*;

    const FIRST: u64 = 29_000_000;

    fn name(number: u32) -> RevisionName {
        RevisionName::new("default", "service", &format!("s{number}")).expect("a name")
    }

    /// The history of a revision with demand in these minutes, which no other has.
    fn stored(number: u32, minutes: u32) -> StoredHistory {
        let mut demand = DemandMinutes::beginning_at(FIRST);
        for minute in 0..minutes {
            let mean = f64::from((minute + 5000 * number).wrapping_mul(2_654_435_761) >> 20);
            demand.push(Some(MinuteDemand { mean, maximum: mean + 1.0 }));
        }
        StoredHistory { revision: name(number), record: DemandDays::of(Metric::Rps, &demand).export() }
    }

    fn known_minutes(past: &PastHistories, number: u32) -> usize {
        let demand = past.histories.get(&name(number)).and_then(|history| history.demand());
        demand.map_or(0, |days| (FIRST..FIRST + 3000).filter(|minute| days.minute(*minute).is_some()).count())
    }

    #[test]
    fn pieces_are_no_greater_than_allowed_and_each_is_read_by_itself() {
        let histories: Vec<StoredHistory> = (0..9).map(|number| stored(number, 300)).collect();
        let bytes_max = 3 * block_of(&json(&histories[..1]).expect("numbers")).len();
        let HistoryPieces { pieces, too_large } = HistoryPieces::of(&histories, bytes_max).expect("numbers");
        assert!(pieces.len() > 1 && too_large.is_empty());
        assert!(pieces.iter().all(|piece| piece.len() <= bytes_max));
        let mut past = PastHistories::default();
        let mut damaged = pieces[0].clone();
        damaged[15] ^= 1;
        past.take_in_piece("the first piece", &damaged);
        pieces[1..].iter().for_each(|piece| past.take_in_piece("another piece", piece));
        let [fault] = &past.faults[..] else { panic!("one fault: {:?}", past.faults) };
        assert!(fault.starts_with("the first piece: a block is damaged"), "{fault}");
        assert!(past.histories.len() < 9 && known_minutes(&past, 8) == 300, "{:?}", past.histories.keys());
    }

    #[test]
    fn a_history_that_alone_is_too_large_is_named_and_keeps_no_other_out() {
        let histories = [stored(1, 3), stored(2, 3000), stored(3, 3)];
        let bytes_max = 2 * block_of(&json(&histories[..1]).expect("numbers")).len();
        let packed = HistoryPieces::of(&histories, bytes_max).expect("numbers");
        assert_eq!((packed.too_large, packed.pieces.len()), (vec![name(2)], 2));
    }

    #[test]
    fn a_later_piece_goes_on_from_an_earlier_one() {
        let mut past = PastHistories::default();
        for minutes in [100, 250] {
            let packed = HistoryPieces::of(&[stored(1, minutes)], 1 << 20).expect("numbers");
            past.take_in_piece("a day", &packed.pieces[0]);
        }
        past.take_in_piece("nothing", &[]);
        assert_eq!((known_minutes(&past, 1), past.faults.len()), (250, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_of_no_piece_are_told(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut past = PastHistories::default();
            past.take_in_piece("a piece", &bytes);
            prop_assert_eq!((past.faults.len(), past.histories.len()), (1, 0));
        }

        /// The check number of the block is that of the changed text, so the text alone tells what is wrong.
        #[test]
        fn a_history_of_another_text_is_told_or_read(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        ) {
            let mut text = json(&[stored(1, 40)]).expect("numbers");
            for (place, byte) in changes {
                let place = place.index(text.len());
                text[place] = byte;
            }
            let mut past = PastHistories::default();
            past.take_in_piece("a piece", &block_of(&text));
            prop_assert_eq!(past.faults.len() + past.histories.len(), 1, "{:?}", past.faults);
        }
    }
}
