//! A hostile client's connection of HTTP/2: what the peer allows is known, and kept to where breaking it
//! would only end the connection.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use tests::http2::{FRAME_HEAD, PREFACE, flag, frame, kind, literals, setting, settings};

use super::attacker::Attacker;

/// What a stream or a connection may send at first (RFC 9113, section 6.9.2).
const WINDOW: u32 = 65_535;
/// How many streams an attacker opens at once where the peer sets no limit.
const STREAMS: u32 = 250;
/// The largest payload that no peer has to be asked for.
pub(crate) const PAYLOAD: usize = 16_384;

/// One connection. A thread takes what the peer says on it if [`Hostile::listen`] was called.
pub(crate) struct Hostile<'a> {
    attacker: &'a Attacker,
    stream: TcpStream,
    peer: Arc<Peer>,
    /// Streams that the peer lets be open at once.
    pub(crate) streams: u32,
    /// Bytes that it lets each of them send unread.
    pub(crate) window: u32,
    next: u32,
}

/// What the peer said since.
struct Peer {
    /// Bytes that the connection may send.
    window: AtomicI64,
    has_ended: AtomicBool,
}

impl<'a> Hostile<'a> {
    /// Says hello with these settings, and waits for the peer's.
    pub(crate) fn greet(attacker: &'a Attacker, stream: TcpStream, own: &[(u16, u32)]) -> io::Result<Self> {
        attacker.write(&stream, &[PREFACE, &settings(own)].concat())?;
        let peer = Peer { window: AtomicI64::new(WINDOW.into()), has_ended: AtomicBool::new(false) };
        let mut hostile =
            Self { attacker, stream, peer: Arc::new(peer), streams: STREAMS, window: WINDOW, next: 1 };
        loop {
            let (head, payload) = read_frame(attacker, &hostile.stream)?;
            hostile.peer.hear(head, &payload);
            if head[3] == kind::SETTINGS && head[4] & flag::ACK == 0 {
                hostile.adopt(&payload);
                break;
            }
        }
        hostile.send(&frame(kind::SETTINGS, flag::ACK, 0, &[]))?;
        Ok(hostile)
    }

    fn adopt(&mut self, payload: &[u8]) {
        for entry in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]);
            match u16::from_be_bytes([entry[0], entry[1]]) {
                setting::MAX_CONCURRENT_STREAMS => self.streams = value.min(STREAMS),
                setting::INITIAL_WINDOW_SIZE => self.window = value,
                _ => {}
            }
        }
    }

    /// Takes what the peer says from now on, as an honest client would. The thread ends with the attack.
    pub(crate) fn listen(self) -> io::Result<Self> {
        let (stream, peer) = (self.stream.try_clone()?, Arc::clone(&self.peer));
        stream.set_read_timeout(None)?;
        thread::spawn(move || {
            while let Ok((head, payload)) = read_frame_blocking(&stream) {
                peer.hear(head, &payload);
            }
            peer.has_ended.store(true, Ordering::Relaxed);
        });
        Ok(self)
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        if self.peer.has_ended.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.attacker.write(&self.stream, bytes)
    }

    /// Sends the same again and again.
    pub(crate) fn flood(&self, frame: &[u8]) -> io::Result<()> {
        let many = frame.repeat(1 + PAYLOAD / frame.len());
        loop {
            self.send(&many)?;
        }
    }

    /// Sends DATA that needs so much of the connection's window, once there is as much.
    pub(crate) fn send_data(&self, frames: &[u8], octets: i64) -> io::Result<()> {
        while self.peer.window.load(Ordering::Relaxed) < octets {
            if self.attacker.is_over() || self.peer.has_ended.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.peer.window.fetch_sub(octets, Ordering::Relaxed);
        self.send(frames)
    }

    /// The number of the next stream.
    pub(crate) fn next_stream(&mut self) -> u32 {
        let stream = self.next;
        self.next += 2;
        stream
    }

    /// Begins a request; `flags` beside the end of its head.
    pub(crate) fn open(&mut self, head: &[u8], flags: u8) -> io::Result<u32> {
        let stream = self.next_stream();
        self.send(&frame(kind::HEADERS, flag::END_HEADERS | flags, stream, head))?;
        Ok(stream)
    }

    /// Does nothing until the time is over or the peer has had enough.
    pub(crate) fn wait(&self) -> io::Result<()> {
        while !self.attacker.is_over() {
            if self.peer.has_ended.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Hostile<'_> {
    fn drop(&mut self) {
        // Otherwise the thread that listens would hold the connection open. It may have ended.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Peer {
    fn hear(&self, head: [u8; FRAME_HEAD], payload: &[u8]) {
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match (head[3], stream, payload) {
            (kind::WINDOW_UPDATE, 0, &[a, b, c, d]) => {
                self.window.fetch_add(u32::from_be_bytes([a, b, c, d]).into(), Ordering::Relaxed);
            }
            (kind::GOAWAY, _, _) => self.has_ended.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// The head of a plain request.
pub(crate) fn request(method: &str, path: &str) -> Vec<u8> {
    literals(&[(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)])
}

fn length(head: [u8; FRAME_HEAD]) -> usize {
    u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize
}

fn read_frame(attacker: &Attacker, stream: &TcpStream) -> io::Result<([u8; FRAME_HEAD], Vec<u8>)> {
    let mut head = [0; FRAME_HEAD];
    fill(attacker, stream, &mut head)?;
    let mut payload = vec![0; length(head)];
    fill(attacker, stream, &mut payload)?;
    Ok((head, payload))
}

fn fill(attacker: &Attacker, stream: &TcpStream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match attacker.read(stream, buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => buffer = &mut buffer[read..],
        }
    }
    Ok(())
}

fn read_frame_blocking(mut stream: &TcpStream) -> io::Result<([u8; FRAME_HEAD], Vec<u8>)> {
    use io::Read;
    let mut head = [0; FRAME_HEAD];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; length(head)];
    stream.read_exact(&mut payload)?;
    Ok((head, payload))
}
