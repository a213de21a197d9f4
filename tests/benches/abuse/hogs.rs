//! What makes a proxy keep things.

use std::io;
use std::iter;
use std::thread;
use std::time::Duration;

use tests::bench::clock;
use tests::http2::{PREFACE, flag, frame, kind, setting, settings};

use super::attacker::Attacker;
use super::hostile::{Hostile, request};

/// `accept-encoding: gzip, deflate` by its number in the static table: the longest of them in a byte.
const REFERENCE: u8 = 0x80 + 16;
/// How many references fit a head of 8 KB.
const REFERENCES: usize = 7900;
/// How long a cancelled request lives: 200 are cancelled in a second.
const CANCEL_EVERY: Duration = Duration::from_millis(5);

/// Uploads to an app that does not read, in pieces of one byte, on as many streams as there may be.
pub(crate) fn bytes_that_nobody_reads(attacker: &Attacker) {
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        let head = request("POST", "/unread/20000");
        let mut piece = Vec::new();
        for _ in 0..hostile.streams {
            let stream = hostile.open(&head, flag::NONE)?;
            piece.extend(frame(kind::DATA, flag::NONE, stream, b"x"));
        }
        for _ in 0..hostile.window {
            hostile.send_data(&piece, hostile.streams.into())?;
        }
        hostile.wait()
    });
}

/// Requests whose heads become many times larger when they are read.
pub(crate) fn heads_of_references(attacker: &Attacker) {
    let head: Vec<u8> =
        request("GET", "/hold/20000").into_iter().chain(iter::repeat_n(REFERENCE, REFERENCES)).collect();
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        for _ in 0..hostile.streams {
            hostile.open(&head, flag::END_STREAM)?;
        }
        hostile.wait()
    });
}

/// Large responses that the client has no room for.
pub(crate) fn responses_that_nobody_takes(attacker: &Attacker) {
    attacker.on_each_connection(|stream| {
        let own = [(setting::INITIAL_WINDOW_SIZE, 0)];
        let mut hostile = Hostile::greet(attacker, stream, &own)?.listen()?;
        let head = request("GET", "/bytes/1048576");
        for _ in 0..hostile.streams {
            hostile.open(&head, flag::END_STREAM)?;
        }
        hostile.wait()
    });
}

/// Opens connections over HTTP/1.1 that never send a byte.
pub(crate) fn idle_http1(attacker: &Attacker) {
    idle(attacker, &[]);
}

/// Connections that say hello, and nothing more.
pub(crate) fn idle_http2(attacker: &Attacker) {
    idle(attacker, &[PREFACE, &settings(&[]), &frame(kind::SETTINGS, flag::ACK, 0, &[])].concat());
}

fn idle(attacker: &Attacker, hello: &[u8]) {
    let mut connections = Vec::new();
    for _ in 0..attacker.connections {
        if attacker.is_over() {
            break;
        }
        let greeted = attacker.connect().and_then(|stream| attacker.write(&stream, hello).map(|()| stream));
        if let Ok(stream) = greeted {
            connections.push(stream);
        } else {
            attacker.note_ended();
            thread::sleep(Duration::from_millis(1));
        }
    }
    attacker.wait();
}

/// Clients that give up 200 requests a second each, as impatient ones do.
pub(crate) fn cancels(attacker: &Attacker) {
    let head = request("GET", "/hold/1000");
    attacker.on_each_connection(|stream| {
        let mut hostile = Hostile::greet(attacker, stream, &[])?.listen()?;
        let begin = clock::now();
        for number in 1.. {
            let stream = hostile.open(&head, flag::END_STREAM)?;
            thread::sleep((begin + CANCEL_EVERY * number).saturating_sub(clock::now()));
            hostile.send(&frame(kind::RST_STREAM, flag::NONE, stream, &[0, 0, 0, 8]))?;
        }
        Ok(())
    });
}

/// A link's message in parts, of which the last never comes. What a part is: field 15 of the message,
/// length-delimited.
pub(crate) fn fragments(attacker: &Attacker) {
    const FRAME: usize = 1 << 20;
    const PART: usize = FRAME - 16;
    const KEY: u8 = 15 * 8 + 2;
    let mut message = vec![KEY];
    varint(&mut message, PART);
    message.resize(message.len() + PART, 0);
    let length = u32::try_from(message.len()).expect("a frame is a megabyte");
    let frame = [&length.to_be_bytes()[..], &message].concat();
    attacker.on_each_connection(|stream| -> io::Result<()> {
        // As much as a message may be.
        for _ in 0..63 {
            attacker.write(&stream, &frame)?;
        }
        let mut nothing = [0; 1];
        while !attacker.is_over() {
            if attacker.read(&stream, &mut nothing)? == 0 && !attacker.is_over() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    });
}

/// An integer as protobuf writes it.
fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        bytes.push(u8::try_from(value % 128 + 128).expect("it is less than 256"));
        value /= 128;
    }
    bytes.push(u8::try_from(value).expect("it is less than 128"));
}
