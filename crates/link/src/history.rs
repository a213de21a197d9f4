//! The past seconds that a reporter remembers, so that an autoscaler that (re)connects gets the seconds that
//! it missed.

use std::collections::VecDeque;

use vocabulary::Sample;

/// A reporter's last 60 seconds, oldest first: as long as the longest stable window that a restart should
/// survive by default.
#[derive(Clone, Debug, Default)]
pub struct History<Second = Sample> {
    seconds: VecDeque<Second>,
}

impl<Second: Clone> History<Second> {
    /// How many seconds are kept, and how many a hello may name.
    pub const SECONDS_MAX: usize = 60;

    /// A history without any second.
    pub fn new() -> Self {
        Self { seconds: VecDeque::new() }
    }

    /// Adds the second that just ended; the oldest is forgotten when there are more than
    /// [`Self::SECONDS_MAX`].
    pub fn push(&mut self, second: Second) {
        if self.seconds.len() >= Self::SECONDS_MAX {
            self.seconds.pop_front();
        }
        self.seconds.push_back(second);
    }

    /// All of it, oldest first.
    pub fn to_vec(&self) -> Vec<Second> {
        self.seconds.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_second_is_forgotten_first() {
        let mut history = History::new();
        for second in 0..61_u64 {
            history.push(second);
        }
        assert_eq!(history.to_vec(), (1..61).collect::<Vec<_>>());
    }
}
