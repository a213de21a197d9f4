//! Heads of requests: the same in any pieces, and what we take a strict reader takes too.
#![no_main]

/// RFC 9112 to the letter, as the tests of `protocol` use it; it shares nothing with what it judges.
#[path = "../../../crates/protocol/src/http1/strict.rs"]
#[expect(dead_code, reason = "each target uses a part of it")]
mod strict;

use bytes::Bytes;
use ebb_fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use protocol::ambiguity;
use protocol::http1::{HeadLimits, NextMessage, RequestReader, UnreadableRequest};

/// The first request, and what is left behind it.
fn read(pieces: &[&[u8]]) -> Result<Option<(String, usize)>, UnreadableRequest> {
    let mut reader = RequestReader::new(HeadLimits::OUTER);
    let mut seen = 0;
    for piece in pieces {
        seen += piece.len();
        match reader.take(Bytes::copy_from_slice(piece))? {
            None => {}
            Some((NextMessage::Preface, _)) => return Ok(None),
            Some((NextMessage::Request, rest)) => {
                let head = reader.take_head().expect("it was announced");
                if ambiguity(&head.request).is_some() {
                    return Ok(None);
                }
                let request = format!("{:?} {:?}", head.request, head.framing);
                return Ok(Some((request, seen - rest.len())));
            }
        }
    }
    Ok(None)
}

fuzz_target!(|input: &[u8]| {
    let (text, pieces) = pieces(input);
    // What cannot become a request may be refused later when it comes in pieces: it is not looked at again
    // for each.
    let whole = read(&[text]).ok().flatten();
    assert_eq!(whole, read(&pieces).ok().flatten());
    let Some((request, length)) = whole else { return };
    match strict::request_head(text) {
        strict::StrictVerdict::Whole(_, strict) => assert_eq!(strict, length, "{request}"),
        strict::StrictVerdict::Partial => panic!("it is not whole: {request}"),
        strict::StrictVerdict::Refused(why) => {
            let is_meant = strict::DIFFERENCES.iter().any(|(difference, _)| *difference == why);
            assert!(is_meant, "it has {why}: {request}");
        }
    }
});
