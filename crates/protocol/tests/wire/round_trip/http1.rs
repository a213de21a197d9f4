//! HTTP/1.1: heads, lengths, chunks and trailers, one message after the other on a connection.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body::Frame;
use proptest::prelude::*;
use protocol::http1::{
    BodyDecoder, BodyFraming, BodySize, DecodedPiece, HeadLimits, MalformedMessage, NextMessage,
    OutgoingMessage, RequestReader, ResponseForm, ResponseReader, write_request, write_response,
};
use protocol::{Request, Response};

use super::messages::{Message, lines, message, sizes};

/// What stands behind a message must be left alone.
const BEHIND: &[u8] = b"GET /behind HTTP/1.1\r\n\r\n";

/// Everything that is written of a message, in pieces of these sizes.
fn written(head: Vec<u8>, framing: BodyFraming, message: &Message, sizes: &[usize]) -> Vec<u8> {
    let mut outgoing = OutgoingMessage::new(head, framing);
    let mut frames = message.body.iter().cloned().map(Frame::data).collect::<Vec<_>>();
    if !message.trailers.is_empty() {
        frames.push(Frame::trailers(message.trailers.clone()));
    }
    let mut frames = frames.into_iter();
    let mut out = Vec::new();
    for size in sizes.iter().cycle() {
        while outgoing.wants_body() {
            outgoing.take(frames.next()).expect("as long as was said");
        }
        if outgoing.is_done() {
            return out;
        }
        let there = outgoing.pieces().concat();
        let length = there.len().min(*size);
        out.extend_from_slice(&there[..length]);
        outgoing.advance(length);
    }
    unreachable!("sizes are repeated for ever")
}

/// The body that is read in pieces of these sizes, its trailers, and what is left.
fn read(framing: BodyFraming, rest: &[u8], sizes: &[usize]) -> (Vec<u8>, HeaderMap, Vec<u8>) {
    let mut decoder = BodyDecoder::new(framing);
    let (mut body, mut trailers, mut rest) = (Vec::new(), HeaderMap::new(), rest);
    let mut sizes = sizes.iter().cycle();
    let mut input = Bytes::new();
    loop {
        match decoder.decode(&mut input).expect("we wrote it") {
            DecodedPiece::Data(data) => body.extend_from_slice(&data),
            DecodedPiece::Trailers(found) => trailers = found,
            DecodedPiece::End => return (body, trailers, [&input[..], rest].concat()),
            DecodedPiece::More if rest.is_empty() => {
                assert!(decoder.close(), "a message ends before its end");
                return (body, trailers, Vec::new());
            }
            DecodedPiece::More => {
                let (piece, after) = rest.split_at(rest.len().min(*sizes.next().expect("for ever")));
                (input, rest) = (Bytes::copy_from_slice(piece), after);
            }
        }
    }
}

