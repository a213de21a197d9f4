//! Ports for programs that cannot be asked to choose one themselves.
//!
//! A port that the kernel chose and that was given back can belong to any other socket a moment later: suites
//! open thousands of connections. These ports are below all from which the kernel chooses
//! (`net.ipv4.ip_local_port_range` begins at 32768), so only a program that names one takes it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// From above the ports that services are known by to below those that pods of `ebb up` reserve (20000 to
/// 29999).
const FIRST: u16 = 12_000;
const LAST: u16 = 19_999;

/// A loopback address on which no program listens. No later call in this process returns it again before all
/// others were returned.
pub fn unused_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = LAST - FIRST + 1;
    // Programs of tests that run at the same time begin in different places.
    let place_of_process = u16::try_from(std::process::id() * 61 % u32::from(count)).unwrap_or_default();
    let mut candidates = (0..count).map(|_| {
        let offset = (NEXT.fetch_add(1, Ordering::Relaxed) % count + place_of_process) % count;
        SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + offset))
    });
    let unused = candidates.find(|address| TcpListener::bind(address).is_ok());
    unused.expect("this machine has a port that no program uses")
}

/// The port of an address on which no program listens: see [`unused_address`].
pub fn unused_port() -> u16 {
    unused_address().port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_no_ephemeral_ones_and_come_once() {
        let ports: std::collections::BTreeSet<u16> = (0..100).map(|_| unused_port()).collect();
        assert_eq!(ports.len(), 100);
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)), "{ports:?}");
    }
}
