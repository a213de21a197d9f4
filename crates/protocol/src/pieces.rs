//! The pieces of a body that are kept for a while: to be read, or to be sent again.
//!
//! A piece costs its bytes and what keeps track of it, which is more than the bytes if there are few. So
//! small pieces that wait are joined: however a peer cuts a body, it takes about as much memory as the body
//! has bytes. A piece that is there when its reader asks is handed on as it came.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Pieces up to this size are copied out of the buffer that they were read into. A larger one keeps the whole
/// buffer alive for as long as it lives itself.
pub const COPIED_BYTES_MAX: usize = 8 * 1024;

/// When the joined pieces are as long as this, the next ones are joined anew: as much as a frame has, because
/// a longer piece would be divided to be sent on.
const JOINED_BYTES: usize = 16 * 1024;

/// Pieces of a body, in their order.
#[derive(Debug, Default)]
pub struct BodyPieces {
    /// The first one, which is all that most bodies have; empty if there is none.
    first: Bytes,
    /// The pieces behind the first.
    pieces: VecDeque<Bytes>,
    /// Small pieces behind the others, joined as they came.
    joined: BytesMut,
    bytes: usize,
}

impl BodyPieces {
    /// How many bytes they have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes in it.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether there is at most one piece.
    pub fn is_one_piece(&self) -> bool {
        let others = self.pieces.len() + usize::from(!self.joined.is_empty());
        usize::from(!self.first.is_empty()) + others <= 1
    }

    /// Adds a piece that is not empty.
    pub fn push(&mut self, piece: Bytes) {
        let is_first = self.is_empty();
        self.bytes += piece.len();
        if is_first {
            self.first = piece;
            return;
        }
        if piece.len() > COPIED_BYTES_MAX {
            self.end_joined();
            self.pieces.push_back(piece);
            return;
        }
        if self.joined.len() + piece.len() > JOINED_BYTES {
            self.end_joined();
        }
        self.joined.extend_from_slice(&piece);
    }

    /// Takes the next piece out, in the order in which the pieces came.
    pub fn pop(&mut self) -> Option<Bytes> {
        let piece = if self.first.is_empty() {
            if self.pieces.is_empty() {
                self.end_joined();
            }
            self.pieces.pop_front()?
        } else {
            std::mem::take(&mut self.first)
        };
        self.bytes -= piece.len();
        Some(piece)
    }

    /// How many there are. What comes from now on is not joined to them.
    pub fn settle(&mut self) -> usize {
        self.end_joined();
        usize::from(!self.first.is_empty()) + self.pieces.len()
    }

    /// One of those that are settled, by its number from 0; it stays.
    pub fn get(&self, number: usize) -> Option<&Bytes> {
        match number.checked_sub(usize::from(!self.first.is_empty())) {
            Some(behind) => self.pieces.get(behind),
            None => Some(&self.first),
        }
    }

    /// Forgets everything, and says how many bytes that was.
    pub fn clear(&mut self) -> usize {
        if self.is_empty() { 0 } else { std::mem::take(self).bytes }
    }

    fn end_joined(&mut self) {
        if !self.joined.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.joined).freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(data: &mut BodyPieces) -> Vec<Bytes> {
        std::iter::from_fn(|| data.pop()).collect()
    }

    #[test]
    fn a_piece_that_is_read_at_once_is_handed_on_as_it_came() {
        let mut data = BodyPieces::default();
        for length in [1, 8 * 1024, 16 * 1024] {
            let piece = Bytes::from(vec![b'x'; length]);
            data.push(piece.clone());
            assert_eq!(data.bytes(), length);
            assert_eq!(data.pop().expect("it is there").as_ptr(), piece.as_ptr(), "not copied");
            assert!(data.is_empty());
        }
    }

    #[test]
    fn small_pieces_that_wait_are_few() {
        let mut data = BodyPieces::default();
        let letters: Vec<u8> = (0..64 * 1024_u32).map(|at| at.to_le_bytes()[0]).collect();
        for letter in &letters {
            data.push(Bytes::copy_from_slice(&[*letter]));
        }
        assert_eq!(data.bytes(), letters.len());
        let pieces = all(&mut data);
        assert!(pieces.len() <= 6, "{} pieces", pieces.len());
        assert!(pieces.concat() == letters, "in their order");
    }

    #[test]
    fn settled_pieces_stay_as_they_are() {
        let mut data = BodyPieces::default();
        for piece in ["one", "two", "three"] {
            data.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!(data.settle(), 2, "those that waited are joined");
        data.push(Bytes::from_static(b"four"));
        assert_eq!(data.get(1).map(|piece| &piece[..]), Some(&b"twothree"[..]));
        assert_eq!(data.get(2), None);
        assert_eq!(data.settle(), 3);
        assert_eq!(all(&mut data), ["one", "twothree", "four"]);
    }

    #[test]
    fn order_is_kept_while_pieces_are_taken() {
        let mut data = BodyPieces::default();
        let (mut expected, mut taken): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        for (letter, length) in (0_u8..).zip([1, 20_000, 3, 9_000, 4, 5, 8_192, 2].repeat(5)) {
            expected.extend(std::iter::repeat_n(letter, length));
            data.push(vec![letter; length].into());
            if letter % 3 > 0 {
                taken.extend(data.pop().expect("one was added"));
            }
            let pieces = data.settle();
            let kept: Vec<u8> =
                (0..pieces).flat_map(|number| data.get(number).expect("it is there")).copied().collect();
            assert!([&taken[..], &kept].concat() == expected, "after {letter}");
            assert_eq!((kept.len(), data.get(pieces)), (data.bytes(), None));
        }
    }

    #[test]
    fn order_is_kept_whatever_the_sizes() {
        let mut data = BodyPieces::default();
        let mut expected = Vec::new();
        for (letter, length) in (0..).zip([1, 3, 20_000, 5, 9_000, 8_192, 8_192, 2].repeat(3)) {
            let piece = vec![letter; length];
            expected.extend_from_slice(&piece);
            data.push(piece.into());
        }
        assert!(!data.is_one_piece());
        assert!(all(&mut data).concat() == expected);
        data.push(Bytes::from_static(b"x"));
        assert_eq!((data.is_one_piece(), data.clear(), data.bytes()), (true, 1, 0));
    }
}
