//! Compressed heads: what one of us writes the other reads, and what neither wrote both read alike.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;
use protocol::http2::hpack::{CompressionError, Field, HpackDecoder, encode_field};

type Line = (Vec<u8>, Vec<u8>);
type Lines = Vec<Line>;

/// What we make of a block. A field that HTTP does not allow has no text here.
fn ours(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<Option<Line>>, CompressionError> {
    let mut lines = Vec::new();
    let read = decoder.decode(block, |field, _| {
        lines.push(line(&field));
        ControlFlow::Continue(())
    });
    read.map(|()| lines)
}

fn line(field: &Field) -> Option<Line> {
    let pseudo = |name: &str, value: &str| Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    match field {
        Field::Method(method) => pseudo(":method", method.as_str()),
        Field::Scheme(scheme) => pseudo(":scheme", scheme.as_str()),
        Field::Authority(authority) => pseudo(":authority", authority.as_str()),
        Field::Path(path) => pseudo(":path", path.as_str()),
        Field::Status(status) => pseudo(":status", status.as_str()),
        Field::Header(name, value) => Some((name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec())),
        Field::OddPath(path) => Some((b":path".to_vec(), path.to_vec())),
        Field::RefusedTarget(_) | Field::Malformed => None,
    }
}

fn fields() -> impl Strategy<Value = Lines> {
    let name = prop_oneof![
        prop::sample::select(vec!["accept", "cache-control", "cookie", "user-agent", "x-a", "x-b"])
            .prop_map(str::to_owned),
        "[a-z][a-z0-9-]{0,20}",
    ];
    let value = prop_oneof!["[!-~]{0,30}", Just("gzip, deflate".to_owned()), "[!-~]{100,400}"];
    prop::collection::vec((name, value), 0..12).prop_map(|lines| {
        lines.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Its encoder uses the table, so several heads depend on one another.
    #[test]
    fn we_read_what_another_writes(heads in prop::collection::vec(fields(), 1..8)) {
        let (mut encoder, mut decoder) = (fluke_hpack::Encoder::new(), HpackDecoder::default());
        for head in heads {
            let block = encoder.encode(head.iter().map(|(name, value)| (&name[..], &value[..])));
            let expected: Vec<_> = head.into_iter().map(Some).collect();
            prop_assert_eq!(ours(&mut decoder, &block), Ok(expected));
        }
    }

    #[test]
    fn another_reads_what_we_write(heads in prop::collection::vec(fields(), 1..8)) {
        let mut decoder = fluke_hpack::Decoder::new();
        for head in heads {
            let mut block = Vec::new();
            for (name, value) in &head {
                let name = HeaderName::from_bytes(name).expect("a name");
                encode_field(&name, &HeaderValue::from_bytes(value).expect("a value"), &mut block);
            }
            prop_assert_eq!(decoder.decode(&block).expect("legal"), head);
        }
    }

    /// Blocks that no encoder wrote, on tables that grow and shrink.
    #[test]
    fn anything_is_the_same_to_both(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6)) {
        let (mut other, mut decoder) = (fluke_hpack::Decoder::new(), HpackDecoder::default());
        for block in blocks {
            let own = ours(&mut decoder, &block);
            // It panics where a change of the table's size breaks off.
            let theirs = catch_unwind(AssertUnwindSafe(|| other.decode(&block))).ok().and_then(Result::ok);
            let (theirs, own) = match (theirs, own) {
                (Some(theirs), Ok(own)) => (theirs, own),
                // We allow no table beyond 4,096 bytes, and a change of its size at the beginning of a head
                // only (RFC 7541 §4.2); no number needs to be as large as the other allows; and a Huffman
                // code is padded with the beginning of its own end and nothing else (§5.2).
                (Some(_), Err(CompressionError::TableSize | CompressionError::Integer | CompressionError::Huffman))
                | (None, Err(_)) => return Ok(()),
                // It wants a field behind a change of the table's size.
                (None, Ok(own)) if own.is_empty() => return Ok(()),
                (theirs, own) => {
                    prop_assert!(false, "{block:x?}: {own:?} to us, {theirs:?} to the other");
                    return Ok(());
                }
            };
            prop_assert_eq!(theirs.len(), own.len());
            for (theirs, own) in theirs.into_iter().zip(own) {
                if let Some(own) = own {
                    prop_assert_eq!(theirs, own);
                }
            }
        }
    }
}
