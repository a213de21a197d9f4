//! The headers that a proxy adds to the lines of a head.
//!
//! Nearly every head that passes gets one at least, on its way to the next hop. The list of one that was
//! written is kept for the next head: so no head pays for the memory of its own.

use std::cell::RefCell;

use http::header::{HeaderName, HeaderValue};

/// As much room as a new list has: an activator adds seven headers at most, a queue-proxy one.
const ROOM: usize = 8;

/// How many lists are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Empty lists with room.
    static SPARE: RefCell<Vec<Vec<(HeaderName, HeaderValue)>>> = const { RefCell::new(Vec::new()) };
}

/// Headers that were added, each name once, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct AddedHeaders(Vec<(HeaderName, HeaderValue)>);

impl AddedHeaders {
    /// All of them.
    pub(super) fn list(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0
    }

    /// Sets a header, in the place of its former value if it has one.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, former)) => *former = value,
            None => {
                if self.0.capacity() == 0 {
                    self.0 = spare_list();
                }
                self.0.push((name, value));
            }
        }
    }
}

impl Clone for AddedHeaders {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        if !self.0.is_empty() {
            copy.0 = spare_list();
            copy.0.extend_from_slice(&self.0);
        }
        copy
    }
}

impl Drop for AddedHeaders {
    fn drop(&mut self) {
        if self.0.capacity() == 0 {
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
            let mut copies: Vec<(AddedHeaders, Vec<(HeaderName, HeaderValue)>)> = Vec::new();
            for (added, is_copied) in heads {
                let mut headers = AddedHeaders::default();
                let mut expected: Vec<(HeaderName, HeaderValue)> = Vec::new();
                for (name, value) in added.into_iter().map(|(name, value)| header(name, value)) {
                    headers.set(name.clone(), value.clone());
                    match expected.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, former)) => *former = value,
                        None => expected.push((name, value)),
                    }
                }
                prop_assert_eq!(headers.list(), &expected[..]);
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
        let mut first = AddedHeaders::default();
        first.set(name.clone(), value.clone());
        let memory = first.list().as_ptr();
        drop(first);
        let mut second = AddedHeaders::default();
        second.set(name, value);
        assert_eq!(second.list().as_ptr(), memory);
    }
}
