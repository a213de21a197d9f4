//! What is read goes into one buffer that the whole thread shares: a small piece is copied out of it, a large
//! one takes its part of the buffer along. So a connection that waits holds no buffer.
//!
//! Heads are small pieces that every request has two of, and that are cut into parts. They are copied into
//! blocks that they share: a copy of its own costs each of them the allocation of its bytes and, as soon as
//! the first part of it is taken, another one for the count of its parts.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use protocol::COPIED_BYTES_MAX;
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

/// How many bytes are read from a socket at once.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Less room than this is not worth a read.
const READ_BYTES_MIN: usize = 16 * 1024;

/// The size of a block of heads. A head keeps its block, and so takes no more than a head may take that no
/// budget counts (4 KiB, see `COUNTED_BYTES` of the server).
const BLOCK_BYTES: usize = 4 * 1024;

/// A head that is longer than this has a copy of its own: few would fit into a block.
const BLOCK_HEAD_MAX: usize = 1024;

thread_local! {
    static BUFFER: RefCell<BytesMut> = RefCell::default();
    /// The rest of the block into which the next heads are copied. Once it is used up, it is used again from
    /// its beginning if none of its heads is left, and is left to its heads otherwise.
    static BLOCK: RefCell<BytesMut> = RefCell::default();
}

/// The next bytes where they lie, for a reader that looks at them at once; none at the end.
pub(crate) fn poll_read_in_place(
    stream: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
) -> Poll<io::Result<BytesMut>> {
    BUFFER.with_borrow_mut(|buffer| {
        make_room(buffer);
        ready!(poll_read_buf(Pin::new(stream), context, buffer))?;
        Poll::Ready(Ok(buffer.split()))
    })
}

/// The next bytes, at most `limit`; none at the end.
pub(crate) fn poll_read(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    poll_read_copied(stream, limit, Bytes::copy_from_slice, context)
}

/// As [`poll_read`], where a head is awaited. Not for bodies: pieces that wait for a reader for long would
/// keep far more memory than is counted for them.
pub(crate) fn poll_read_head(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    poll_read_copied(stream, limit, copied_into_block, context)
}

fn poll_read_copied(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
    copy: impl FnOnce(&[u8]) -> Bytes,
    context: &mut Context<'_>,
) -> Poll<io::Result<Bytes>> {
    BUFFER.with_borrow_mut(|buffer| {
        make_room(buffer);
        let length = ready!(poll_read_buf(Pin::new(stream), context, &mut (&mut *buffer).limit(limit)))?;
        let bytes = if length <= COPIED_BYTES_MAX {
            let bytes = copy(&buffer[..]);
            buffer.clear();
            bytes
        } else {
            buffer.split().freeze()
        };
        Poll::Ready(Ok(bytes))
    })
}

fn copied_into_block(head: &[u8]) -> Bytes {
    if !(1..=BLOCK_HEAD_MAX).contains(&head.len()) {
        return Bytes::copy_from_slice(head);
    }
    BLOCK.with_borrow_mut(|block| {
        if block.capacity() < head.len() {
            block.reserve(BLOCK_BYTES);
        }
        block.extend_from_slice(head);
        block.split().freeze()
    })
}

fn make_room(buffer: &mut BytesMut) {
    if buffer.capacity() < READ_BYTES_MIN {
        buffer.reserve(READ_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn read_head(text: &[u8]) -> Bytes {
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(head)) = poll_read_head(&mut &*text, READ_BYTES, &mut context) else {
            panic!("a text can always be read")
        };
        head
    }

    #[test]
    fn heads_that_share_blocks_stay_as_they_came() {
        let texts: Vec<Vec<u8>> =
            (0..=u8::MAX).map(|number| vec![number; usize::from(number) * 7 % 1500]).collect();
        let heads: Vec<Bytes> = texts.iter().map(|text| read_head(text)).collect();
        for (text, head) in texts.iter().zip(&heads) {
            assert_eq!(head, text);
        }
    }

    #[test]
    fn a_block_is_used_again_when_its_heads_are_gone() {
        let addresses: Vec<usize> = (0..100).map(|_| read_head(&[b'a'; 300]).as_ptr().addr()).collect();
        let first = addresses.iter().min().expect("there are some");
        assert!(addresses.iter().all(|address| address - first < BLOCK_BYTES), "{addresses:?}");
    }

    #[test]
    fn a_block_that_a_head_is_left_of_is_not_overwritten() {
        let kept = read_head(&[b'k'; 200]);
        for _ in 0..100 {
            assert_eq!(read_head(&[b'a'; 900]).len(), 900);
        }
        assert_eq!(kept[..], [b'k'; 200]);
    }
}
