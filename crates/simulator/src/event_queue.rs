//! What happens next?
//!
//! Events are ordered by their time, and events of one time by the order in which they were planned. So a run
//! depends on nothing but its scenario.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use vocabulary::Timestamp;

/// The events that are planned.
#[derive(Debug)]
pub(crate) struct EventQueue<Event> {
    heap: BinaryHeap<QueuedEvent<Event>>,
    next_number: u64,
}

#[derive(Debug)]
struct QueuedEvent<Event> {
    at: Timestamp,
    number: u64,
    event: Event,
}

impl<Event> EventQueue<Event> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), next_number: 0 }
    }

    pub(crate) fn push(&mut self, at: Timestamp, event: Event) {
        let number = self.next_number;
        self.next_number += 1;
        self.heap.push(QueuedEvent { at, number, event });
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, Event)> {
        self.heap.pop().map(|queued| (queued.at, queued.event))
    }
}

/// The heap gives out its greatest element, which is the one with the earliest time.
impl<Event> Ord for QueuedEvent<Event> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<Event> PartialOrd for QueuedEvent<Event> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Event> PartialEq for QueuedEvent<Event> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<Event> Eq for QueuedEvent<Event> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_their_time_and_then_in_the_order_of_their_planning() {
        let mut queue = EventQueue::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (4, 'e')] {
            queue.push(Timestamp::from_secs(at), event);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "bdeac");
    }
}
