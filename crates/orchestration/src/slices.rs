//! Which pods of a revision are an activator's?
//!
//! With several activators each gets a slice of the pods, so that together they do not overfill them. While
//! there is one activator its slice is everything.

use std::ops::Range;

/// One of several activators of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its place among them, from 0; `None` while it does not know.
    pub(crate) index: Option<usize>,
    /// The number of activators among which the slots are divided.
    pub(crate) activators: usize,
}

impl Share {
    /// The indices, in a sorted list of `pods`, of those that are this activator's: a run of equal length for
    /// each, and what is left over one by one from the end of the list to the first activators.
    pub(crate) fn of(self, pods: usize) -> impl Iterator<Item = usize> {
        let (run, extra) = self.run_and_extra(pods);
        run.chain(extra)
    }

    fn run_and_extra(self, pods: usize) -> (Range<usize>, Option<usize>) {
        let Some(index) = self.index else {
            return (0..pods, None);
        };
        if pods <= 1 || self.activators <= 1 {
            return (0..pods, None);
        }
        if self.activators > pods {
            // Some pods are in several slices then: an activator without a pod of its own could only try
            // those of others.
            let shared = index % pods;
            return (shared..shared + 1, None);
        }
        let (each, left_over) = (pods / self.activators, pods % self.activators);
        let extra = (index < left_over).then(|| pods - left_over + index);
        (index * each..(index + 1) * each, extra)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(pods: usize, activators: usize, index: usize) -> Vec<usize> {
        Share { index: Some(index), activators }.of(pods).collect()
    }

    /// Rows C4–C13: pods, activators, index, and the slice.
    #[test]
    fn each_activator_gets_its_slice() {
        let rows: [(&str, usize, usize, usize, Vec<usize>); 18] = [
            ("C4, index 0", 3, 2, 0, vec![0, 2]),
            ("C4, index 1", 3, 2, 1, vec![1]),
            ("C5, index 0", 5, 2, 0, vec![0, 1, 4]),
            ("C5, index 1", 5, 2, 1, vec![2, 3]),
            ("C6", 6, 4, 0, vec![0, 4]),
            ("C7, index 1", 6, 4, 1, vec![1, 5]),
            ("C7, index 2", 6, 4, 2, vec![2]),
            ("C7, index 3", 6, 4, 3, vec![3]),
            ("C8, index 0", 10, 3, 0, vec![0, 1, 2, 9]),
            ("C8, index 1", 10, 3, 1, vec![3, 4, 5]),
            ("C8, index 2", 10, 3, 2, vec![6, 7, 8]),
            ("C9, index 0", 2, 3, 0, vec![0]),
            ("C9, index 1", 2, 3, 1, vec![1]),
            ("C9, index 2", 2, 3, 2, vec![0]),
            ("C10", 1, 3, 2, vec![0]),
            ("C11", 20, 3, 1, vec![6, 7, 8, 9, 10, 11, 19]),
            ("C12, index 0", 24, 5, 0, vec![0, 1, 2, 3, 20]),
            ("C12, index 4", 24, 5, 4, vec![16, 17, 18, 19]),
        ];
        for (name, pods, activators, index, expected) in rows {
            assert_eq!(slice(pods, activators, index), expected, "{name}");
        }
        assert_eq!(slice(150, 5, 4), (120..150).collect::<Vec<_>>(), "C13");
    }

    #[test]
    fn c14_an_activator_that_does_not_know_its_place_takes_all() {
        assert_eq!(Share { index: None, activators: 9 }.of(4).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn every_pod_belongs_to_exactly_one_activator_while_there_are_enough() {
        for pods in 1..40 {
            for activators in 1..=pods {
                let mut all: Vec<usize> =
                    (0..activators).flat_map(|index| slice(pods, activators, index)).collect();
                all.sort_unstable();
                assert_eq!(all, (0..pods).collect::<Vec<_>>(), "{pods} pods, {activators} activators");
            }
        }
    }
}
