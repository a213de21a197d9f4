//! Headers one behind the other: those that a proxy adds to the lines of a head, or all of a head that came
//! without lines.
//!
//! Nearly every head that passes gets one at least, on its way to the next hop. The list of one that was
//! written is kept for the next head: so no head pays for the memory of its own.

use std::cell::RefCell;

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// As much room as a new list has: an activator adds eight headers at most, a queue-proxy one, and few heads
/// have more.
const ROOM: usize = 8;

/// A list with room for more than this is not kept.
const SPARE_ROOM_MAX: usize = 32;

/// How many lists are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Empty lists that have room.
    static SPARE: RefCell<Vec<Vec<(HeaderName, HeaderValue)>>> = const { RefCell::new(Vec::new()) };
}

/// Headers, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct HeaderList(Vec<(HeaderName, HeaderValue)>);

impl HeaderList {
    /// All headers in their order.
    pub(super) fn list(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0
    }

    /// The first value of a header.
    pub(super) fn first(&self, name: &HeaderName) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes())
    }

    /// Sets a header, in the place of its former value if it has one.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, former)) => *former = value,
            None => self.push(name, value),
        }
    }

    /// Adds a header at the end.
    pub(super) fn push(&mut self, name: HeaderName, value: HeaderValue) {
        if self.0.capacity() == 0 {
            self.0 = spare_list();
        }
        self.0.push((name, value));
    }

    /// All of them, moved to a map.
    pub(super) fn move_to(mut self, map: &mut HeaderMap) {
        for (name, value) in self.0.drain(..) {
            map.append(name, value);
        }
    }
}

impl Clone for HeaderList {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        if !self.0.is_empty() {
            copy.0 = spare_list();
            copy.0.extend_from_slice(&self.0);
        }
        copy
    }
}

impl Drop for HeaderList {
    fn drop(&mut self) {
        if !(1..=SPARE_ROOM_MAX).contains(&self.0.capacity()) {
            return;
        }
        let mut list = std::mem::take(&mut self.0);
        list.clear();
        // The thread may be about to end, and have no spares any more.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(list);
            }
        });
    }
}

/// An empty list with room.
fn spare_list() -> Vec<(HeaderName, HeaderValue)> {
    SPARE.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(ROOM))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(name: u8, value: u8) -> (HeaderName, HeaderValue) {
        let name = HeaderName::try_from(format!("x-{name}")).expect("a token");
        (name, HeaderValue::from(u16::from(value)))
    }

    proptest! {
        /// A list that another head had before begins empty, and a copy goes its own way.
        #[test]
        fn each_head_has_the_headers_that_were_added_to_it_and_no_others(
            heads in prop::collection::vec(
                (prop::collection::vec((0..12_u8, any::<u8>()), 0..20), any::<bool>()),
                0..12,
            ),
        ) {
            let mut copies: Vec<(HeaderList, Vec<(HeaderName, HeaderValue)>)> = Vec::new();
            for (added, is_copied) in heads {
                let mut headers = HeaderList::default();
                let mut expected: Vec<(HeaderName, HeaderValue)> = Vec::new();
                for (name, value) in added.into_iter().map(|(name, value)| header(name, value)) {
                    headers.set(name.clone(), value.clone());
                    match expected.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, former)) => *former = value,
                        None => expected.push((name, value)),
                    }
                }
                prop_assert_eq!(headers.list(), &expected[..]);
                for (name, value) in &expected {
                    prop_assert_eq!(headers.first(name), Some(value.as_bytes()));
                }
                if is_copied {
                    let copy = headers.clone();
                    let (name, value) = header(200, 0);
                    headers.set(name, value);
                    copies.push((copy, expected));
                }
                drop(headers);
                for (copy, expected) in &copies {
                    prop_assert_eq!(copy.list(), &expected[..]);
                }
            }
        }
    }

    #[test]
    fn a_list_serves_one_head_after_the_other() {
        let (name, value) = header(1, 1);
        let mut first = HeaderList::default();
        first.set(name.clone(), value.clone());
        let memory = first.list().as_ptr();
        drop(first);
        let mut second = HeaderList::default();
        second.set(name, value);
        assert_eq!(second.list().as_ptr(), memory);
    }
}
