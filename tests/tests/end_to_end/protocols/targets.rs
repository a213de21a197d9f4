//! Targets reach the app as their clients wrote them, and one that is refused is answered with the byte that
//! is wrong in it and its place.

use tests::Ebb;
use tests::http2::{FRAME_HEAD, PREFACE, flag, frame, kind, literals, settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocols::client::{PROTOCOLS, Protocol, RawClient};
use crate::protocols::smuggling::recorded;
use crate::protocols::world::{ROUTINGS, within};

/// Everything that comes back to a request with this method and target, as text; of HTTP/2 as HTTP/1.1 would
/// begin it.
async fn ask(ebb: &Ebb, protocol: Protocol, host: &str, (method, target): (&str, &str)) -> String {
    match protocol {
        Protocol::Http1 => {
            let mut client = RawClient::connect(ebb).await;
            let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            client.write(&request).await;
            client.read_to_close().await.expect("it closes in order")
        }
        Protocol::Http2 => {
            let pseudo = [(":method", method), (":scheme", "http"), (":authority", host), (":path", target)];
            // A tunnel has neither scheme nor path.
            let pseudo: Vec<_> = if method == "CONNECT" {
                vec![(":method", method), (":authority", target)]
            } else {
                pseudo.to_vec()
            };
            within("a response", over_http2(ebb, &literals(&pseudo))).await
        }
    }
}

async fn over_http2(ebb: &Ebb, head: &[u8]) -> String {
    let mut stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let request = [
        PREFACE.to_vec(),
        settings(&[]),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, head),
    ];
    stream.write_all(&request.concat()).await.expect("open");
    let mut seen = String::new();
    loop {
        let mut head = [0; FRAME_HEAD];
        stream.read_exact(&mut head).await.expect("the response goes on");
        let [high, middle, low, kind, flags, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        stream.read_exact(&mut payload).await.expect("the frame is whole");
        match kind {
            kind::HEADERS => seen = format!("HTTP/2 {} {}", status(&payload), payload.escape_ascii()),
            kind::DATA => seen.push_str(&String::from_utf8_lossy(&payload)),
            kind::RST_STREAM => panic!("no answer but a reset behind {seen:?}"),
            _ => {}
        }
        if matches!(kind, kind::HEADERS | kind::DATA) && flags & flag::END_STREAM != 0 {
            return seen;
        }
    }
}

/// The status at the beginning of a head, behind what may be said of the table.
fn status(head: &[u8]) -> String {
    match head.strip_prefix(&[0x20]).unwrap_or(head) {
        // By its number in the static table.
        [0x88, ..] => "200".to_owned(),
        [0x8c, ..] => "400".to_owned(),
        [8, 3, digits @ ..] => digits[..3].escape_ascii().to_string(),
        other => panic!("no status: {}", other.escape_ascii()),
    }
}

#[tokio::test]
async fn every_visible_character_but_one_reaches_the_app_as_it_came() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = recorded(&ROUTINGS.map(|routing| folder.path().join(routing.service()))).await;
    let visible: String = ('!'..='~').filter(|letter| *letter != '#').collect();
    let target = format!("/{visible}?{visible}");
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            let answer = ask(&ebb, protocol, &routing.host(), ("GET", &target)).await;
            assert!(answer.ends_with(&target), "{routing:?} {protocol:?}: {answer}");
        }
        let whole = format!("http://{}{target}", routing.host());
        let answer = ask(&ebb, Protocol::Http1, &routing.host(), ("GET", &whole)).await;
        assert!(answer.ends_with(&format!("\r\n\r\n{target}")), "{routing:?}: {answer}");
    }
}

#[tokio::test]
async fn a_target_that_is_refused_is_named_with_its_place_over_both_protocols() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = recorded(&ROUTINGS.map(|routing| folder.path().join(routing.service()))).await;
    for routing in ROUTINGS {
        for protocol in PROTOCOLS {
            for (target, expected) in [
                ("/a#b", "'#' stands at place 3"),
                ("/a b", "a space stands at place 3"),
                ("/a\tb", "the byte 0x09 stands at place 3"),
                ("/<\x7f", "the byte 0x7f stands at place 3"),
            ] {
                let answer = ask(&ebb, protocol, &routing.host(), ("GET", target)).await;
                assert_eq!(answer.split(' ').nth(1), Some("400"), "{protocol:?} {target:?}: {answer}");
                assert!(answer.contains("bad-request; detail="), "{protocol:?} {target:?}: {answer}");
                assert!(answer.contains(expected), "{protocol:?} {target:?}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn connect_is_a_method_that_is_not_allowed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ebb = recorded(&ROUTINGS.map(|routing| folder.path().join(routing.service()))).await;
    for routing in ROUTINGS {
        let own = format!("{}:80", routing.host());
        for protocol in PROTOCOLS {
            for target in ["example.org:443", &own] {
                let answer = ask(&ebb, protocol, target, ("CONNECT", target)).await;
                assert_eq!(answer.split(' ').nth(1), Some("405"), "{protocol:?} {target}: {answer}");
                // Over HTTP/2 its name is a number.
                let has_allow = protocol == Protocol::Http2 || answer.contains("\r\nallow: \r\n");
                assert!(has_allow, "{protocol:?} {target}: {answer}");
                assert!(answer.contains("client sent unsupported CONNECT request"), "{protocol:?}: {answer}");
            }
        }
    }
}
