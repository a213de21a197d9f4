//! Which write of one object is under way, and which one comes after it?
//!
//! One write is under way per object. Of writes that wait the latest wins. A write that failed is tried
//! again, and an order that comes meanwhile waits as long; when, [`WriteTurns`] says.

use std::time::Duration;

use vocabulary::Timestamp;

use crate::write_turns::WriteTurns;

/// The write of one object that is under way, and the one that waits.
#[derive(Debug)]
pub(crate) struct WriteQueue<Write> {
    /// The write that is to be begun, or is under way.
    current: Option<Write>,
    /// The write that comes instead, once `current` has ended.
    next: Option<Write>,
    is_under_way: bool,
    turns: WriteTurns,
}

impl<Write> Default for WriteQueue<Write> {
    fn default() -> Self {
        Self::paced(Duration::ZERO)
    }
}

impl<Write> WriteQueue<Write> {
    /// An empty queue. After a rest two writes may begin at once, then one each `pause`; of the writes that
    /// come meanwhile only the latest is begun.
    pub(crate) fn paced(pause: Duration) -> Self {
        Self { current: None, next: None, is_under_way: false, turns: WriteTurns::paced(pause) }
    }
}

impl<Write: Clone> WriteQueue<Write> {
    /// Puts a write into the queue; returns the waiting write that it replaces.
    pub(crate) fn put(&mut self, write: Write) -> Option<Write> {
        if self.is_under_way { self.next.replace(write) } else { self.current.replace(write) }
    }

    /// The write to begin now, if any; it is under way from then on.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Write> {
        if self.is_under_way || now < self.turns.next_turn() {
            return None;
        }
        let write = self.current.clone()?;
        self.is_under_way = true;
        self.turns.begin(now);
        Some(write)
    }

    /// Whether [`WriteQueue::begin`] would return a write now.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    /// The write under way has ended, and is not tried again.
    pub(crate) fn done(&mut self) {
        self.is_under_way = false;
        self.turns.ended();
        self.current = self.next.take();
    }

    /// The write under way failed. It is tried again after a growing wait, or after `at_least` if the server
    /// asked for more; unless another write waits, which takes its place. Returns the failed write then.
    pub(crate) fn failed(&mut self, at_least: Option<Duration>, now: Timestamp) -> Option<Write> {
        self.is_under_way = false;
        self.turns.failed(at_least, now);
        let next = self.next.take()?;
        self.current.replace(next)
    }

    /// When [`WriteQueue::begin`] may return a write again.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        (self.current.is_some() && !self.is_under_way).then_some(self.turns.next_turn())
    }

    /// Whether nothing is left, not even a pause, so that it may be forgotten.
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.current.is_none() && !self.is_under_way && self.turns.are_over(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_duration(Duration::from_millis(millis))
    }

    #[test]
    fn one_write_is_under_way_and_of_those_that_wait_the_latest_wins() {
        let mut queue = WriteQueue::default();
        assert_eq!(queue.put(1), None);
        assert_eq!(queue.begin(at(0)), Some(1));
        assert_eq!((queue.put(2), queue.put(3), queue.begin(at(0))), (None, Some(2), None));
        queue.done();
        assert_eq!(queue.begin(at(0)), Some(3));
        queue.done();
        assert!(queue.is_idle(at(0)));
    }

    #[test]
    fn paced_work_begins_twice_at_once_and_then_apart_and_what_changes_meanwhile_is_one() {
        let mut queue = WriteQueue::paced(Duration::from_millis(20));
        queue.put(1);
        assert_eq!(queue.begin(at(100)), Some(1));
        queue.done();
        assert!(!queue.is_idle(at(119)) && queue.is_idle(at(120)), "until then a third one has to wait");
        queue.put(2);
        assert_eq!(queue.begin(at(107)), Some(2), "after a rest the second does not wait");
        queue.done();
        queue.put(3);
        assert_eq!((queue.begin(at(119)), queue.next_deadline()), (None, Some(at(120))));
        assert_eq!((queue.put(4), queue.begin(at(120))), (Some(3), Some(4)));
        queue.done();
        queue.put(5);
        assert_eq!((queue.begin(at(139)), queue.next_deadline()), (None, Some(at(140))));
        assert_eq!(queue.begin(at(140)), Some(5));
        // A failure waits for longer than that.
        assert_eq!(queue.failed(None, at(145)), None);
        assert_eq!(queue.next_deadline(), Some(at(245)));
    }

    #[test]
    fn a_failed_write_waits_longer_each_time_and_a_newer_order_waits_too() {
        let mut queue = WriteQueue::default();
        queue.put(1);
        queue.begin(at(0));
        assert_eq!(queue.failed(None, at(0)), None);
        assert_eq!((queue.begin(at(99)), queue.next_deadline()), (None, Some(at(100))));
        assert_eq!(queue.begin(at(100)), Some(1));
        queue.put(2);
        assert_eq!(queue.failed(None, at(100)), Some(1));
        assert_eq!((queue.begin(at(299)), queue.begin(at(300))), (None, Some(2)));
        assert_eq!(queue.failed(Some(Duration::from_secs(5)), at(300)), None);
        assert_eq!(queue.next_deadline(), Some(at(5300)));
    }
}
