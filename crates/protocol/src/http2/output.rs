//! What is to be written on a connection.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Poll, ready};

use bytes::{Buf, Bytes};

use super::memory::{head_memory, large_head_memory};

/// Copying this much costs less than handing over a further piece.
const COPIED_BYTES_MAX: usize = 2 * 1024;

/// How many pieces are handed over at once.
const PIECES_MAX: usize = 32;

/// As much room as a new tail has: what most connections write in a turn. One that grew to that from nothing
/// would be moved five times.
const TAIL_BYTES: usize = 512;

/// A tail that has grown beyond this is not kept.
const SPARE_BYTES_MAX: usize = 4 * 1024;

/// How many tails are kept. Connections write in turns, so that a few serve many.
const SPARE_MAX: usize = 64;

thread_local! {
    /// Tails that were written out, for connections that write next.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Frames in the order in which they go out. Small ones are joined; a large piece of a body is passed on as
/// it is.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Pieces that go out before the tail, in this order.
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
    /// Small frames that go out behind the queue.
    tail: Vec<u8>,
    /// How much of the tail is gone.
    tail_written: usize,
    /// How many bytes have gone out.
    written: u64,
    /// Large heads that wait, in their order.
    heads: VecDeque<WaitingHead>,
    head_memory: usize,
}

/// A large head that is not yet written out.
#[derive(Debug)]
struct WaitingHead {
    /// Where it ends, in bytes from the beginning of the connection.
    end: u64,
    memory: usize,
}

impl Output {
    /// How many bytes wait to be written.
    pub(super) fn len(&self) -> usize {
        self.queued_bytes + self.tail.len() - self.tail_written
    }

    /// Where small frames are written to.
    pub(super) fn frames(&mut self) -> &mut Vec<u8> {
        if self.tail.capacity() == 0 {
            let spare = SPARE.with_borrow_mut(Vec::pop);
            self.tail = spare.unwrap_or_else(|| Vec::with_capacity(TAIL_BYTES));
        }
        &mut self.tail
    }

    /// Counts a head that was written last to [`Output::frames`], for as long as it waits.
    pub(super) fn note_head(&mut self, memory: usize) {
        let end = self.written + self.len() as u64;
        self.heads.push_back(WaitingHead { end, memory });
        self.head_memory += memory;
    }

    /// A head was written to [`Output::frames`], which had so many bytes before. A large head ends a piece: a
    /// buffer of many of these would be copied, and held twice, each time it grows.
    pub(super) fn end_head(&mut self, bytes_before: usize) {
        if large_head_memory(head_memory(self.tail.len() - bytes_before, 0)) > 0 {
            self.tail.shrink_to_fit();
            self.close_tail();
        }
    }

    /// How much memory the large heads take that wait.
    pub(super) fn head_memory(&self) -> usize {
        self.head_memory
    }

    /// Adds a piece of a body.
    pub(super) fn push(&mut self, data: Bytes) {
        if data.len() <= COPIED_BYTES_MAX {
            self.frames().extend_from_slice(&data);
            return;
        }
        self.close_tail();
        self.queued_bytes += data.len();
        self.queue.push_back(data);
    }

    /// Moves the tail to the end of the queue.
    fn close_tail(&mut self) {
        let mut tail = Bytes::from(std::mem::take(&mut self.tail));
        tail.advance(self.tail_written);
        self.tail_written = 0;
        self.queued_bytes += tail.len();
        self.queue.push_back(tail);
    }

