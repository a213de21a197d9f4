//! Frames of HTTP/2 that cost their sender next to nothing, as fast as they can be sent.

use std::io;
use std::iter;

use tests::http2::{flag, frame, kind, prefixed, settings};

use super::attacker::Attacker;
use super::hostile::{Hostile, PAYLOAD, request};

/// CANCEL, as a reason to reset a stream.
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// How many frames a head is spread over, less than any proxy allows.
const CONTINUATIONS: usize = 60;
/// How much a dynamic table keeps that nobody asked for more, less what an entry costs beside its text.
const ENTRY: usize = 3900;

fn listening(attacker: &Attacker, session: impl Fn(&mut Hostile<'_>) -> io::Result<()> + Sync) {
    attacker.on_each_connection(|stream| session(&mut Hostile::greet(attacker, stream, &[])?.listen()?));
}

pub(crate) fn pings(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::PING, flag::NONE, 0, &[7; 8])));
}

/// What is owed to the client is not taken by it.
pub(crate) fn pings_unread(attacker: &Attacker) {
    attacker.on_each_connection(|stream| {
        Hostile::greet(attacker, stream, &[])?.flood(&frame(kind::PING, flag::NONE, 0, &[7; 8]))
    });
}

pub(crate) fn settings_again(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&settings(&[])));
}

pub(crate) fn priorities(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::PRIORITY, flag::NONE, 1, &[0, 0, 0, 0, 16])));
}

pub(crate) fn window_updates(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::WINDOW_UPDATE, flag::NONE, 0, &[0, 0, 0, 1])));
}

pub(crate) fn unknown(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::UNKNOWN, flag::NONE, 0, &[])));
}

pub(crate) fn settings_acknowledged(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::SETTINGS, flag::ACK, 0, &[])));
}

pub(crate) fn pings_acknowledged(attacker: &Attacker) {
    listening(attacker, |hostile| hostile.flood(&frame(kind::PING, flag::ACK, 0, &[7; 8])));
}

/// Resets of a stream that was reset.
pub(crate) fn resets_again(attacker: &Attacker) {
    listening(attacker, |hostile| {
        let stream = hostile.open(&request("GET", "/hold/20000"), flag::END_STREAM)?;
        hostile.flood(&frame(kind::RST_STREAM, flag::NONE, stream, &CANCEL))
    });
}

/// Requests that are given up as soon as they were sent.
pub(crate) fn rapid_resets(attacker: &Attacker) {
    requests_each_followed_by(attacker, kind::RST_STREAM, &CANCEL);
}

/// Requests that the server has to break off, because a frame for each of them is invalid: its room grows by
/// nothing.
pub(crate) fn made_you_reset(attacker: &Attacker) {
    requests_each_followed_by(attacker, kind::WINDOW_UPDATE, &[0; 4]);
}

/// Requests whose answers are long in coming, and behind each of them this frame for its stream.
fn requests_each_followed_by(attacker: &Attacker, kind: u8, payload: &[u8]) {
    let head = request("GET", "/hold/20000");
    listening(attacker, |hostile| {
        loop {
            let mut many = Vec::new();
            for _ in 0..100 {
                let stream = hostile.next_stream();
                many.extend(frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &head));
                many.extend(frame(kind, flag::NONE, stream, payload));
            }
            hostile.send(&many)?;
        }
    });
}

/// A head that does not end, without a byte more.
pub(crate) fn empty_continuations(attacker: &Attacker) {
    listening(attacker, |hostile| {
        let stream = hostile.next_stream();
        hostile.send(&frame(kind::HEADERS, flag::END_STREAM, stream, &request("GET", "/bytes/12")))?;
        hostile.flood(&frame(kind::CONTINUATION, flag::NONE, stream, &[]))
    });
}

pub(crate) fn empty_data(attacker: &Attacker) {
    listening(attacker, |hostile| {
        let stream = hostile.open(&request("POST", "/upload"), flag::NONE)?;
        hostile.flood(&frame(kind::DATA, flag::NONE, stream, &[]))
    });
}

/// A body for a request that was given up.
pub(crate) fn data_on_reset_streams(attacker: &Attacker) {
    listening(attacker, |hostile| {
        loop {
            let stream = hostile.open(&request("POST", "/upload"), flag::NONE)?;
            hostile.send(&frame(kind::RST_STREAM, flag::NONE, stream, &CANCEL))?;
            let many = frame(kind::DATA, flag::NONE, stream, b"x").repeat(1000);
            for _ in 0..hostile.window / 1000 {
                hostile.send_data(&many, 1000)?;
            }
        }
    });
}

/// A body of nothing but padding, which the receiver has to count and to throw away.
pub(crate) fn padding(attacker: &Attacker) {
    let payload: Vec<u8> = iter::once(255).chain(iter::repeat_n(0, 255)).collect();
    listening(attacker, |hostile| {
        loop {
            let stream = hostile.open(&request("POST", "/upload"), flag::NONE)?;
            let padded = frame(kind::DATA, flag::PADDED, stream, &payload);
            for _ in 0..hostile.window / 256 {
                hostile.send_data(&padded, 256)?;
            }
            hostile.send(&frame(kind::DATA, flag::END_STREAM, stream, &[]))?;
        }
    });
}

/// A head that enters one large field into the table and then refers to it, a byte each time, long after it
/// became too large.
pub(crate) fn endless_references(attacker: &Attacker) {
    let mut head = request("GET", "/bytes/12");
    head.extend([0x40, 1, b'x']);
    prefixed(&mut head, 0, 7, ENTRY);
    head.extend([b'a'; ENTRY]);
    head.resize(PAYLOAD, NEWEST);
    let more = [NEWEST; PAYLOAD];
    listening(attacker, |hostile| {
        loop {
            let stream = hostile.next_stream();
            hostile.send(&frame(kind::HEADERS, flag::END_STREAM, stream, &head))?;
            for number in 1..=CONTINUATIONS {
                let flags = if number == CONTINUATIONS { flag::END_HEADERS } else { flag::NONE };
                hostile.send(&frame(kind::CONTINUATION, flags, stream, &more))?;
            }
        }
    });
}

/// The newest field of the dynamic table, by its number.
const NEWEST: u8 = 0x80 + 62;
