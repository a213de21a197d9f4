//! Heads that are long, heads that do not end, and heads that change the table of their connection.

use std::io;

use tests::http2::{flag, frame, kind, literal, prefixed};

use super::attacker::Attacker;
use super::hostile::{Hostile, PAYLOAD, request};

/// What a head has that is served, and one that is refused: 128 KiB are the limit.
const LARGE: usize = 100_000;
const NEAR_THE_LIMIT: usize = 120_000;
const BEYOND_THE_LIMIT: usize = 250_000;
/// How long one field of a long head is over HTTP/2.
const FIELD: usize = 4000;
/// How often a head changes the size of the table.
const SIZE_UPDATES: usize = 4000;
/// The size of a table that no peer has to be asked for.
const TABLE: usize = 4096;

/// A head whose cookie has so many bytes, but for the end of the last line.
fn half_http1(path: &str, bytes: usize) -> Vec<u8> {
    let start = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: ");
    [start.as_bytes(), &vec![b'c'; bytes]].concat()
}

fn http1(path: &str, bytes: usize) -> Vec<u8> {
    [&half_http1(path, bytes)[..], b"\r\n\r\n"].concat()
}

/// The fields of a request whose cookies have so many bytes.
fn http2(path: &str, bytes: usize) -> Vec<u8> {
    let cookie = literal(b"cookie", &[b'c'; FIELD]);
    [&request("GET", path)[..], &cookie.repeat(bytes / FIELD)].concat()
}

/// How the frames of a head end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockEnd {
    Whole,
    /// More would have to come.
    Half,
}

/// The head as HEADERS and CONTINUATION, in as few frames as it takes. It ends its stream.
fn block(stream: u32, fields: &[u8], end: BlockEnd) -> Vec<u8> {
    let parts: Vec<&[u8]> = fields.chunks(PAYLOAD).collect();
    let mut frames = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len() && end == BlockEnd::Whole;
        let end_headers = if is_last { flag::END_HEADERS } else { flag::NONE };
        let (kind, flags) = match number {
            0 => (kind::HEADERS, end_headers | flag::END_STREAM),
            _ => (kind::CONTINUATION, end_headers),
        };
        frames.extend(frame(kind, flags, stream, part));
    }
    frames
}

/// Writes these bytes on each connection, and reads until the end of the connection or of the time.
pub(super) fn on_each_connection_once(attacker: &Attacker, bytes: &[u8]) {
    attacker.on_each_connection(|stream| {
        attacker.write(&stream, bytes)?;
        let mut answer = [0; 4096];
        while attacker.read(&stream, &mut answer)? > 0 {}
        if attacker.is_over() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    });
}

/// Heads beyond the limit, each on a connection of its own.
pub(crate) fn beyond_the_limit_http1(attacker: &Attacker) {
    on_each_connection_once(attacker, &http1("/hold/20000", BEYOND_THE_LIMIT));
}

/// Requests with large heads whose answers are long in coming.
pub(crate) fn large_http1(attacker: &Attacker) {
    on_each_connection_once(attacker, &http1("/hold/20000", LARGE));
}

/// Heads that do not end.
pub(crate) fn halves_http1(attacker: &Attacker) {
    on_each_connection_once(attacker, &half_http1("/hold/20000", NEAR_THE_LIMIT));
}

/// Heads beyond the limit, one stream after the other.
pub(crate) fn beyond_the_limit_http2(attacker: &Attacker) {
    let fields = http2("/hold/20000", BEYOND_THE_LIMIT);
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        loop {
            let stream = hostile.next_stream();
            hostile.send(&block(stream, &fields, BlockEnd::Whole))?;
        }
    });
}

/// Requests with heads near the limit, on as many streams as there may be, whose answers are long in coming.
pub(crate) fn near_the_limit_http2(attacker: &Attacker) {
    let fields = http2("/hold/20000", NEAR_THE_LIMIT);
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        for _ in 0..hostile.streams {
            let stream = hostile.next_stream();
            hostile.send(&block(stream, &fields, BlockEnd::Whole))?;
        }
        hostile.wait()
    });
}

/// One head on each connection that does not end.
pub(crate) fn halves_http2(attacker: &Attacker) {
    let fields = http2("/hold/20000", NEAR_THE_LIMIT);
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        let stream = hostile.next_stream();
        hostile.send(&block(stream, &fields, BlockEnd::Half))?;
        hostile.wait()
    });
}

/// Heads that change the size of the table thousands of times before their first field.
pub(crate) fn table_size_updates(attacker: &Attacker) {
    let mut fields = Vec::new();
    for number in 0..SIZE_UPDATES {
        // As small as can be and as large as may be, in turns (RFC 7541, section 6.3).
        prefixed(&mut fields, 0x20, 5, if number % 2 == 0 { 0 } else { TABLE });
    }
    fields.extend(request("GET", "/bytes/12"));
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        loop {
            let stream = hostile.next_stream();
            hostile.send(&block(stream, &fields, BlockEnd::Whole))?;
        }
    });
}
