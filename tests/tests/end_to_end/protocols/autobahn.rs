//! Autobahn's cases for WebSockets, by their numbers, from a client that writes its frames by hand: what an
//! app says to each through ebb is, frame by frame, what the same app says without it, and what RFC 6455 asks
//! for.
//!
//! Left out are those of compression (12, 13), which this app does not offer, and of many small messages one
//! after another (9.7, 9.8). Where a case comes in several pieces that only differ in how they are cut, one
//! is here.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tests::ports::unused_address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::protocols::world::{ROUTINGS, warm, within};

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The first bit of a frame: it is the last of its message.
const FIN: u8 = 0x80;

/// A close without a reason.
const NORMAL: [u8; 2] = 1000_u16.to_be_bytes();

/// What a peer says, in frames: the byte with its opcode, and what it carries.
type Frames = Vec<(u8, Vec<u8>)>;

/// One case of the suite: its number and its frames.
struct Case {
    number: String,
    says: Vec<u8>,
    /// Written in pieces of so many bytes.
    piece: usize,
    /// What comes back before the end.
    hears: Frames,
    /// Whether the app ends the connection for it; otherwise the client does, in order.
    is_fault: bool,
}

fn case(number: impl Into<String>, says: impl IntoIterator<Item = Vec<u8>>, hears: Frames) -> Case {
    Case {
        number: number.into(),
        says: says.into_iter().flatten().collect(),
        piece: usize::MAX,
        hears,
        is_fault: false,
    }
}

fn fault(number: impl Into<String>, says: impl IntoIterator<Item = Vec<u8>>, hears: Frames) -> Case {
    Case { is_fault: true, ..case(number, says, hears) }
}

/// A frame as clients write it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
    let mut out = vec![first];
    match payload.len() {
        length @ ..=125 => out.push(0x80 | u8::try_from(length).expect("short")),
        length @ 126..=65_535 => {
            out.push(0x80 | 0x7e);
            out.extend_from_slice(&u16::try_from(length).expect("short").to_be_bytes());
        }
        length => {
            out.push(0x80 | 0x7f);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&KEY);
    out.extend(payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}

fn whole(opcode: u8, payload: &[u8]) -> Vec<u8> {
    frame(FIN | opcode, payload)
}

/// The same, as it comes back.
fn heard(opcode: u8, payload: &[u8]) -> (u8, Vec<u8>) {
    (FIN | opcode, payload.to_vec())
}

/// A message in frames of so many bytes.
fn fragmented(opcode: u8, payload: &[u8], size: usize) -> Vec<Vec<u8>> {
    let count = payload.chunks(size).len();
    let frames = payload.chunks(size).enumerate().map(|(at, piece)| {
        let opcode = if at == 0 { opcode } else { CONTINUATION };
        frame(if at + 1 == count { FIN | opcode } else { opcode }, piece)
    });
    frames.collect()
}

/// 1, 9, 10: messages of every size that has a form of its own, and large ones, whole, in frames, in pieces.
fn messages() -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [0, 125, 126, 127, 128, 65_535, 65_536];
    for (series, opcode) in [("1.1", TEXT), ("1.2", BINARY)] {
        for (at, size) in sizes.into_iter().enumerate() {
            let payload = vec![b'*'; size];
            cases.push(case(
                format!("{series}.{}", at + 1),
                vec![whole(opcode, &payload)],
                vec![heard(opcode, &payload)],
            ));
        }
        let payload = vec![b'*'; 65_536];
        let chopped =
            case(format!("{series}.8"), vec![whole(opcode, &payload)], vec![heard(opcode, &payload)]);
        cases.push(Case { piece: 997, ..chopped });
    }
    for (series, opcode) in [("9.1", TEXT), ("9.2", BINARY)] {
        for (at, size) in [64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20].into_iter().enumerate() {
            let payload = vec![b'*'; size];
            cases.push(case(
                format!("{series}.{}", at + 1),
                vec![whole(opcode, &payload)],
                vec![heard(opcode, &payload)],
            ));
        }
    }
    for (series, opcode) in [("9.3", TEXT), ("9.4", BINARY)] {
        let payload = vec![b'*'; 4 << 20];
        let sizes = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
        for (at, size) in sizes.into_iter().enumerate() {
            cases.push(case(
                format!("{series}.{}", at + 1),
                fragmented(opcode, &payload, size),
                vec![heard(opcode, &payload)],
            ));
        }
    }
    for (series, opcode) in [("9.5", TEXT), ("9.6", BINARY)] {
        let payload = vec![b'*'; 1 << 20];
        for (at, piece) in [64, 128, 256, 512, 1024, 2048].into_iter().enumerate() {
            let chopped = case(
                format!("{series}.{}", at + 1),
                vec![whole(opcode, &payload)],
                vec![heard(opcode, &payload)],
            );
            cases.push(Case { piece, ..chopped });
        }
    }
    let payload = vec![b'*'; 65_536];
    cases.push(case("10.1.1", fragmented(TEXT, &payload, 1300), vec![heard(TEXT, &payload)]));
    cases
}

