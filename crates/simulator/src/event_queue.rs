//! What happens next?
//!
//! Events are ordered by their time, and events of one time by the order in which they were planned. So a run
//! depends on nothing but its scenario.
//!
//! The heap orders places alone, which are small: an event lies still from its planning until it comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vocabulary::Timestamp;

/// The events that are planned.
#[derive(Debug)]
pub(crate) struct EventQueue<Event> {
    heap: BinaryHeap<Reverse<QueuedPlace>>,
    /// The planned events, each at its place; `None` at a place that is free.
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    next_number: u64,
}

/// Where an event lies, and when it comes: the order is that of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedPlace {
    at: Timestamp,
    number: u64,
    place: usize,
}

impl<Event> EventQueue<Event> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), next_number: 0 }
    }

    pub(crate) fn push(&mut self, at: Timestamp, event: Event) {
        let number = self.next_number;
        self.next_number += 1;
        let place = if let Some(place) = self.free.pop() {
            self.events[place] = Some(event);
            place
        } else {
            self.events.push(Some(event));
            self.events.len() - 1
        };
        self.heap.push(Reverse(QueuedPlace { at, number, place }));
    }

    /// The next event and its time.
    pub(crate) fn pop(&mut self) -> Option<(Timestamp, Event)> {
        let Reverse(QueuedPlace { at, place, .. }) = self.heap.pop()?;
        self.free.push(place);
        let event = self.events[place].take().expect("an event lies at its place until it comes");
        Some((at, event))
    }
}

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

    #[test]
    fn the_place_of_an_event_that_came_is_given_to_the_next_one() {
        let mut queue = EventQueue::new();
        for second in 0..100 {
            queue.push(Timestamp::from_secs(second), second);
            queue.push(Timestamp::from_secs(second + 1), second);
            assert_eq!(queue.pop().map(|(at, _)| at), Some(Timestamp::from_secs(second.div_ceil(2))));
        }
        assert_eq!((queue.events.len(), queue.free.len()), (101, 1));
    }
}
