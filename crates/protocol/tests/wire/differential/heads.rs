//! Requests of HTTP/1.1, heads and bodies, as hyper's server (and below it httparse) reads them.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Debug;
use std::rc::Rc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use protocol::http1::{BodyDecoder, DecodedPiece, HeadLimits, NextMessage, RequestReader};
use protocol::{RawTarget, ambiguity, path_and_query};
use tokio::io::AsyncWriteExt;

/// A message about which we differ, and why.
pub(crate) struct Difference {
    /// What we say of it.
    pub(crate) ours: &'static str,
    pub(crate) example: &'static str,
    pub(crate) why: &'static str,
}

impl Difference {
    /// That each of these is one: we refuse its example in these words, and hyper takes it.
    pub(crate) fn assert_each<Ours: Debug + PartialEq, Hypers: Debug>(
        differences: &[Self],
        tell: impl Fn(&[u8]) -> (Result<Ours, String>, Option<Hypers>),
    ) {
        let mut wrong = Vec::new();
        for Self { ours: expected, example, why } in differences {
            let found = tell(example.as_bytes());
            if found.0 != Err((*expected).to_owned()) || found.1.is_none() {
                wrong.push(format!("{example:?} ({why}): {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// What we refuse although hyper takes it. Most of it is a message that another server divides otherwise.
const STRICTER: &[Difference] = &[
    Difference {
        ours: "client sent unsupported CONNECT request",
        example: "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
        why: "nobody here makes tunnels; hyper leaves that to its service",
    },
    Difference {
        ours: "the only transfer encoding is \"chunked\", once",
        example: "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        why: "nobody undoes another coding, so nobody would know what the body is; hyper takes any that ends in chunks",
    },
    Difference {
        ours: "more than one Content-Length",
        example: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        why: "the same twice is one to some and a mistake to others",
    },
    Difference {
        ours: "more than one Host",
        example: "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        why: "some take the first, some the last",
    },
    Difference {
        ours: "both Content-Length and Transfer-Encoding",
        example: "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        why: "whoever looked at the length before us found another end; hyper drops the length silently",
    },
    Difference {
        ours: "no Host",
        example: "GET / HTTP/1.1\r\n\r\n",
        why: "RFC 9112 §3.2 asks for one; hyper leaves that to its service",
    },
    Difference {
        ours: "a Host that is not the name of a host, perhaps with a port",
        example: "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        why: "hyper does not look at it",
    },
    Difference {
        ours: "the target of the request is none that its method can have: it begins with a slash or a scheme, and names no user",
        example: "GET h:80 HTTP/1.1\r\nHost: h\r\n\r\n",
        why: "hyper takes whatever is a URI, for any method",
    },
    Difference {
        ours: "'#' stands at place 3 of the target of the request, where only visible characters other than '#' may stand",
        example: "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n",
        why: "hyper drops what follows a `#`",
    },
    Difference {
        ours: "',' stands at place 2 of the host in the target of the request, where none may stand",
        example: "GET http://h,i/ HTTP/1.1\r\nHost: h\r\n\r\n",
        why: "some take the first host, some the last; hyper takes both for one",
    },
    Difference {
        ours: "a line of the head does not end with carriage return and line feed",
        example: "GET / HTTP/1.1\nHost: h\n\n",
        why: "half of a line's end is one to some only",
    },
    Difference {
        ours: "its chunks are not divided as HTTP/1.1 says",
        example: "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;(\r\nx\r\n0\r\n\r\n",
        why: "hyper takes anything for an extension",
    },
];

/// A refusal without the byte and the place that it names.
fn kind(refusal: &str) -> &str {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let place = refusal.split_once(" stands at place ");
    place.map_or(refusal, |(_, behind)| behind.trim_start_matches(is_digit))
}

/// The request with plain letters in the place of what a target of ours may have and one of hyper's may not
/// (`http::Uri` cannot hold them); `None` if there is nothing of that kind.
fn with_plain_target(text: &[u8]) -> Option<Vec<u8>> {
    let begin = text.len() - text.trim_ascii_start().len();
    let end = begin + text[begin..].windows(2).position(|two| two == b"\r\n")?;
    let mut plain = text.to_vec();
    for byte in &mut plain[begin..end] {
        if *byte >= 0x80 || b"\"<>`".contains(byte) {
            *byte = b'x';
        }
    }
    (plain != text).then_some(plain)
}

/// A request as both tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    method: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: usize,
}

impl Told {
    fn of(request: &protocol::Request<()>, body: Vec<u8>, trailers: usize) -> Self {
        let fields = request.headers().iter();
        // Maps keep the values of one name in order, and nothing else.
        let mut fields: Vec<_> =
            fields.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        let method = request.method().to_string();
        // Scheme and host of the encoded form are the target's own.
        let target = match request.extensions().get::<RawTarget>() {
            Some(_) => String::from_utf8_lossy(path_and_query(request)).into_owned(),
            None => request.uri().to_string(),
        };
        Self { method, target, fields, body, trailers }
    }
}

/// What we make of the first request: nothing while it is not whole, or why it is none.
fn ours(text: &[u8]) -> Result<Option<Told>, String> {
    let mut reader = RequestReader::new(HeadLimits::OUTER);
    let taken = reader.take(Bytes::copy_from_slice(text)).map_err(|why| why.to_string())?;
    let Some((next, mut rest)) = taken else { return Ok(None) };
    assert_eq!(next, NextMessage::Request, "nobody here begins like HTTP/2");
    let head = reader.take_head().expect("it was announced");
    if let Some(why) = ambiguity(&head.request) {
        return Err(why.to_string());
    }
    let mut decoder = BodyDecoder::new(head.framing);
    let mut body = Vec::new();
    loop {
        match decoder.decode(&mut rest).map_err(|why| why.to_string())? {
            DecodedPiece::Data(data) => body.extend_from_slice(&data),
            DecodedPiece::Trailers(trailers) => {
                return Ok(Some(Told::of(&head.request, body, trailers.len())));
            }
            DecodedPiece::End => return Ok(Some(Told::of(&head.request, body, 0))),
            DecodedPiece::More if decoder.is_ended() => return Ok(Some(Told::of(&head.request, body, 0))),
            DecodedPiece::More => return Ok(None),
        }
    }
}

/// What hyper makes of it.
async fn hypers(text: &[u8]) -> Option<Told> {
    let told = Rc::new(RefCell::new(None));
    let first = Rc::clone(&told);
    let service = service_fn(move |request: Request<Incoming>| {
        let first = Rc::clone(&first);
        async move {
            let (parts, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                let trailers = body.trailers().map_or(0, http::HeaderMap::len);
                let request = protocol::Request::from(Request::from_parts(parts, ()));
                let told = Told::of(&request, body.to_bytes().to_vec(), trailers);
                first.borrow_mut().get_or_insert(told);
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    client.write_all(text).await.expect("there is room");
    client.shutdown().await.expect("open");
    // Whether it ends well says nothing about the first request.
    let _ = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(server), service)
        .await;
    told.take()
}

fn head_and_body() -> impl Strategy<Value = Vec<u8>> {
    let first = (
        prop::sample::select(vec!["GET", "POST", "OPTIONS", "CONNECT", "X-Y"]),
        prop::sample::select(vec![
            "/",
            "/a%2fb?c=d",
            "/a#b",
            "/<a>?\"b\"&`",
            "http://h/x?y",
            "http://h/<x>",
            "http://u@h/",
            "*",
            "h:80",
            "?x",
        ]),
        prop::sample::select(vec!["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]),
    )
        .prop_map(|(method, target, version)| format!("{method} {target} {version}\r\n"));
    let host =
        prop::sample::select(vec!["Host: h\r\n", "Host: h\r\n", "host:h:80 \r\n", "Host: a b\r\n", ""]);
    let line = prop_oneof![
        "X-[a-z]{1,3}:[ \t]{0,2}[!-~]{0,4}[ \t]{0,2}\r\n",
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Content-Length: 5, 5\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Transfer-Encoding: gzip, chunked\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("Host: other\r\n".to_owned()),
        Just("Folded: a\r\n b\r\n".to_owned()),
        Just("X: \u{e9}\r\n".to_owned()),
    ];
    let body = prop::sample::select(vec![
        "",
        "hello",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
        "005 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ]);
    (first, host, prop::collection::vec(line, 0..3), body).prop_map(|(first, host, lines, body)| {
        format!("{first}{host}{}\r\n{body}", lines.concat()).into_bytes()
    })
}

/// Bytes at which readers err.
const ODD_BYTES: &[u8] = b"\r\n\t \0:;,\"<>`@#/?*%[]01aZ_.+-\x0b\x7f\x80\xff";

/// What is done to a text to spoil it.
pub(crate) fn changes() -> impl Strategy<Value = Vec<(usize, u8, u8)>> {
    prop::collection::vec((any::<usize>(), prop::sample::select(ODD_BYTES), any::<u8>()), 0..3)
}

pub(crate) fn spoil(text: &mut Vec<u8>, changes: &[(usize, u8, u8)]) {
    for &(place, byte, how) in changes {
        let at = place % text.len().max(1);
        match how % 3 {
            0 => text.insert(at.min(text.len()), byte),
            1 if at < text.len() => text[at] = byte,
            _ if at < text.len() => drop(text.remove(at)),
            _ => {}
        }
    }
}

pub(crate) fn runs<Outcome>(work: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

#[test]
fn each_difference_is_one() {
    Difference::assert_each(STRICTER, |text| (ours(text), runs(hypers(text))));
}

fn compare(text: &[u8]) -> Result<(), TestCaseError> {
    let shown = String::from_utf8_lossy(text).into_owned();
    match (ours(text), runs(hypers(text))) {
        (Ok(Some(ours)), Some(hypers)) => prop_assert_eq!(ours, hypers, "{:?}", shown),
        (Err(why), Some(hypers)) => {
            let is_known = STRICTER.iter().any(|difference| kind(difference.ours) == kind(&why));
            prop_assert!(is_known, "{shown:?}: we refuse it ({why}), hyper reads {hypers:?}");
        }
        (Ok(Some(ours)), None) => {
            let Some(plain) = with_plain_target(text) else {
                return Err(TestCaseError::fail(format!(
                    "{shown:?}: hyper refuses what we read as {ours:?}"
                )));
            };
            compare(&plain)?;
        }
        (Ok(None), Some(hypers)) => prop_assert!(false, "{shown:?}: not whole to us, to hyper {hypers:?}"),
        (Ok(None) | Err(_), None) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn accepted_heads_are_equal_and_refusals_of_one_reader_are_in_a_table(
        mut text in head_and_body(),
        changes in changes(),
    ) {
        spoil(&mut text, &changes);
        compare(&text)?;
    }

    /// Every head that is one to us is one to httparse, and names as many headers.
    #[test]
    fn httparse_takes_whatever_head_we_take(
        mut text in head_and_body(),
        changes in changes(),
    ) {
        spoil(&mut text, &changes);
        let mut reader = RequestReader::new(HeadLimits::OUTER);
        if let Ok(Some((NextMessage::Request, rest))) = reader.take(Bytes::copy_from_slice(&text)) {
            let head = reader.take_head().expect("it was announced");
            let mut headers = [httparse::EMPTY_HEADER; 100];
            let mut parsed = httparse::Request::new(&mut headers);
            // It takes no target that is not UTF-8.
            let raw = head.request.extensions().get::<RawTarget>();
            let taken = raw.and_then(|_| with_plain_target(&text)).unwrap_or_else(|| text.clone());
            let length = parsed.parse(&taken).expect("legal").unwrap();
            prop_assert_eq!(length, text.len() - rest.len());
            prop_assert_eq!(parsed.headers.len(), head.request.headers().len());
        }
    }
}
