//! What programs tell each other: every message, and the frames and fragments in which they come; what is
//! understood is written and read back the same.
#![no_main]

use std::fmt::Debug;
use std::io::Cursor;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use link::{ActivatorOrder, ByteStream, Message, PodOrder};
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
        which => {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let stream = ByteStream::of(tokio::io::join(Cursor::new(bytes.to_vec()), tokio::io::sink()));
            runtime.block_on(async {
                if which == 4 {
                    let (mut reader, _writer) = link::accept::<ActivatorOrder, ActivatorWord>(stream);
                    while let Ok(Some(_)) = reader.next().await {}
                } else {
                    let (mut reader, _writer) = link::accept::<PodWord, PodOrder>(stream);
                    while let Ok(Some(_)) = reader.next().await {}
                }
            });
        }
    }
});