    /// Forgets all that waits, because the peer reads no more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Writes until nothing is left; `write` takes some of the pieces that it is shown, and says how much.
    pub(super) fn poll_write(
        &mut self,
        mut write: impl FnMut(&[IoSlice<'_>]) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<()>> {
        while self.len() > 0 {
            let tail = &self.tail[self.tail_written..];
            let written = if self.queue.is_empty() {
                ready!(write(&[IoSlice::new(tail)]))?
            } else {
                let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
                let all = self.queue.iter().map(|piece| &piece[..]).chain([tail]);
                let mut count = 0;
                for (slot, piece) in pieces.iter_mut().zip(all) {
                    *slot = IoSlice::new(piece);
                    count += 1;
                }
                ready!(write(&pieces[..count]))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, mut written: usize) {
        self.written += written as u64;
        while self.heads.front().is_some_and(|head| head.end <= self.written)
            && let Some(head) = self.heads.pop_front()
        {
            self.head_memory -= head.memory;
        }
        while let Some(first) = self.queue.front_mut() {
            let of_first = written.min(first.len());
            first.advance(of_first);
            self.queued_bytes -= of_first;
            written -= of_first;
            if !first.is_empty() {
                return;
            }
            self.queue.pop_front();
        }
        self.tail_written += written;
        if self.tail_written == self.tail.len() {
            // Not kept here: a connection that waits holds no buffer.
            recycle(std::mem::take(&mut self.tail));
            self.tail_written = 0;
        }
    }
}

/// Keeps a tail that was written out.
fn recycle(mut tail: Vec<u8>) {
    if !(1..=SPARE_BYTES_MAX).contains(&tail.capacity()) {
        return;
    }
    tail.clear();
    // The thread may be about to end, and have no spares any more.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(tail);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most so many bytes at once, and nothing every third time.
    struct SlowPeer {
        got: Vec<u8>,
        at_once: usize,
        turns: usize,
    }

    impl SlowPeer {
        fn poll(&mut self, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
            self.turns += 1;
            if self.turns.is_multiple_of(3) {
                return Poll::Pending;
            }
            let taken: Vec<u8> =
                pieces.iter().flat_map(|piece| piece.iter().copied()).take(self.at_once).collect();
            self.got.extend(&taken);
            Poll::Ready(Ok(taken.len()))
        }
    }

    #[test]
    fn order_is_kept_whatever_the_sizes() {
        for at_once in [7_777, 100_000, usize::MAX] {
            let mut peer = SlowPeer { got: Vec::new(), at_once, turns: 0 };
            let mut output = Output::default();
            let mut expected = Vec::new();
            for round in 0..30_u8 {
                for length in [9, 12, 5000, 100_000, 3] {
                    let data = vec![round; length];
                    expected.extend_from_slice(&data);
                    if length < 10 {
                        output.frames().extend_from_slice(&data);
                    } else {
                        output.push(data.into());
                    }
                }
                let _ = output.poll_write(|pieces| peer.poll(pieces));
            }
            while output.poll_write(|pieces| peer.poll(pieces)).is_pending() {}
            assert_eq!(output.len(), 0);
            assert!(peer.got == expected, "something was lost or moved");
        }
    }

    #[test]
    fn a_tail_that_was_written_serves_the_next_connection_from_its_beginning() {
        let (mut first, mut second) = (Output::default(), Output::default());
        first.push(Bytes::from_static(b"first"));
        let memory = first.tail.as_ptr();
        let _ = first.poll_write(|pieces| Poll::Ready(Ok(pieces[0].len())));
        assert_eq!((first.len(), first.tail.capacity()), (0, 0), "a connection that waits holds none");
        second.push(Bytes::from_static(b"second"));
        assert_eq!((&second.tail[..], second.tail.as_ptr()), (&b"second"[..], memory));
        first.push(Bytes::from_static(b"third"));
        assert_eq!((&first.tail[..], &second.tail[..]), (&b"third"[..], &b"second"[..]));
    }

    #[test]
    fn a_large_head_that_waits_is_a_piece_without_spare_room() {
        let mut output = Output::default();
        for (length, pieces) in [(20_000, 1), (100, 1), (20_000, 2)] {
            let bytes_before = output.frames().len();
            output.frames().extend(std::iter::repeat_n(b'h', length));
            output.end_head(bytes_before);
            assert_eq!(output.queue.len(), pieces);
        }
        assert_eq!((output.len(), output.tail.capacity()), (40_100, 0));
    }
}
