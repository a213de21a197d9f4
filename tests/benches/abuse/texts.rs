//! Attacks with HTTP/1.1, and by apps.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::attacker::Attacker;

/// How much junk is sent at once, and how often: 64 MB on each connection.
const JUNK: usize = 64 * 1024;
const JUNK_TIMES: usize = 1000;
/// How often each slow connection sends its next byte.
const BYTE_EVERY: Duration = Duration::from_millis(10);

/// The control: what honest clients notice when nobody attacks.
pub(crate) fn nothing(attacker: &Attacker) {
    attacker.wait();
}

/// Many heads at once, a byte of each at a time, that never end.
pub(crate) fn slow_heads(attacker: &Attacker) {
    let head = b"GET /bytes/12 HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    let mut connections: Vec<(TcpStream, usize)> = Vec::new();
    let wanted = usize::try_from(attacker.connections).expect("it is not much");
    while !attacker.is_over() {
        while connections.len() < wanted && !attacker.is_over() {
            match attacker.connect() {
                Ok(stream) => connections.push((stream, 0)),
                Err(_) => break,
            }
        }
        connections.retain_mut(|(stream, sent)| {
            let byte = head.get(*sent).copied().unwrap_or(b'a');
            *sent += 1;
            let is_open = attacker.write(stream, &[byte]).is_ok();
            if !is_open && !attacker.is_over() {
                attacker.note_ended();
            }
            is_open
        });
        thread::sleep(BYTE_EVERY);
    }
}

/// Heads of 8 KB, a byte at a time, as fast as that goes.
pub(crate) fn heads_in_single_bytes(attacker: &Attacker) {
    let head = format!("GET /bytes/12 HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "a".repeat(8000));
    attacker.on_each_connection(|stream| {
        loop {
            for byte in head.as_bytes() {
                attacker.write(&stream, &[*byte])?;
            }
            if attacker.read(&stream, &mut [0; 4096])? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    });
}

/// Large responses that the client does not read.
pub(crate) fn responses_unread(attacker: &Attacker) {
    attacker.on_each_connection(|stream| {
        attacker.write(&stream, b"GET /bytes/1048576 HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        attacker.wait();
        Ok(())
    });
}

/// Junk, refused at its first line; what comes behind it as fast as it can is for nobody.
pub(crate) fn write_junk(attacker: &Attacker) {
    let junk = [&b"no request\r\n\r\n"[..], &vec![0; JUNK][..]].concat();
    attacker.on_each_connection(|stream| {
        for _ in 0..JUNK_TIMES {
            attacker.write(&stream, &junk)?;
        }
        Ok(())
    });
}

/// Clients of an app whose heads come in single bytes.
pub(crate) fn answers_in_single_bytes(attacker: &Attacker) {
    read_answers_of(attacker, "/bytewise");
}

/// Clients of an app that says for ever that its answer is about to come.
pub(crate) fn endless_interim(attacker: &Attacker) {
    read_answers_of(attacker, "/interims");
}

fn read_answers_of(attacker: &Attacker, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    attacker.on_each_connection(|stream| {
        attacker.write(&stream, request.as_bytes())?;
        let mut buffer = vec![0; 64 * 1024];
        while attacker.read(&stream, &mut buffer)? > 0 {}
        Ok(())
    });
}
