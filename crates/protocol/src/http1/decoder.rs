//! The body of a message, out of the bytes of its connection.

mod chunked;
mod piece;
#[cfg(test)]
mod strictness;

use bytes::Bytes;

use super::MalformedMessage;
use super::framing::BodyFraming;
use chunked::ChunkedState;
use piece::take;

pub use piece::DecodedPiece;

/// Where in a body we are.
#[derive(Debug)]
pub struct BodyDecoder(BodyPlace);

#[derive(Debug)]
enum BodyPlace {
    /// So many bytes are to come.
    Length(u64),
    Chunked(ChunkedState),
    UntilClose,
    Ended,
    /// The input is no body. Every later call gets the same error: nothing behind it is the next message.
    Broken(MalformedMessage),
}

impl BodyDecoder {
    /// At the beginning of a body that is framed like this.
    pub fn new(framing: BodyFraming) -> Self {
        Self(match framing {
            BodyFraming::Length(0) => BodyPlace::Ended,
            BodyFraming::Length(length) => BodyPlace::Length(length),
            BodyFraming::Chunked => BodyPlace::Chunked(ChunkedState::BEGIN),
            BodyFraming::UntilClose => BodyPlace::UntilClose,
        })
    }

    /// Whether the body is over.
    pub fn is_ended(&self) -> bool {
        matches!(self.0, BodyPlace::Ended)
    }

    /// How many bytes are to come, if that is known.
    pub fn left(&self) -> Option<u64> {
        match &self.0 {
            BodyPlace::Length(left) => Some(*left),
            BodyPlace::Ended => Some(0),
            BodyPlace::Chunked(_) | BodyPlace::UntilClose | BodyPlace::Broken(_) => None,
        }
    }

    /// The connection ended. Returns whether the body may end like that.
    pub fn close(&mut self) -> bool {
        let is_legal = matches!(self.0, BodyPlace::UntilClose | BodyPlace::Ended);
        self.0 = BodyPlace::Ended;
        is_legal
    }

