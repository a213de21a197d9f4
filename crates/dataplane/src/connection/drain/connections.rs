//! Which connections are open, and which of them hold nothing: the one that has rested longest first.
//!
//! A connection begins and ends to rest with every request, so both must cost next to nothing: the resting
//! ones are a list through the slots in which all connections are kept anyway. No timer belongs to a
//! connection; a sweep looks at the oldest.

use std::rc::Rc;

use vocabulary::Timestamp;

use crate::connection::{Connection, Slot};

/// All connections of a server.
#[derive(Debug, Default)]
pub(super) struct OpenConnections {
    slots: Vec<Option<KeptConnection>>,
    free: Vec<Slot>,
    oldest: Option<Slot>,
    newest: Option<Slot>,
}

#[derive(Debug)]
struct KeptConnection {
    connection: Rc<Connection>,
    rest: Option<RestPlace>,
}

/// A place in the list.
#[derive(Clone, Copy, Debug)]
struct RestPlace {
    since: Timestamp,
    older: Option<Slot>,
    newer: Option<Slot>,
}

impl OpenConnections {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<Connection>> {
        self.slots.iter().flatten().map(|kept| &kept.connection)
    }

    pub(super) fn insert(&mut self, connection: Rc<Connection>) -> Slot {
        let kept = Some(KeptConnection { connection, rest: None });
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = kept;
            return slot;
        }
        self.slots.push(kept);
        self.slots.len() - 1
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        // It may go while it rests, and a slot that is used again must not be in the list.
        self.work(slot);
        if self.slots[slot].take().is_some() {
            self.free.push(slot);
        }
    }

    /// Puts a connection at the end of the list of idle ones; `since` is not before that of any other.
    pub(super) fn rest(&mut self, slot: Slot, since: Timestamp) {
        // Those that rest are a list through the slots, in the order in which they began to:
        //
        //     oldest -> newer -> ... -> newest
        //
        // Each request makes its connection leave the list and come back at the end, so both must cost the
        // same however many there are: a heap of ten thousand would be sorted for every request.
        let older = self.newest;
        let Some(kept) = &mut self.slots[slot] else { return };
        if kept.rest.is_some() {
            return;
        }
        kept.rest = Some(RestPlace { since, older, newer: None });
        self.newest = Some(slot);
        match older.and_then(|older| self.rest_of(older)) {
            Some(older) => older.newer = Some(slot),
            None => self.oldest = Some(slot),
        }
    }

    /// Takes a connection out of the list of resting ones, if it is there.
    pub(super) fn work(&mut self, slot: Slot) {
        let Some(rest) = self.slots[slot].as_mut().and_then(|kept| kept.rest.take()) else { return };
        match rest.older.and_then(|older| self.rest_of(older)) {
            Some(older) => older.newer = rest.newer,
            None => self.oldest = rest.newer,
        }
        match rest.newer.and_then(|newer| self.rest_of(newer)) {
            Some(newer) => newer.older = rest.older,
            None => self.newest = rest.older,
        }
    }

    /// Takes the one that has rested longest out of the list, if it has rested since `latest` or longer.
    pub(super) fn take_oldest(&mut self, latest: Timestamp) -> Option<Rc<Connection>> {
        let slot = self.oldest?;
        let kept = self.slots[slot].as_ref()?;
        if kept.rest?.since > latest {
            return None;
        }
        let connection = Rc::clone(&kept.connection);
        self.work(slot);
        Some(connection)
    }

    /// Since when the one rests that has rested longest.
    pub(super) fn oldest_rests_since(&self) -> Option<Timestamp> {
        self.slots[self.oldest?].as_ref()?.rest.map(|rest| rest.since)
    }

    fn rest_of(&mut self, slot: Slot) -> Option<&mut RestPlace> {
        self.slots[slot].as_mut().and_then(|kept| kept.rest.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn connection(number: u16) -> Rc<Connection> {
        Rc::new(Connection::new(([127, 0, 0, 1], number).into()))
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert,
        Remove(usize),
        Rest(usize),
        Work(usize),
        Take,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Insert),
            (0..20_usize).prop_map(Step::Remove),
            (0..20_usize).prop_map(Step::Rest),
            (0..20_usize).prop_map(Step::Work),
            Just(Step::Take),
        ]
    }

    proptest! {
        /// The list against a plain queue of ports.
        #[test]
        fn the_one_that_rested_longest_comes_first(steps in prop::collection::vec(step(), 1..200)) {
            let mut connections = OpenConnections::default();
            let mut open: Vec<(u16, Slot)> = Vec::new();
            let mut resting: Vec<u16> = Vec::new();
            for (number, step) in (0_u16..).zip(steps) {
                let chosen = |at: usize| open.get(at % open.len().max(1)).copied();
                match step {
                    Step::Insert => open.push((number, connections.insert(connection(number)))),
                    Step::Remove(at) => if let Some((port, slot)) = chosen(at) {
                        connections.remove(slot);
                        open.retain(|(other, _)| *other != port);
                        resting.retain(|other| *other != port);
                    },
                    Step::Rest(at) => if let Some((port, slot)) = chosen(at) {
                        connections.rest(slot, Timestamp::from_secs(number.into()));
                        if !resting.contains(&port) {
                            resting.push(port);
                        }
                    },
                    Step::Work(at) => if let Some((port, slot)) = chosen(at) {
                        connections.work(slot);
                        resting.retain(|other| *other != port);
                    },
                    Step::Take => {
                        let taken = connections.take_oldest(Timestamp::MAX).map(|taken| taken.peer().port());
                        let expected = (!resting.is_empty()).then(|| resting.remove(0));
                        prop_assert_eq!(taken, expected);
                    }
                }
                prop_assert_eq!(connections.len(), open.len());
                prop_assert_eq!(connections.iter().count(), open.len());
            }
            while let Some(taken) = connections.take_oldest(Timestamp::MAX) {
                prop_assert_eq!(taken.peer().port(), resting.remove(0));
            }
            prop_assert!(resting.is_empty());
        }
    }

    #[test]
    fn a_connection_that_has_not_rested_long_enough_stays() {
        let mut connections = OpenConnections::default();
        for second in 1..=3 {
            let slot = connections.insert(connection(second));
            connections.rest(slot, Timestamp::from_secs(second.into()));
        }
        let mut taken = || connections.take_oldest(Timestamp::from_secs(2)).map(|taken| taken.peer().port());
        assert_eq!([taken(), taken(), taken()], [Some(1), Some(2), None]);
    }
}
