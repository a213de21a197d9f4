//! The literals that a peer repeats in each of its heads.
//!
//! A peer that keeps no table, as our own hops do not, writes the same letters in every head: the host, the
//! path, what it is. To read them again costs an allocation and a look at each letter every time. So the
//! first literals of a head are compared with those that stood in their places before, and what is the same
//! means the same. Only literals that mean the same at any time are kept here: those whose name is written
//! out, or stands in the static table.

use super::Field;

/// How many literals of a head are compared: as many as a head between our own hops has, and some more.
const LITERALS_MAX: usize = 12;

/// A literal that is written with more bytes than this is not kept. With its field it takes about three times
/// as much, so that all of one connection take less than its table may.
const WRITTEN_BYTES_MAX: usize = 96;

/// After so many heads that had another one in its place a literal gives way. To keep each new one would cost
/// a peer's every head what is saved for the others.
const MISSES_MAX: u8 = 16;

/// The literals of the heads of one connection, by their places among those that can be kept.
#[derive(Debug, Default)]
pub(super) struct RepeatedLiterals {
    literals: Vec<RepeatedLiteral>,
    /// The place of the next one in the present head.
    next: usize,
}

/// A literal that stood in a head before.
#[derive(Debug)]
pub(super) struct RepeatedLiteral {
    /// All bytes of the literal.
    pub(super) written: Box<[u8]>,
    pub(super) field: Field,
    /// How many bytes the field counts for.
    pub(super) bytes: usize,
    misses: u8,
}

impl RepeatedLiterals {
    /// The next head begins here.
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// The literal with which `input` begins, if it stood in the same place before.
    pub(super) fn repeated(&mut self, input: &[u8]) -> Option<&RepeatedLiteral> {
        let literal = self.literals.get_mut(self.next)?;
        if !input.starts_with(&literal.written) {
            return None;
        }
        literal.misses = 0;
        self.next += 1;
        Some(literal)
    }

    /// Keeps a literal that was read, or counts that the one in its place has missed.
    pub(super) fn note(&mut self, written: &[u8], field: &Field, bytes: usize) {
        if written.len() > WRITTEN_BYTES_MAX {
            return;
        }
        let place = self.next;
        self.next += 1;
        let literal = || RepeatedLiteral { written: written.into(), field: field.clone(), bytes, misses: 0 };
        match self.literals.get_mut(place) {
            Some(former) if former.misses == MISSES_MAX => *former = literal(),
            Some(former) => former.misses += 1,
            None if place < LITERALS_MAX => self.literals.push(literal()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a head with these literals repeats each of them.
    fn head(repeats: &mut RepeatedLiterals, literals: &[&[u8]]) -> Vec<bool> {
        repeats.begin();
        let read = literals.iter().map(|written| {
            let input = [*written, &b"what follows"[..]].concat();
            let is_repeated = repeats.repeated(&input).is_some_and(|known| *known.written == **written);
            if !is_repeated {
                repeats.note(written, &Field::Malformed, 1);
            }
            is_repeated
        });
        read.collect()
    }

    #[test]
    fn a_literal_that_stands_in_its_place_again_is_known_and_gives_way_in_time() {
        let mut repeats = RepeatedLiterals::default();
        assert_eq!(head(&mut repeats, &[b"a", b"b"]), [false, false]);
        assert_eq!(head(&mut repeats, &[b"a", b"b"]), [true, true]);
        assert_eq!(head(&mut repeats, &[b"b", b"a", b"c"]), [false, false, false]);
        assert_eq!(head(&mut repeats, &[b"a", b"b", b"c"]), [true, true, true]);
        let other = (0..40).position(|_| head(&mut repeats, &[b"x", b"b"]) == [true, true]);
        assert_eq!(other, Some(usize::from(MISSES_MAX) + 1));
    }

    #[test]
    fn few_and_short_ones_are_kept() {
        let mut repeats = RepeatedLiterals::default();
        let long = [b'l'; WRITTEN_BYTES_MAX + 1];
        let many: Vec<&[u8]> = [&long[..]].into_iter().chain([&b"a"[..]; LITERALS_MAX + 3]).collect();
        for kept in [0, LITERALS_MAX] {
            let repeated = head(&mut repeats, &many);
            assert_eq!(repeated.iter().filter(|is_repeated| **is_repeated).count(), kept);
            assert!(!repeated[0], "it is too long");
        }
        assert_eq!(repeats.literals.len(), LITERALS_MAX);
    }
}
