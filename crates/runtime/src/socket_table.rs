//! The kernel's tables of TCP sockets: `/proc/self/net/tcp` and `tcp6` (`proc_pid_net(5)`). Every process may
//! read those of its own network.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The tables of the kernel, one for each family of addresses.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// One row: a socket. An IPv4 address mapped into IPv6 is read as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpTableRow {
    /// The end of the process that has the socket.
    pub own: SocketAddr,
    /// The address of the other end.
    pub peer: SocketAddr,
    /// The state as the kernel numbers it (`tcp_states.h`): 1 is established, 8 is closed by the peer.
    pub state: u8,
    /// The number of the user that has the socket; 0 as well while a connection waits to be accepted.
    pub user: u32,
    /// The kernel's number of the socket; 0 while a connection waits to be accepted, and once it is closed.
    pub inode: u64,
}

impl TcpTableRow {
    /// Reads a line of a table; `None` if the line is about no socket, as the first one.
    pub fn read(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (own, peer) = (end_of(fields.next()?)?, end_of(fields.next()?)?);
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        // The user stands behind two queues, a timer and retries, and the socket behind a timeout.
        let user = fields.nth(3)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self { own, peer, state, user, inode })
    }
}

/// All sockets of this process's network. Fails where the kernel shows no table; one without IPv6 shows one.
pub fn tcp_table() -> io::Result<Vec<TcpTableRow>> {
    let [four, six] = TABLES.map(std::fs::read_to_string);
    Ok(rows_of(&(four? + &six.unwrap_or_default())))
}

/// Each socket once. The kernel writes a table in pieces, and a socket that came between two of them has it
/// write the end of one piece again at the beginning of the next.
fn rows_of(text: &str) -> Vec<TcpTableRow> {
    let rows = text.lines().filter_map(TcpTableRow::read);
    let by_socket: BTreeMap<_, _> = rows.map(|row| ((row.own, row.peer, row.inode), row)).collect();
    by_socket.into_values().collect()
}

/// `0100007F:1F90`: words of the address as this machine's numbers, the port as a number.
fn end_of(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |from: usize| u32::from_str_radix(address.get(from..from + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address: IpAddr = match address.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word);
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_the_kernel_writes_twice_is_one_row_with_its_last_state() {
        let line = |ends: &str, state: u8, inode: u64| {
            format!(
                "   0: {ends} {state:02X} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"
            )
        };
        let (first, second) = ("0100007F:1F90 0100007F:BEE1", "0100007F:1F90 0100007F:BEE2");
        let text = [line(first, 1, 7), line(second, 1, 8), line(first, 8, 7), line(first, 1, 9)].concat();
        let read: Vec<(u64, u8)> = rows_of(&text).iter().map(|row| (row.inode, row.state)).collect();
        assert_eq!(read, [(7, 8), (9, 1), (8, 1)]);
    }
}
