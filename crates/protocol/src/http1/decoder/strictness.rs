//! Of chunks and trailers we accept what a strict reader accepts, however they come.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::http1::strict::{self, ChunkedBody, ODD_BYTES, StrictVerdict, check_accepted, pieces, spoil};

/// What we make of a body, and how many bytes of the text it is. `None` if it is not whole; an error if it is
/// none.
fn decode(text: &[u8], sizes: &[usize]) -> Result<Option<(ChunkedBody, usize)>, MalformedMessage> {
    let mut decoder = BodyDecoder::new(BodyFraming::Chunked);
    let mut body = ChunkedBody { data: Vec::new(), trailers: Vec::new() };
    let mut read = 0;
    for piece in pieces(text, sizes) {
        read += piece.len();
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            match decoder.decode(&mut input)? {
                DecodedPiece::Data(data) => body.data.extend_from_slice(&data),
                DecodedPiece::Trailers(trailers) => {
                    let fields =
                        trailers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
                    body.trailers = fields.collect();
                }
                DecodedPiece::End => return Ok(Some((body, read - input.len()))),
                DecodedPiece::More => break,
            }
        }
        if decoder.is_ended() {
            return Ok(Some((body, read - input.len())));
        }
    }
    Ok(None)
}

fn extension() -> impl Strategy<Value = String> {
    let value = prop_oneof![Just(String::new()), Just("=v".to_owned()), Just(" = \"q\\\" ;\t\"".to_owned())];
    let extension = ("[ \t]{0,2};[ \t]{0,2}", "[a-z!#~]{1,3}", value)
        .prop_map(|(semicolon, name, value)| [semicolon, name, value].concat());
    prop::collection::vec(extension, 0..3).prop_map(|extensions| extensions.concat())
}

/// A body as the grammar has it.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (prop::collection::vec(prop::sample::select(ODD_BYTES), 1..20), extension(), "0{0,3}");
    let chunk = chunk.prop_map(|(data, extension, zeros)| {
        let line = format!("{zeros}{:X}{extension}\r\n", data.len());
        [line.as_bytes(), &data, b"\r\n"].concat()
    });
    // Different names, so that a map keeps their order.
    let trailers =
        ("([ \t]{0,2}[a-z:;]{0,5}[ \t]?)?", "[ -~]{0,5}", 0..4_usize).prop_map(|(first, other, count)| {
            let lines = [format!("X-One:{first}\r\n"), format!("two:{other}\r\n"), "3:\r\n".to_owned()];
            lines[..count.min(3)].concat()
        });
    (prop::collection::vec(chunk, 0..4), extension(), trailers, "[a-z\r\n]{0,6}").prop_map(
        |(chunks, extension, trailers, next)| {
            let last = format!("0{extension}\r\n{trailers}\r\n{next}");
            [chunks.concat(), last.into_bytes()].concat()
        },
    )
}

fn changes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), prop::sample::select(ODD_BYTES), any::<u8>()), count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn texts_of_the_grammar_are_read_as_the_strict_reader_reads_them(
        text in body(),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        let ours = decode(&text, &sizes);
        let Ok(Some((body, length))) = ours else { panic!("{:?}: {ours:?}", String::from_utf8_lossy(&text)) };
        prop_assert_eq!(strict::chunked_body(&text), StrictVerdict::Whole(body, length));
    }

    #[test]
    fn accepted_texts_are_accepted_by_the_strict_reader(
        mut text in body(),
        changes in changes(1..4),
        sizes in prop::collection::vec(1..40_usize, 1..6),
    ) {
        spoil(&mut text, &changes);
        let ours = decode(&text, &sizes);
        // However it comes, it is the same.
        prop_assert_eq!(&ours, &decode(&text, &[usize::MAX]));
        if let Ok(Some(accepted)) = ours {
            check_accepted(&text, &accepted, strict::chunked_body(&text));
        }
    }
}
