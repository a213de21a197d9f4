//! Bodies in chunks with their trailers: the same in any pieces, and what we take a strict reader takes too.
#![no_main]

/// RFC 9112 to the letter, as the tests of `protocol` use it; it shares nothing with what it judges.
#[path = "../../../crates/protocol/src/http1/strict.rs"]
#[expect(dead_code, reason = "each target uses a part of it")]
mod strict;

use bytes::Bytes;
use ebb_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use protocol::http1::{DecodedPiece, BodyDecoder, BodyFraming, MalformedMessage};

/// The body, how many trailers it has, and how long it is on the wire.
type Body = (Vec<u8>, usize, usize);

fn read(pieces: &[&[u8]]) -> Result<Option<Body>, MalformedMessage> {
    let mut decoder = BodyDecoder::new(BodyFraming::Chunked);
    let (mut body, mut seen) = (Vec::new(), 0);
    for piece in pieces {
        seen += piece.len();
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            match decoder.decode(&mut input)? {
                DecodedPiece::Data(data) => body.extend_from_slice(&data),
                DecodedPiece::Trailers(trailers) => {
                    return Ok(Some((body, trailers.len(), seen - input.len())));
                }
                DecodedPiece::End => return Ok(Some((body, 0, seen - input.len()))),
                DecodedPiece::More => break,
            }
        }
    }
    Ok(None)
}

fuzz_target!(|input: &[u8]| {
    let (text, pieces) = pieces(input);
    let whole = read(&[text]);
    assert_eq!(whole, read(&pieces));
    let Ok(Some(ours)) = whole else { return };
    match strict::chunked_body(text) {
        strict::StrictVerdict::Whole(strict, length) => {
            assert_eq!(ours, (strict.data, strict.trailers.len(), length));
        }
        strict::StrictVerdict::Partial => panic!("it is not whole: {ours:?}"),
        strict::StrictVerdict::Refused(why) => {
            let is_meant = strict::DIFFERENCES.iter().any(|(difference, _)| *difference == why);
            assert!(is_meant, "it has {why}: {ours:?}");
        }
    }
});
