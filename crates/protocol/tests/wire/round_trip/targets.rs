//! A target is written in both protocols as it was read.

use std::ops::ControlFlow;

use bytes::Bytes;
use proptest::prelude::*;
use protocol::http1::{BodySize, HeadLimits, NextMessage, RequestReader, write_request};
use protocol::http2::hpack::{Field, HpackDecoder, encode_request};

/// Everything that may stand in a target.
fn target() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        (b'!'..=b'~').prop_filter("it begins what a client keeps to itself", |byte| *byte != b'#'),
        0x80..=u8::MAX,
        prop::sample::select(b"<>\"`%?/".to_vec()),
    ];
    prop::collection::vec(byte, 0..40).prop_map(|bytes| [b"/", &bytes[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_target_goes_on_as_it_came(target in target(), piece in 1..30_usize) {
        let text = [b"GET ", &target[..], b" HTTP/1.1\r\nHost: h\r\n\r\n"].concat();
        let mut reader = RequestReader::new(HeadLimits::OUTER);
        let mut read = None;
        for bytes in text.chunks(piece) {
            read = reader.take(Bytes::copy_from_slice(bytes)).expect("legal");
        }
        let (next, rest) = read.expect("whole");
        prop_assert_eq!((next, rest.len()), (NextMessage::Request, 0));
        let request = reader.take_head().expect("it was announced").request;
        let mut line = Vec::new();
        write_request(&request, BodySize::Empty, &mut line);
        prop_assert!(line.starts_with(&text[..target.len() + 15]), "{}", line.escape_ascii());
        let mut block = Vec::new();
        encode_request(&request, &mut block);
        let mut path = None;
        let decoded = HpackDecoder::default().decode(&block, |field, _| {
            match field {
                Field::Path(text) => path = Some(text.as_str().as_bytes().to_vec()),
                Field::OddPath(bytes) => path = Some(bytes.to_vec()),
                Field::RefusedTarget(problem) => panic!("{problem}"),
                Field::Method(_) | Field::Scheme(_) | Field::Authority(_) | Field::Status(_) | Field::Header(..) | Field::Malformed => {}
            }
            ControlFlow::Continue(())
        });
        prop_assert_eq!((decoded, path), (Ok(()), Some(target)));
    }
}
