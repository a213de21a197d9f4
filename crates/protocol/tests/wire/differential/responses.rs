//! Responses of HTTP/1.1, heads and bodies, as hyper's client (and below it httparse) reads them.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use protocol::http1::{BodyDecoder, DecodedPiece, HeadLimits, ResponseReader};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::heads::{Difference, changes, runs, spoil};

/// What we refuse although hyper takes it. There is nothing that we take and hyper refuses.
const STRICTER: &[Difference] = &[
    Difference {
        ours: "its transfer encoding is not \"chunked\", once",
        example: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        why: "nobody undoes another coding, and a client would take what is encoded for the body itself",
    },
    Difference {
        ours: "its Content-Length is not one number",
        example: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        why: "a list is one number to some and none to others",
    },
    Difference {
        ours: "its chunks are not divided as HTTP/1.1 says",
        example: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;(\r\nx\r\n0\r\n\r\n",
        why: "hyper takes anything for an extension",
    },
];

/// A response as both tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ToldResponse {
    status: StatusCode,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: usize,
}

impl ToldResponse {
    fn of(status: StatusCode, headers: &HeaderMap, body: Vec<u8>, trailers: usize) -> Self {
        // We drop a length beside chunks, and of the same length twice one; how long the body is shows all
        // the same.
        let fields = headers.iter().filter(|(name, _)| **name != http::header::CONTENT_LENGTH);
        let mut fields: Vec<_> =
            fields.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        fields.sort_by(|one, other| one.0.cmp(&other.0));
        Self { status, fields, body, trailers }
    }
}

/// What we make of it: nothing if it is not whole when the connection ends, or why it is none.
fn ours(text: &[u8], method: &Method) -> Result<Option<ToldResponse>, String> {
    let mut reader = ResponseReader::new(HeadLimits::OUTER);
    reader.put(Bytes::copy_from_slice(text));
    let head = reader.take_head(method, || {}).map_err(|why| why.to_string())?;
    let Some(head) = head else { return Ok(None) };
    let mut rest = reader.into_rest();
    let mut decoder = BodyDecoder::new(head.framing);
    let (mut body, mut trailers) = (Vec::new(), 0);
    loop {
        match decoder.decode(&mut rest).map_err(|why| why.to_string())? {
            DecodedPiece::Data(data) => body.extend_from_slice(&data),
            DecodedPiece::Trailers(found) => trailers = found.len(),
            DecodedPiece::More if !decoder.close() => return Ok(None),
            DecodedPiece::End | DecodedPiece::More => break,
        }
    }
    let response = head.response;
    Ok(Some(ToldResponse::of(response.status(), response.headers(), body, trailers)))
}

/// What hyper makes of it.
async fn hypers(text: &[u8], method: &Method) -> Option<ToldResponse> {
    let (near, mut far) = tokio::io::duplex(64 * 1024);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(near)).await.expect("nothing is asked yet");
    let request = Request::builder().method(method.clone()).uri("/").header("host", "h");
    let request = request.body(Empty::<Bytes>::new()).expect("legal");
    let app = async move {
        // A server that answers before it is asked is refused for that.
        let _ = far.read(&mut [0; 1024]).await;
        // Who has read a malformed head is gone.
        let _ = far.write_all(text).await;
        let _ = far.shutdown().await;
    };
    let told = async move {
        let (head, body) = sender.send_request(request).await.ok()?.into_parts();
        let body = body.collect().await.ok()?;
        let trailers = body.trailers().map_or(0, HeaderMap::len);
        Some(ToldResponse::of(head.status, &head.headers, body.to_bytes().to_vec(), trailers))
    };
    // Whether the connection ends well says nothing about its first response.
    tokio::join!(app, connection.with_upgrades(), told).2
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let interim = prop::sample::select(vec![
        "",
        "",
        "\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n",
    ]);
    let first = prop::sample::select(vec![
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 404\r\n",
        "HTTP/1.1 204 No Content\r\n",
        "HTTP/1.1 304 Not Modified\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n",
        "HTTP/1.1 999 \u{e9}\r\n",
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
        "HTTP/2.0 200 OK\r\n",
    ]);
    let line = prop_oneof![
        "X-[a-z]{1,3}:[ \t]{0,2}[!-~]{0,4}[ \t]{0,2}\r\n",
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Content-Length: 5, 5\r\n".to_owned()),
        Just("Content-Length: 3\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Transfer-Encoding: gzip, chunked\r\n".to_owned()),
        Just("Transfer-Encoding: gzip\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("Folded: a\r\n b\r\n".to_owned()),
    ];
    let body = prop::sample::select(vec![
        "",
        "hello",
        "hello, and more",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ]);
    (interim, first, prop::collection::vec(line, 0..3), body).prop_map(|(interim, first, lines, body)| {
        format!("{interim}{first}{}\r\n{body}", lines.concat()).into_bytes()
    })
}

#[test]
fn each_difference_of_responses_is_one() {
    Difference::assert_each(STRICTER, |text| (ours(text, &Method::GET), runs(hypers(text, &Method::GET))));
}

/// HTTP/1.0 knows no chunks: what is divided so is the body itself to a reader by its rules.
#[test]
fn neither_takes_chunks_of_http_1_0() {
    let text = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!(ours(text, &Method::GET).is_err());
    assert_eq!(runs(hypers(text, &Method::GET)), None);
}

fn compare(text: &[u8], method: &Method) -> Result<(), TestCaseError> {
    let shown = String::from_utf8_lossy(text).into_owned();
    match (ours(text, method), runs(hypers(text, method))) {
        (Ok(Some(ours)), Some(hypers)) => prop_assert_eq!(ours, hypers, "{:?}", shown),
        (Err(why), Some(hypers)) => {
            let is_known = STRICTER.iter().any(|difference| difference.ours == why);
            prop_assert!(is_known, "{shown:?}: we refuse it ({why}), hyper reads {hypers:?}");
        }
        (Ok(Some(ours)), None) => prop_assert!(false, "{shown:?}: hyper refuses what we read as {ours:?}"),
        (Ok(None), Some(hypers)) => prop_assert!(false, "{shown:?}: not whole to us, to hyper {hypers:?}"),
        (Ok(None) | Err(_), None) => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn responses_that_both_take_are_the_same_and_what_one_refuses_is_in_a_table(
        mut text in response(),
        method in prop::sample::select(vec![Method::GET, Method::HEAD]),
        changes in changes(),
    ) {
        spoil(&mut text, &changes);
        compare(&text, &method)?;
    }
}
