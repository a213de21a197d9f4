//! A port for the app that no other pod of this machine will be given.
//!
//! Asking the kernel for a free port and handing the number on is a race: no process holds the port until the
//! app binds it. So each `ebb pod` also binds an abstract socket named after the port and holds it for its
//! whole life; the process that gets the name owns the port, whichever `ebb` it belongs to, and the kernel
//! frees the name when the process ends, however it ends.

use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};

/// Below the range from which Linux takes ports for outgoing connections (32768 and up).
const FIRST: u16 = 20_000;
const LAST: u16 = 29_999;

/// A port that is ours while this lives.
#[derive(Debug)]
pub(crate) struct ReservedPort {
    pub(crate) number: u16,
    _name: Option<UnixDatagram>,
}

#[cfg(test)]
impl ReservedPort {
    /// A port without a reservation, for tests that listen nowhere.
    pub(crate) fn unreserved(number: u16) -> Self {
        Self { number, _name: None }
    }
}

/// Reserves a port; `seed` says where to begin to look, so that pods that start together do not all try the
/// same.
pub(crate) fn reserve(seed: u32) -> io::Result<ReservedPort> {
    let count = u32::from(LAST - FIRST) + 1;
    // A prime step visits every port once and keeps neighbours apart.
    let start = seed.wrapping_mul(7919) % count;
    (0..count)
        .map(|offset| FIRST + u16::try_from((start + offset) % count).expect("the range has 10,000 ports"))
        .find_map(try_reserve)
        .ok_or_else(|| io::Error::other(format!("every port from {FIRST} to {LAST} is taken")))
}

fn try_reserve(number: u16) -> Option<ReservedPort> {
    let name = SocketAddr::from_abstract_name(format!("ebb-port-{number}")).ok()?;
    let name = UnixDatagram::bind_addr(&name).ok()?;
    is_free(number).then_some(ReservedPort { number, _name: Some(name) })
}

/// Whether a server that sets no socket options could listen there now: stricter than most, so that it holds
/// for every app.
fn is_free(number: u16) -> bool {
    let any = SockaddrIn::new(0, 0, 0, 0, number);
    socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .is_ok_and(|socket| bind(socket.as_raw_fd(), &any).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_is_given_to_nobody_else_until_it_is_dropped() {
        let first = reserve(7).expect("a free port");
        let second = reserve(7).expect("another free port");
        assert_ne!(first.number, second.number);
        let number = first.number;
        drop(first);
        // A child that another test has forked holds a copy of the reservation until its exec.
        let mut reservations =
            std::iter::repeat_with(|| reserve(7).expect("a free port").number).take(100_000);
        assert!(reservations.any(|again| again == number), "{number} is never given again");
    }

    #[test]
    fn a_port_on_which_somebody_listens_is_passed_over() {
        let free = reserve(99).expect("a free port").number;
        let _listener = TcpListener::bind(("127.0.0.1", free)).expect("it is free");
        assert_ne!(reserve(99).expect("another").number, free);
    }
}