fn date() -> [u8; 29] {
    *b"Sun, 06 Nov 1994 08:49:37 GMT"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_request_comes_back(message in message(), write in sizes(), sizes in sizes()) {
        let mut request = Request::from(http::Request::post("/some/path?query").body(()).expect("legal"));
        *request.headers_mut() = message.headers.clone();
        request.headers_mut().insert("host", "h".parse().expect("legal"));
        let size = match (message.body.is_empty(), message.has_length) {
            (true, _) => BodySize::Empty,
            (false, true) => BodySize::Exact(message.length()),
            (false, false) => BodySize::Unknown,
        };
        let mut head = Vec::new();
        let framing = write_request(&request, size, &mut head);
        let mut text = written(head, framing, &message, &write);
        text.extend_from_slice(BEHIND);

        let mut reader = RequestReader::new(HeadLimits::OUTER);
        let (mut at, mut found) = (0_usize, None);
        for size in sizes.iter().cycle() {
            let piece = &text[at..text.len().min(at.saturating_add(*size))];
            at += piece.len();
            if let Some((NextMessage::Request, rest)) = reader.take(Bytes::copy_from_slice(piece)).expect("legal") {
                found = Some([&rest[..], &text[at..]].concat());
                break;
            }
        }
        let head = reader.take_head().expect("it was read");
        prop_assert_eq!((head.request.method(), head.request.uri().to_string()), (&Method::POST, "/some/path?query".to_owned()));
        prop_assert_eq!(lines(head.request.headers()), lines(&message.headers));
        let (body, trailers, left) = read(head.framing, &found.expect("it was read"), &sizes);
        prop_assert!(body == message.bytes(), "{} bytes became {}", message.length(), body.len());
        prop_assert_eq!(lines(&trailers), lines(&message.trailers));
        prop_assert_eq!(left, BEHIND);
    }

    #[test]
    fn a_response_comes_back(
        message in message(),
        status in prop::sample::select(vec![200_u16, 201, 404, 503]),
        is_http10 in any::<bool>(),
        write in sizes(),
        sizes in sizes(),
    ) {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("legal");
        *response.headers_mut() = message.headers.clone();
        let (parts, ()) = response.into_parts();
        let exact = (message.has_length || message.body.is_empty()).then(|| message.length());
        let form = ResponseForm { is_http10, is_head: false, keeps_alive: true };
        let mut head = Vec::new();
        let announced = write_response(&parts, exact, form, date, &mut head);
        let mut text = written(head, announced.framing, &message, &write);
        let ends_with_connection = announced.framing == BodyFraming::UntilClose;
        if !ends_with_connection {
            text.extend_from_slice(BEHIND);
        }

        let mut reader = ResponseReader::new(HeadLimits::OUTER);
        let (mut at, mut found) = (0_usize, None);
        for size in sizes.iter().cycle() {
            let piece = &text[at..text.len().min(at.saturating_add(*size))];
            at += piece.len();
            reader.put(Bytes::copy_from_slice(piece));
            found = reader.take_head(&Method::POST, || {}).expect("legal");
            if found.is_some() {
                break;
            }
        }
        let head = found.expect("it was read");
        prop_assert_eq!(head.response.status().as_u16(), status);
        prop_assert_eq!(head.is_kept_alive, !announced.is_last);
        prop_assert_eq!(lines(head.response.headers()), lines(&message.headers));
        let rest = [&reader.into_rest()[..], &text[at..]].concat();
        let (body, trailers, left) = read(head.framing, &rest, &sizes);
        prop_assert!(body == message.bytes(), "{} bytes became {}", message.length(), body.len());
        // What has no chunks has no place for them.
        let sent = if announced.framing == BodyFraming::Chunked { lines(&message.trailers) } else { lines(&HeaderMap::new()) };
        prop_assert_eq!(lines(&trailers), sent);
        prop_assert_eq!(left, if ends_with_connection { &[][..] } else { BEHIND });
    }
}

/// A response of an app with as many headers as there may be is passed on with more of them, which our next
/// proxy must take.
#[test]
fn the_largest_head_with_our_additions_is_read_by_the_next_hop() {
    for exact in [None, Some(3)] {
        let (mut parts, ()) = Response::new(()).into_parts();
        for number in 0..HeadLimits::OUTER.headers {
            let name = format!("x-{number}").parse::<HeaderName>().expect("legal");
            parts.fields.map_mut().insert(name, HeaderValue::from_static("a"));
        }
        let form = ResponseForm { is_http10: false, is_head: false, keeps_alive: false };
        let mut head = Vec::new();
        write_response(&parts, exact, form, date, &mut head);
        let read = |limits| {
            let mut reader = ResponseReader::new(limits);
            reader.put(Bytes::copy_from_slice(&head));
            reader.take_head(&Method::GET, || {})
        };
        assert_eq!(read(HeadLimits::OUTER).err(), Some(MalformedMessage::HeadTooLarge(HeadLimits::OUTER)));
        let again = read(HeadLimits::HOP).expect("legal").expect("whole");
        assert!(
            parts.fields.map().iter().all(|(name, value)| again.response.headers().get(name) == Some(value))
        );
    }
}
