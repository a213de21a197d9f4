//! Which pods are ready, if a count was asked for and each start takes as long?

use std::collections::VecDeque;

use simulator::RecordedCount;

/// The number of pods that are asked for, second by second.
pub(crate) fn counts_by_second(counts: &[RecordedCount], seconds: usize) -> Vec<u32> {
    let mut by_second = Vec::with_capacity(seconds);
    let mut count = 0;
    for recorded in counts {
        let at = usize::try_from(recorded.at.as_secs()).unwrap_or(seconds).min(seconds);
        by_second.resize(at.max(by_second.len()), count);
        count = recorded.count.value();
    }
    by_second.resize(seconds, count);
    by_second
}

/// The pods that are ready: the fewest of those asked for since a start-up ago.
#[derive(Debug)]
pub(crate) struct ReadyPods {
    start_up: usize,
    second: usize,
    /// Counts that no later one is below, the oldest first, with their seconds.
    fewest: VecDeque<(usize, u32)>,
}

impl ReadyPods {
    pub(crate) fn new(start_up: usize) -> Self {
        Self { start_up, second: 0, fewest: VecDeque::new() }
    }

    /// The pods that are ready in the next second, in which so many are asked for.
    pub(crate) fn next(&mut self, asked: u32) -> u32 {
        while self.fewest.back().is_some_and(|(_, count)| *count >= asked) {
            self.fewest.pop_back();
        }
        self.fewest.push_back((self.second, asked));
        while self.fewest.front().is_some_and(|(second, _)| second + self.start_up < self.second) {
            self.fewest.pop_front();
        }
        self.second += 1;
        self.fewest.front().map_or(asked, |(_, count)| *count)
    }
}