/// The cases of group 2: pings and pongs.
fn pings() -> Vec<Case> {
    let pong = |payload: &[u8]| vec![heard(PONG, payload)];
    let ten: Vec<String> = (0..10).map(|number| format!("payload-{number}")).collect();
    let asked: Vec<Vec<u8>> = ten.iter().map(|text| whole(PING, text.as_bytes())).collect();
    let answered: Frames = ten.iter().map(|text| heard(PONG, text.as_bytes())).collect();
    vec![
        case("2.1", vec![whole(PING, b"")], pong(b"")),
        case("2.2", vec![whole(PING, b"Hello, world!")], pong(b"Hello, world!")),
        case(
            "2.3",
            vec![whole(PING, b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff")],
            pong(b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"),
        ),
        case("2.4", vec![whole(PING, &[0xfe; 125])], pong(&[0xfe; 125])),
        fault("2.5", vec![whole(PING, &[0xfe; 126])], vec![]),
        Case { piece: 1, ..case("2.6", vec![whole(PING, &[0xfe; 125])], pong(&[0xfe; 125])) },
        case("2.7", vec![whole(PONG, b"")], vec![]),
        case("2.8", vec![whole(PONG, b"unsolicited pong payload")], vec![]),
        case("2.9", vec![whole(PONG, b"unsolicited"), whole(PING, b"ping payload")], pong(b"ping payload")),
        case("2.10", asked.clone(), answered.clone()),
        Case { piece: 1, ..case("2.11", asked, answered) },
    ]
}

/// 3, 4: bits and opcodes that mean nothing.
fn reserved() -> Vec<Case> {
    let hello = || whole(TEXT, b"Hello, world!");
    let echo = || vec![heard(TEXT, b"Hello, world!")];
    let mut cases = vec![
        fault("3.1", vec![frame(FIN | 0x10 | TEXT, b"Hello, world!")], vec![]),
        fault("3.2", vec![hello(), frame(FIN | 0x20 | TEXT, b"Hello, world!")], echo()),
        fault("3.3", vec![hello(), frame(FIN | 0x30 | TEXT, b"Hello, world!")], echo()),
        fault("3.4", vec![hello(), frame(FIN | 0x40 | TEXT, b"Hello, world!")], echo()),
        fault("3.5", vec![frame(FIN | 0x50 | BINARY, &[0; 8])], vec![]),
        fault("3.6", vec![frame(FIN | 0x60 | PING, b"Hello, world!")], vec![]),
        fault("3.7", vec![frame(FIN | 0x70 | CLOSE, b"")], vec![]),
    ];
    for (series, opcodes) in [("4.1", 3..=7), ("4.2", 11..=15)] {
        for (at, opcode) in opcodes.enumerate() {
            let payload: &[u8] = if at % 2 == 0 { b"" } else { b"reserved opcode payload" };
            cases.push(fault(format!("{series}.{}", at + 1), vec![hello(), whole(opcode, payload)], echo()));
        }
    }
    cases
}

/// The cases of group 5: messages in fragments.
fn fragments() -> Vec<Case> {
    let two = || vec![frame(TEXT, b"fragment1"), frame(FIN | CONTINUATION, b"fragment2")];
    let joined = || heard(TEXT, b"fragment1fragment2");
    let between =
        || vec![frame(TEXT, b"fragment1"), whole(PING, b"ping"), frame(FIN | CONTINUATION, b"fragment2")];
    let answered = || vec![heard(PONG, b"ping"), joined()];
    vec![
        fault("5.1", vec![frame(PING, b"fragment1"), frame(FIN | CONTINUATION, b"fragment2")], vec![]),
        fault("5.2", vec![frame(PONG, b"fragment1"), frame(FIN | CONTINUATION, b"fragment2")], vec![]),
        case("5.3", two(), vec![joined()]),
        Case { piece: 4, ..case("5.4", two(), vec![joined()]) },
        Case { piece: 1, ..case("5.5", two(), vec![joined()]) },
        case("5.6", between(), answered()),
        Case { piece: 4, ..case("5.7", between(), answered()) },
        Case { piece: 1, ..case("5.8", between(), answered()) },
        fault("5.9", vec![whole(CONTINUATION, b"non-continuation payload")], vec![]),
        fault("5.12", vec![frame(CONTINUATION, b"non-continuation payload")], vec![]),
        fault("5.15", [two(), vec![frame(CONTINUATION, b"fragment3")]].concat(), vec![joined()]),
        fault("5.18", vec![frame(TEXT, b"fragment1"), frame(FIN | TEXT, b"fragment2")], vec![]),
        case(
            "5.19",
            vec![
                frame(TEXT, b"fragment1"),
                frame(CONTINUATION, b"fragment2"),
                whole(PING, b"pongme 1!"),
                frame(CONTINUATION, b"fragment3"),
                whole(PING, b"pongme 2!"),
                frame(FIN | CONTINUATION, b"fragment4"),
            ],
            vec![
                heard(PONG, b"pongme 1!"),
                heard(PONG, b"pongme 2!"),
                heard(TEXT, b"fragment1fragment2fragment3fragment4"),
            ],
        ),
    ]
}

/// The cases of group 6: text is UTF-8.
fn utf8() -> Vec<Case> {
    let greeting = "Hello-µ@ßöäüàá-UTF-8!!".as_bytes();
    let mut cases = vec![
        case("6.1.1", vec![whole(TEXT, b"")], vec![heard(TEXT, b"")]),
        case(
            "6.1.2",
            vec![frame(TEXT, b""), frame(CONTINUATION, b""), frame(FIN, b"")],
            vec![heard(TEXT, b"")],
        ),
        case("6.2.1", vec![whole(TEXT, greeting)], vec![heard(TEXT, greeting)]),
        case("6.2.2", fragmented(TEXT, greeting, 12), vec![heard(TEXT, greeting)]),
        case("6.2.3", fragmented(TEXT, greeting, 1), vec![heard(TEXT, greeting)]),
    ];
    let limits = [
        ("6.7.1", "\0"),
        ("6.7.2", "\u{80}"),
        ("6.7.3", "\u{800}"),
        ("6.7.4", "\u{10000}"),
        ("6.9.1", "\u{7f}"),
        ("6.9.2", "\u{7ff}"),
        ("6.9.3", "\u{ffff}"),
        ("6.9.4", "\u{10ffff}"),
        ("6.11.1", "\u{d7ff}"),
        ("6.11.2", "\u{e000}"),
        ("6.11.3", "\u{fffd}"),
    ];
    cases.extend(limits.map(|(number, text)| {
        case(number, vec![whole(TEXT, text.as_bytes())], vec![heard(TEXT, text.as_bytes())])
    }));
    let (good, bad) = ("κόσμε".as_bytes(), b"\xf4\x90\x80\x80");
    cases.push(fault(
        "6.4.1",
        vec![frame(TEXT, good), frame(CONTINUATION, bad), frame(FIN, b"edited")],
        vec![],
    ));
    let wrong: [(&str, &[u8]); 8] = [
        ("6.3.1", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"),
        ("6.11.5", bad),
        ("6.8.1", b"\xf8\x88\x80\x80\x80"),
        ("6.10.1", b"\xf7\xbf\xbf\xbf"),
        ("6.12.1", b"\x80"),
        ("6.14.1", b"\xc0\xaf"),
        ("6.17.1", b"\xc1\xbf"),
        ("6.20.1", b"\xed\xa0\x80"),
    ];
    cases.extend(wrong.map(|(number, text)| fault(number, vec![whole(TEXT, text)], vec![])));
    cases
}

/// The cases of group 7: the end of a conversation.
fn closing() -> Vec<Case> {
    let close = |payload: &[u8]| whole(CLOSE, payload);
    let with = |code: u16, reason: &[u8]| close(&[&code.to_be_bytes()[..], reason].concat());
    let mut cases = vec![
        case("7.1.1", vec![whole(TEXT, b"Hello World!")], vec![heard(TEXT, b"Hello World!")]),
        case("7.1.6", vec![whole(TEXT, &vec![b'*'; 256 << 10])], vec![heard(TEXT, &vec![b'*'; 256 << 10])]),
        fault("7.1.2", vec![close(&NORMAL), close(&NORMAL)], vec![heard(CLOSE, &NORMAL)]),
        fault("7.1.3", vec![close(&NORMAL), whole(PING, b"")], vec![heard(CLOSE, &NORMAL)]),
        fault("7.1.4", vec![close(&NORMAL), whole(TEXT, b"Hello World!")], vec![heard(CLOSE, &NORMAL)]),
        fault(
            "7.1.5",
            vec![frame(TEXT, b"fragment1"), close(&NORMAL), frame(FIN, b"fragment2")],
            vec![heard(CLOSE, &NORMAL)],
        ),
        fault("7.3.1", vec![close(b"")], vec![heard(CLOSE, b"")]),
        fault("7.3.2", vec![close(b"a")], vec![]),
        fault("7.3.4", vec![with(1000, b"Hello World!")], vec![heard(CLOSE, b"\x03\xe8Hello World!")]),
        fault(
            "7.3.5",
            vec![with(1000, &[b'*'; 123])],
            vec![heard(CLOSE, &[&NORMAL[..], &[b'*'; 123]].concat())],
        ),
        fault("7.3.6", vec![with(1000, &[b'*'; 124])], vec![]),
        fault(
            "7.5.1",
            vec![with(1000, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited")],
            vec![],
        ),
    ];
    let legal = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
    for (at, code) in legal.into_iter().enumerate() {
        let number = format!("7.7.{}", at + 1);
        cases.push(fault(number, vec![with(code, b"")], vec![heard(CLOSE, &code.to_be_bytes())]));
    }
    let illegal = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999];
    for (at, code) in illegal.into_iter().enumerate() {
        cases.push(fault(format!("7.9.{}", at + 1), vec![with(code, b"")], vec![]));
    }
    cases
}

/// The app by itself, without a proxy before it.
struct App(Child, SocketAddr);

impl App {
    async fn start() -> Self {
        let address = unused_address();
        let mut command = Command::new(tests::ebb::test_app());
        let child = command.env("PORT", address.port().to_string()).stdin(Stdio::null()).spawn();
        let app = Self(child.expect("the app starts"), address);
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        within("the app listens", listens).await;
        app
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that comes back in a case.
async fn play(address: SocketAddr, host: &str, case: &Case) -> Frames {
    let stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("it is open");
    let (mut read, mut write) = stream.into_split();
    let head = format!(
        "GET /websocket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    write.write_all(head.as_bytes()).await.expect("it is open");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(read.read_u8().await.expect("it answers"));
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    let end = if case.is_fault { Vec::new() } else { whole(CLOSE, &NORMAL) };
    let says = [&case.says[..], &end].concat();
    let piece = case.piece;
    // Who sends much must be able to read meanwhile.
    let writing = tokio::spawn(async move {
        for part in says.chunks(piece) {
            // An app that has seen enough may have gone.
            if write.write_all(part).await.is_err() {
                break;
            }
        }
        write
    });
    let mut bytes = Vec::new();
    // It may break the connection instead of ending it.
    let _ = within("the end", read.read_to_end(&mut bytes)).await;
    drop(writing.await);
    frames(&bytes)
}

/// What a server said, frame by frame.
fn frames(mut bytes: &[u8]) -> Frames {
    let mut frames = Vec::new();
    while let [first, length, rest @ ..] = bytes {
        let (length, rest) = match length {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            127 => {
                let (length, rest) = rest.split_first_chunk().expect("eight bytes of length");
                (usize::try_from(u64::from_be_bytes(*length)).expect("it fits"), rest)
            }
            length => (usize::from(*length), rest),
        };
        let (payload, rest) = rest.split_at(length);
        frames.push((*first, payload.to_vec()));
        bytes = rest;
    }
    frames
}

/// What matters of it: how an app says that it has seen enough is its own affair.
fn without_end(mut frames: Frames, case: &Case) -> Frames {
    let last_expected = case.hears.last().is_some_and(|(first, _)| *first == FIN | CLOSE);
    if !last_expected && frames.last().is_some_and(|(first, _)| *first == FIN | CLOSE) {
        frames.pop();
    }
    frames
}

fn shown(frames: &Frames) -> Vec<String> {
    let short = |payload: &Vec<u8>| String::from_utf8_lossy(&payload[..payload.len().min(30)]).into_owned();
    frames
        .iter()
        .map(|(first, payload)| format!("{first:#x} {} {:?}", payload.len(), short(payload)))
        .collect()
}

#[tokio::test]
async fn autobahns_cases_look_the_same_with_ebb_and_without() {
    let app = App::start().await;
    let ebb = warm(|service| service).await;
    let cases = [messages(), pings(), reserved(), fragments(), utf8(), closing()];
    for case in cases.iter().flatten() {
        let direct = play(app.1, "localhost", case).await;
        let expected = without_end(direct.clone(), case);
        assert!(
            expected == case.hears,
            "{}: {:?}, not {:?}",
            case.number,
            shown(&expected),
            shown(&case.hears)
        );
        for routing in ROUTINGS {
            let seen = play(ebb.requests, &routing.host(), case).await;
            assert!(
                seen == direct,
                "{}, {routing:?}: {:?}, not {:?}",
                case.number,
                shown(&seen),
                shown(&direct)
            );
        }
    }
}
