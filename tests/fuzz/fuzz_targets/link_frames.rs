//! What programs tell each other: every message, and the frames and fragments in which they come; what is
//! understood is written and read back the same.
#![no_main]

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use ebb_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use link::{ActivatorOrder, ByteStream, Message, PodOrder};
use tokio::io::{AsyncRead, ReadBuf};
use vocabulary::{ActivatorWord, PodWord};

fn check<M: Message + Debug + PartialEq>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let mut written = BytesMut::new();
    message.encode(&mut written);
    assert_eq!(written.len(), message.encoded_len());
    assert_eq!(M::decode(&written).as_ref(), Ok(&message), "{message:?}");
}

fuzz_target!(|input: &[u8]| {
    let Some((which, bytes)) = input.split_first() else { return };
    match which % 6 {
        0 => check::<PodWord>(bytes),
        1 => check::<PodOrder>(bytes),
        2 => check::<ActivatorWord>(bytes),
        3 => check::<ActivatorOrder>(bytes),
        4 => check_frames::<ActivatorOrder, ActivatorWord>(bytes),
        _ => check_frames::<PodWord, PodOrder>(bytes),
    }
});

/// The same messages, and the same end, in whatever pieces the frames come.
fn check_frames<In: Message + Debug + PartialEq, Out: Message>(input: &[u8]) {
    let (text, pieces) = pieces(input);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let whole = runtime.block_on(read::<In, Out>(&[text]));
    let divided = runtime.block_on(read::<In, Out>(&pieces));
    assert_eq!(whole, divided);
}

async fn read<In: Message, Out: Message>(pieces: &[&[u8]]) -> (Vec<In>, String) {
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    let stream = ByteStream::of(tokio::io::join(PiecewiseInput(pieces), tokio::io::sink()));
    let (mut reader, _writer) = link::accept::<In, Out>(stream);
    let mut messages = Vec::new();
    loop {
        match reader.next().await {
            Ok(Some(message)) => messages.push(message),
            end => return (messages, format!("{:?}", end.err())),
        }
    }
}

/// Gives one piece for each read.
struct PiecewiseInput(VecDeque<Vec<u8>>);

impl AsyncRead for PiecewiseInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(out.remaining()));
            out.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}
