//! Where the parts of a head are while its message is on its way.
//!
//! A message passes through some twenty functions and futures, and each of them moves it. The parts of its
//! head are several hundred bytes, so they stay in a box. The box of a message that is over is kept for the
//! next one: so no message pays for the memory of its own.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// How many boxes of a kind are kept. Requests end and begin in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

/// Parts that come in boxes of which each thread keeps some.
pub(crate) trait SpareParts: Default + 'static {
    /// Looks at or changes the spare boxes of this thread. `None` if the thread is about to end, and has none
    /// any more.
    fn with_spares<Answer>(use_spares: impl FnOnce(&SpareBoxes<Self>) -> Answer) -> Option<Answer>;
}

/// The spare boxes of a thread, all of them with the parts of an empty message.
pub(crate) type SpareBoxes<Parts> = RefCell<Vec<PartsBox<Parts>>>;

/// The parts of a head, in a box that returns to the spares of its thread.
///
/// The box is there until it is dropped.
#[derive(Debug)]
pub(crate) struct PartsBox<Parts: SpareParts>(Option<Box<Parts>>);

impl<Parts: SpareParts> PartsBox<Parts> {
    /// Puts parts into a box.
    pub(crate) fn new(parts: Parts) -> Self {
        match Parts::with_spares(|spares| spares.borrow_mut().pop()).flatten() {
            Some(mut spare) => {
                *spare = parts;
                spare
            }
            None => Self(Some(Box::new(parts))),
        }
    }

    /// Takes the parts out of their box.
    pub(crate) fn into_parts(mut self) -> Parts {
        std::mem::take(&mut *self)
    }
}

impl<Parts: SpareParts> Deref for PartsBox<Parts> {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        self.0.as_deref().expect("the box is there until it is dropped")
    }
}

impl<Parts: SpareParts> DerefMut for PartsBox<Parts> {
    fn deref_mut(&mut self) -> &mut Parts {
        self.0.as_deref_mut().expect("the box is there until it is dropped")
    }
}

impl<Parts: SpareParts> Drop for PartsBox<Parts> {
    fn drop(&mut self) {
        let Some(mut parts) = self.0.take() else { return };
        // Before the spares are borrowed: the parts may hold something whose end takes or leaves a box.
        *parts = Parts::default();
        // Where the spares are gone or enough, the box goes as well.
        Parts::with_spares(move |spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < SPARE_MAX {
                spares.push(Self(Some(parts)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with something that lives on the heap.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct HeadWords {
        words: Vec<String>,
    }

    thread_local! {
        static SPARES: SpareBoxes<HeadWords> = const { RefCell::new(Vec::new()) };
    }

    impl SpareParts for HeadWords {
        fn with_spares<Answer>(use_spares: impl FnOnce(&SpareBoxes<Self>) -> Answer) -> Option<Answer> {
            SPARES.try_with(use_spares).ok()
        }
    }

    fn head(number: usize) -> HeadWords {
        HeadWords { words: vec![number.to_string()] }
    }

    fn spare_count() -> usize {
        SPARES.with_borrow(Vec::len)
    }

    #[test]
    fn a_box_serves_one_head_after_the_other_and_keeps_nothing_of_it() {
        let first = PartsBox::new(head(1));
        let (memory, others) = (std::ptr::from_ref(&*first), spare_count());
        drop(first);
        SPARES.with_borrow(|spares| assert!(spares.iter().all(|spare| **spare == HeadWords::default())));
        let mut second = PartsBox::new(head(2));
        assert_eq!((std::ptr::from_ref(&*second), spare_count()), (memory, others));
        second.words.push("more".to_owned());
        assert_eq!(second.into_parts().words, ["2", "more"]);
        assert_eq!(spare_count(), others + 1, "the box stays where the parts go");
    }

    #[test]
    fn heads_that_are_there_at_the_same_time_have_boxes_of_their_own() {
        let filled = || (0..2 * SPARE_MAX).map(|number| PartsBox::new(head(number)));
        let mut boxes: Vec<_> = filled().collect();
        for round in 0..3 {
            for (number, parts) in boxes.iter().enumerate() {
                assert_eq!(**parts, head(number), "round {round}");
            }
            boxes.clear();
            assert_eq!(spare_count(), SPARE_MAX, "more are not kept");
            boxes.extend(filled());
        }
    }
}
