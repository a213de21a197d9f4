//! The streams of a session, and what the heads and small pieces of all of them take.

use std::rc::Rc;

use super::memory::large_head_memory;
use super::small_pieces::SmallPieces;
use super::stream::Stream;

/// A head that takes no more than this is not worth breaking its stream off.
const HEAD_BYTES_SMALL: usize = 8 * 1024;

/// The open streams of a session and those that wait to be read, by their numbers. There are few, and new
/// ones have the highest numbers.
#[derive(Debug, Default)]
pub(super) struct Streams {
    list: Vec<Rc<Stream>>,
    /// How many of them are over, and only wait to be read.
    over: usize,
    head_bytes: usize,
    /// Of these, those of large heads.
    large_head_bytes: usize,
    /// What their small pieces may cost the peer.
    small_overhead: usize,
}

impl Streams {
    /// How many streams are open, as the peer counts them.
    pub(super) fn len(&self) -> usize {
        self.list.len() - self.over
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes that a stream is open no more, though its reader still has to take what came.
    pub(super) fn note_over(&mut self, id: u32) {
        if let Some(stream) = self.find(id)
            && !stream.is_over.replace(true)
        {
            // Once, though either half may be the one that ends last and both may say so.
            self.over += 1;
        }
    }

    /// How much the large ones of their heads take.
    pub(super) fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// How much of that is of large heads.
    pub(super) fn large_head_bytes(&self) -> usize {
        self.large_head_bytes
    }

    /// One of them holds a head that takes so much memory.
    pub(super) fn hold_head(&mut self, stream: &Stream, bytes: usize) {
        if self.find(stream.id).is_some() {
            stream.head_bytes.set(stream.head_bytes.get() + bytes);
            self.head_bytes += bytes;
        }
    }

    /// A head was taken, or is wanted no more. Of a stream that is none of them nothing counts.
    pub(super) fn release_head(&mut self, stream: &Stream, bytes: usize) {
        if self.find(stream.id).is_some() {
            stream.head_bytes.set(stream.head_bytes.get() - bytes);
            self.head_bytes -= bytes;
        }
    }

    /// How much the small pieces that were sent on them may cost the peer.
    pub(super) fn small_overhead(&self) -> usize {
        self.small_overhead
    }

    /// Notes the small pieces of a stream that is one of them.
    pub(super) fn note_small(&mut self, stream: &Stream, small: SmallPieces) {
        let before = stream.small_pieces.replace(small).overhead();
        self.small_overhead = self.small_overhead.saturating_sub(before) + small.overhead();
    }

    pub(super) fn find(&self, id: u32) -> Option<&Rc<Stream>> {
        // In order without sorting: numbers only grow (RFC 9113 §5.1.1), and `open` adds at the end.
        let at = self.list.binary_search_by_key(&id, |stream| stream.id).ok()?;
        self.list.get(at)
    }

    /// Adds one with a higher number than all others.
    pub(super) fn open(&mut self, stream: Rc<Stream>) {
        self.head_bytes += stream.head_bytes.get();
        let large = large_head_memory(stream.head_bytes.get());
        stream.large_head_bytes.set(large);
        self.large_head_bytes += large;
        self.list.push(stream);
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Rc<Stream>> {
        let at = self.list.binary_search_by_key(&id, |stream| stream.id).ok()?;
        let stream = self.list.remove(at);
        self.head_bytes -= stream.head_bytes.take();
        self.large_head_bytes -= stream.large_head_bytes.take();
        self.small_overhead -= stream.small_pieces.take().overhead();
        self.over -= usize::from(stream.is_over.get());
        Some(stream)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<Stream>> {
        self.list.iter()
    }

    /// Of those that hold something, the one that was not read for the longest time; the oldest of those that
    /// were never read.
    pub(super) fn least_recently_read(&self) -> Option<u32> {
        // One that holds nothing gives no memory back when it is broken off.
        let holds = |stream: &&Rc<Stream>| {
            stream.head_bytes.get() > HEAD_BYTES_SMALL || !stream.state.borrow().receiving.data.is_empty()
        };
        let holding = self.list.iter().filter(holds);
        holding.min_by_key(|stream| stream.state.borrow().receiving.read_at).map(|stream| stream.id)
    }

    /// Takes all those above a number out.
    pub(super) fn take_above(&mut self, id: u32) -> Vec<Rc<Stream>> {
        let taken = self.list.split_off(self.list.partition_point(|stream| stream.id <= id));
        self.head_bytes -= taken.iter().map(|stream| stream.head_bytes.take()).sum::<usize>();
        self.large_head_bytes -= taken.iter().map(|stream| stream.large_head_bytes.take()).sum::<usize>();
        self.small_overhead -=
            taken.iter().map(|stream| stream.small_pieces.take().overhead()).sum::<usize>();
        self.over -= taken.iter().filter(|stream| stream.is_over.get()).count();
        taken
    }
}
