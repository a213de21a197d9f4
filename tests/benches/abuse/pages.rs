//! Attacks on the pages of a program.

use std::io;

use super::attacker::Attacker;
use super::hogs;

/// Connections that ask nothing.
pub(crate) fn idle_sockets(attacker: &Attacker) {
    hogs::idle_http1(attacker);
}

/// Strangers that wait for the drain of a pod, each again as soon as it was answered.
pub(crate) fn waits_for_the_drain(attacker: &Attacker) {
    attacker.on_each_connection(|stream| {
        attacker.write(&stream, b"GET /wait-for-drain HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = [0; 4096];
        while attacker.read(&stream, &mut answer)? > 0 {}
        if attacker.is_over() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    });
}
