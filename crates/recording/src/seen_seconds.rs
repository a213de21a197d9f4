//! Which seconds of a reporter are counted already? A hello repeats up to sixty of them.

/// The numbers of seconds, as ranges in their order: one range, unless some are missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenSeconds {
    /// The first second of each range, and the last one.
    ranges: Vec<(u64, u64)>,
}

impl SeenSeconds {
    /// Takes in a second; false if it was there before.
    pub(crate) fn insert(&mut self, second: u64) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= second);
        if self.ranges[..after].last().is_some_and(|(_, last)| *last >= second) {
            return false;
        }
        // A foreign record may name the last second that a number can.
        let joins_before =
            self.ranges[..after].last().is_some_and(|(_, last)| last.checked_add(1) == Some(second));
        let joins_after =
            self.ranges.get(after).is_some_and(|(first, _)| second.checked_add(1) == Some(*first));
        match (joins_before, joins_after) {
            (true, true) => {
                let (_, last) = self.ranges.remove(after);
                self.ranges[after - 1].1 = last;
            }
            (true, false) => self.ranges[after - 1].1 = second,
            (false, true) => self.ranges[after].0 = second,
            (false, false) => self.ranges.insert(after, (second, second)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_second_of_all_is_one_like_others() {
        let mut seen = SeenSeconds::default();
        assert!(seen.insert(u64::MAX) && seen.insert(0) && seen.insert(u64::MAX - 1));
        assert!(!seen.insert(u64::MAX));
        assert_eq!(seen.ranges, [(0, 0), (u64::MAX - 1, u64::MAX)]);
    }

    proptest! {
        #[test]
        fn each_second_is_new_once(seconds in prop::collection::vec(0..40_u64, 0..120)) {
            let (mut seen, mut model) = (SeenSeconds::default(), BTreeSet::new());
            for second in seconds {
                prop_assert_eq!(seen.insert(second), model.insert(second));
            }
            let apart = seen.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
            prop_assert!(apart, "{:?}", seen);
        }
    }
}
