//! What the fuzz targets share: how an input is divided, and what is whole of what we write.

use std::sync::LazyLock;
use std::task::Poll;

use protocol::http2::{MemoryBudget, Session};

/// 512 KiB for all connections of a session's target, of which there is one at a time.
pub static MEMORY: LazyLock<&MemoryBudget> = LazyLock::new(|| MemoryBudget::of_process(Some(1 << 20)));

/// What a session is fed with: the input as it is, or frames made of it, in pieces.
pub fn session_pieces(input: &[u8]) -> Vec<Vec<u8>> {
    let Some((how, input)) = input.split_first() else { return Vec::new() };
    let (text, divided) = pieces(input);
    if how % 2 == 0 {
        return divided.into_iter().map(<[u8]>::to_vec).collect();
    }
    frames(text).chunks(usize::from(*how)).map(<[u8]>::to_vec).collect()
}

/// Takes everything that a session has to write.
pub fn take_output(session: &Session, out: &mut Vec<u8>) {
    let _ = session.end_turn(|pieces| {
        let before = out.len();
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
        Poll::Ready(Ok(out.len() - before))
    });
}

/// Divides an input: its first bytes say in which pieces the rest comes.
pub fn pieces(input: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (sizes, text) = input.split_at(input.len().min(4));
    let mut pieces = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        // Mostly short ones, where states meet; 0 stands for all.
        let size = if *size == 0 { rest.len() } else { usize::from(*size) };
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    (text, pieces)
}

/// Turns anything into whole frames of HTTP/2, three bytes of the input for each: random bytes are hardly
/// ever one.
fn frames(mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [kind, flags, stream, length, rest @ ..] = input {
        let length = usize::from(*length).min(rest.len());
        let (payload, after) = rest.split_at(length);
        let length = u32::try_from(payload.len()).expect("a byte").to_be_bytes();
        out.extend_from_slice(&length[1..]);
        out.extend_from_slice(&[kind % 11, *flags, 0, 0, 0, *stream]);
        out.extend_from_slice(payload);
        input = after;
    }
    out
}

/// Whether these bytes are whole frames, none longer than every peer must accept.
pub fn check_frames(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let [high, middle, low, ..] = bytes else { panic!("half of a frame's head was written") };
        let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
        assert!(length <= 16_384, "a frame of {length} bytes was written");
        bytes = bytes.get(9 + length..).expect("half of a frame was written");
    }
}