    /// Takes what it can from the beginning of `input`.
    pub fn decode(&mut self, input: &mut Bytes) -> Result<DecodedPiece, MalformedMessage> {
        match &mut self.0 {
            BodyPlace::Ended => Ok(DecodedPiece::End),
            BodyPlace::Broken(why) => Err(*why),
            _ if input.is_empty() => Ok(DecodedPiece::More),
            BodyPlace::Length(left) => {
                let data = take(input, left);
                if *left == 0 {
                    self.0 = BodyPlace::Ended;
                }
                Ok(DecodedPiece::Data(data))
            }
            BodyPlace::UntilClose => Ok(DecodedPiece::Data(std::mem::take(input))),
            BodyPlace::Chunked(chunked) => {
                let decoded = chunked.decode(input);
                match &decoded {
                    Ok(DecodedPiece::End | DecodedPiece::Trailers(_)) => self.0 = BodyPlace::Ended,
                    Ok(DecodedPiece::Data(_) | DecodedPiece::More) => {}
                    Err(why) => self.0 = BodyPlace::Broken(*why),
                }
                decoded
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    /// Decodes `text` in pieces: the body, its trailers, and what was left over. `None` if it is not over.
    fn decode(
        framing: BodyFraming,
        text: &[u8],
        piece: usize,
    ) -> Result<Option<(Vec<u8>, HeaderMap, usize)>, MalformedMessage> {
        let mut decoder = BodyDecoder::new(framing);
        let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
        let mut read = 0;
        for bytes in text.chunks(piece) {
            read += bytes.len();
            let mut input = Bytes::copy_from_slice(bytes);
            loop {
                match decoder.decode(&mut input)? {
                    DecodedPiece::Data(data) => body.extend_from_slice(&data),
                    DecodedPiece::Trailers(found) => trailers = found,
                    DecodedPiece::End => return Ok(Some((body, trailers, text.len() - read + input.len()))),
                    DecodedPiece::More => break,
                }
            }
        }
        Ok(decoder.is_ended().then_some((body, trailers, 0)))
    }

    #[test]
    fn chunks_are_joined_however_they_are_read() {
        let text = b"4\r\nWiki\r\n006;a=\"b\"\r\npedia \r\nE \r\nin \r\n\r\nchunks.\r\n0\r\n\r\nnext";
        for piece in 1..=text.len() {
            let (body, trailers, left) =
                decode(BodyFraming::Chunked, text, piece).expect("legal").expect("whole");
            assert_eq!(body, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!((trailers.len(), left), (0, 4), "in pieces of {piece}");
        }
    }

    #[test]
    fn trailers_are_read_however_they_come() {
        let text = b"1\r\nx\r\n0\r\ngrpc-status: 0\r\nA:\tb\r\n\r\n";
        for piece in 1..=text.len() {
            let (body, trailers, _) =
                decode(BodyFraming::Chunked, text, piece).expect("legal").expect("whole");
            assert_eq!(body, b"x");
            assert_eq!(
                (&trailers["grpc-status"], &trailers["a"]),
                (&"0".parse().unwrap(), &"b".parse().unwrap())
            );
        }
    }

    #[test]
    fn texts_that_two_readers_could_divide_differently_are_refused() {
        let long_line = format!("1;{}\r\nx", "a".repeat(20_000));
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1\nx",
            "1;a\nx",
            "1\rx",
            "1\r\nxy",
            "1\r\nx\n",
            "10000000000000000\r\n",
            ";a\r\n",
            "1 2\r\nx",
            "1 junk\r\nx",
            "1;\r\nx",
            "1;a;\r\nx",
            "1;a=\r\nx",
            "1;a b\r\nx",
            "1;a=b c\r\nx",
            "1;a=\"b\r\nx",
            "1;a=\"b\"c\r\nx",
            "1;a=\"\\\r\nx",
            "1;a=\"\x01\"\r\nx",
            "1;a\0\r\nx",
            "1;(\r\nx",
            "1;a \r\nx",
            &long_line,
        ] {
            for piece in [1, 7, text.len()] {
                assert_eq!(
                    decode(BodyFraming::Chunked, text.as_bytes(), piece),
                    Err(MalformedMessage::Chunk),
                    "{text:.40}"
                );
            }
        }
    }

    #[test]
    fn extensions_are_those_of_the_grammar() {
        for extension in [
            "",
            "  \t",
            ";a",
            " ; a",
            ";a=b",
            "; a = b ;c",
            ";a=\"\"",
            ";a=\"b\\\"; c\t\u{e9}\" ;d=\"\"",
            ";!#=~",
        ] {
            let text = format!("1{extension}\r\nx\r\n0{extension}\r\n\r\n");
            for piece in 1..=text.len() {
                let (body, _, left) = decode(BodyFraming::Chunked, text.as_bytes(), piece)
                    .unwrap_or_else(|why| panic!("{text:?}: {why}"))
                    .expect("whole");
                assert_eq!((&body[..], left), (&b"x"[..], 0), "{text:?}");
            }
        }
    }

    #[test]
    fn trailers_are_strict_lines_of_a_bounded_length() {
        let long = format!("a: {}\r\n\r\n", "a".repeat(20_000));
        let many = format!("{}\r\n", "a: b\r\n".repeat(65));
        for trailers in [
            "no colon\r\n\r\n",
            "a: b\n\r\n",
            "a: b\r\n\n",
            "\n",
            "a: b\n\n",
            "a: b\nc: d\r\n\r\n",
            "a: b\rc: d\r\n\r\n",
            "a: b\r\n c\r\n\r\n",
            " a: b\r\n\r\n",
            "a : b\r\n\r\n",
            ": b\r\n\r\n",
            "a: \0\r\n\r\n",
            "\r\r\n\r\n",
            &long,
            &many,
        ] {
            let text = format!("1\r\nx\r\n0\r\n{trailers}");
            for piece in [1, 7, text.len()] {
                let read = decode(BodyFraming::Chunked, text.as_bytes(), piece);
                assert_eq!(read, Err(MalformedMessage::Trailers), "{trailers:.40?} in pieces of {piece}");
            }
        }
        let longest = format!("0\r\na: {}\r\n\r\n", "b".repeat(16 * 1024 - "a: \r\n\r\n".len()));
        assert!(decode(BodyFraming::Chunked, longest.as_bytes(), 1000).expect("legal").is_some());
        let most = format!("0\r\n{}\r\n", "a: b\r\n".repeat(64));
        let (_, trailers, _) =
            decode(BodyFraming::Chunked, most.as_bytes(), 1000).expect("legal").expect("whole");
        assert_eq!(trailers.len(), 64);
    }

    #[test]
    fn a_broken_body_stays_broken() {
        for text in ["0\r\n: b\r\n\r\n\r\n", "x\r\n0\r\n\r\n"] {
            let mut decoder = BodyDecoder::new(BodyFraming::Chunked);
            let mut input = Bytes::copy_from_slice(text.as_bytes());
            let first = decoder.decode(&mut input).expect_err("malformed");
            input = Bytes::from_static(b"0\r\n\r\n");
            assert_eq!(decoder.decode(&mut input), Err(first));
            assert!(!decoder.is_ended());
        }
    }

    #[test]
    fn a_length_ends_where_it_says_and_not_before() {
        for piece in 1..=8 {
            let (body, _, left) =
                decode(BodyFraming::Length(5), b"12345678", piece).expect("legal").expect("whole");
            assert_eq!((&body[..], left), (&b"12345"[..], 3));
        }
        assert_eq!(decode(BodyFraming::Length(5), b"1234", 2), Ok(None));
        let mut decoder = BodyDecoder::new(BodyFraming::Length(5));
        assert!(!decoder.close(), "it broke off");
        assert!(BodyDecoder::new(BodyFraming::UntilClose).close());
    }
}
