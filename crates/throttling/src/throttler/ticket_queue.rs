//! The requests that wait for something, the oldest ticket first.
//!
//! Nearly always a request finds the queue empty and a slot free, and so is alone in the queue for an
//! instant. One that is alone stands outside of the tree, which it would enter only to leave it again.

use std::collections::BTreeMap;

use vocabulary::Timestamp;

use crate::ticket::Ticket;

/// Requests by their tickets, each with the time of its arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct TicketQueue {
    /// The only request, if the tree is empty.
    alone: Option<(Ticket, Timestamp)>,
    tree: BTreeMap<Ticket, Timestamp>,
}

impl TicketQueue {
    /// The number of requests that wait.
    pub(super) fn len(&self) -> usize {
        usize::from(self.alone.is_some()) + self.tree.len()
    }

    /// Whether no request waits at all.
    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none() && self.tree.is_empty()
    }

    /// A request waits from now on; one that waits already keeps its place.
    pub(super) fn insert(&mut self, ticket: Ticket, arrived: Timestamp) {
        if self.is_empty() {
            self.alone = Some((ticket, arrived));
            return;
        }
        self.tree.extend(self.alone.take());
        self.tree.insert(ticket, arrived);
    }

    /// Whether the request of a ticket waits.
    pub(super) fn contains(&self, ticket: Ticket) -> bool {
        match self.alone {
            Some((alone, _)) => alone == ticket,
            None => self.tree.contains_key(&ticket),
        }
    }

    /// A request waits no more. Returns when it arrived, if it waited.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Timestamp> {
        match self.alone {
            Some((alone, arrived)) if alone == ticket => {
                self.alone = None;
                Some(arrived)
            }
            Some(_) => None,
            None => self.tree.remove(&ticket),
        }
    }

    /// The request with the oldest ticket, and when it arrived.
    pub(super) fn first(&self) -> Option<(Ticket, Timestamp)> {
        self.alone.or_else(|| self.tree.first_key_value().map(|(ticket, arrived)| (*ticket, *arrived)))
    }

    /// The request with the oldest ticket waits no more.
    pub(super) fn remove_first(&mut self) {
        if self.alone.take().is_none() {
            self.tree.pop_first();
        }
    }

    /// The tickets of all requests, the oldest first.
    pub(super) fn into_tickets(self) -> impl Iterator<Item = Ticket> {
        self.alone.into_iter().chain(self.tree).map(|(ticket, _)| ticket)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What happens to a queue; tickets are named by their numbers.
    #[derive(Clone, Copy, Debug)]
    enum QueueEvent {
        Insert(usize, u64),
        Remove(usize),
        RemoveFirst,
    }

    fn event() -> impl Strategy<Value = QueueEvent> {
        prop_oneof![
            (0..6_usize, 0..9_u64).prop_map(|(ticket, at)| QueueEvent::Insert(ticket, at)),
            (0..6_usize).prop_map(QueueEvent::Remove),
            Just(QueueEvent::RemoveFirst),
        ]
    }

    proptest! {
        /// In each state that can be reached, it is the tree of all requests.
        #[test]
        fn a_queue_is_a_tree_of_tickets(events in prop::collection::vec(event(), 0..40)) {
            let mut next = Ticket::FIRST;
            let tickets: Vec<Ticket> = (0..6).map(|_| next.draw()).collect();
            let (mut queue, mut tree) = (TicketQueue::default(), BTreeMap::new());
            for event in events {
                match event {
                    QueueEvent::Insert(ticket, at) => {
                        queue.insert(tickets[ticket], Timestamp::from_secs(at));
                        tree.insert(tickets[ticket], Timestamp::from_secs(at));
                    }
                    QueueEvent::Remove(ticket) => {
                        prop_assert_eq!(queue.remove(tickets[ticket]), tree.remove(&tickets[ticket]));
                    }
                    QueueEvent::RemoveFirst => {
                        queue.remove_first();
                        tree.pop_first();
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert_eq!(queue.first(), tree.iter().next().map(|(ticket, at)| (*ticket, *at)));
                for ticket in &tickets {
                    prop_assert_eq!(queue.contains(*ticket), tree.contains_key(ticket));
                }
                let all: Vec<Ticket> = queue.clone().into_tickets().collect();
                prop_assert_eq!(all, tree.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
