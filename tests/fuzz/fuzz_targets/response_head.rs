//! Heads of responses, with what comes before them: the same in any pieces, and what is written of one is
//! read back.
#![no_main]

use bytes::Bytes;
use ebb_fuzz::pieces;
use http::Method;
use libfuzzer_sys::fuzz_target;
use protocol::http1::{
    BodyFraming, HeadLimits, MalformedMessage, ResponseForm, ResponseHead, ResponseReader, write_response,
};

fn read(
    pieces: &[&[u8]],
    method: &Method,
    limits: HeadLimits,
) -> Result<Option<(ResponseHead, u32)>, MalformedMessage> {
    let mut reader = ResponseReader::new(limits);
    let mut continues = 0;
    for piece in pieces {
        reader.put(Bytes::copy_from_slice(piece));
        if let Some(head) = reader.take_head(method, || continues += 1)? {
            return Ok(Some((head, continues)));
        }
    }
    Ok(None)
}

fuzz_target!(|input: &[u8]| {
    let Some((first, input)) = input.split_first() else { return };
    let method = if first % 2 == 0 { Method::GET } else { Method::HEAD };
    let (text, pieces) = pieces(input);
    let whole = read(&[text], &method, HeadLimits::OUTER);
    let divided = read(&pieces, &method, HeadLimits::OUTER);
    let shown = |read: &Result<Option<(ResponseHead, u32)>, MalformedMessage>| {
        read.as_ref().ok().and_then(|read| read.as_ref().map(|read| format!("{read:?}")))
    };
    assert_eq!(shown(&whole), shown(&divided));
    let Ok(Some((head, _))) = whole else { return };
    if head.response.status().is_informational() {
        return;
    }
    let exact = if let BodyFraming::Length(length) = head.framing { Some(length) } else { None };
    let form = ResponseForm { is_http10: false, is_head: method == Method::HEAD, keeps_alive: true };
    let (status, framing) = (head.response.status(), head.framing);
    let (parts, ()) = head.response.into_parts();
    let mut out = Vec::new();
    let announced = write_response(&parts, exact, form, || *b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
    // As our next proxy reads it: a head that was as large as it may be has grown by what we add.
    let again = read(&[&out[..]], &method, HeadLimits::HOP).expect("what we write we read").expect("whole").0;
    assert_eq!(again.response.status(), status);
    assert_eq!(again.framing, announced.framing, "{}", String::from_utf8_lossy(&out));
    if framing != BodyFraming::UntilClose {
        assert_eq!(again.framing, framing, "{}", String::from_utf8_lossy(&out));
    }
});
