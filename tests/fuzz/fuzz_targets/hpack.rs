//! Compressed heads: several on one table; what is understood is written and read back the same.
#![no_main]

use std::ops::ControlFlow;

use ebb_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use protocol::http2::hpack::{HpackDecoder, Field, encode_field};

fn decode(decoder: &mut HpackDecoder, block: &[u8], most: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let decoded = decoder.decode(block, |field, bytes| {
        assert!(bytes >= 32, "each field counts for its overhead");
        fields.push(field);
        if fields.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    decoded.is_ok().then_some(fields)
}

fuzz_target!(|input: &[u8]| {
    let (_, blocks) = pieces(input);
    let (mut decoder, mut hasty) = (HpackDecoder::default(), HpackDecoder::default());
    for block in blocks {
        let fields = decode(&mut decoder, block, usize::MAX);
        // Who wants only the first field keeps the same table.
        let first = decode(&mut hasty, block, 1);
        let Some(fields) = fields else { return };
        let first = first.expect("what can be read can be stepped over");
        assert_eq!(first.first(), fields.first());
        let mut written = Vec::new();
        let mut expected = Vec::new();
        for field in fields {
            if let Field::Header(name, value) = &field {
                encode_field(name, value, &mut written);
                expected.push(field);
            }
        }
        assert_eq!(decode(&mut HpackDecoder::default(), &written, usize::MAX), Some(expected));
    }
});
