//! The kernel's tables of TCP sockets: `/proc/self/net/tcp` and `tcp6` (`proc_pid_net(5)`). Every process may
//! read those of its own network.

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
    let text = four? + &six.unwrap_or_default();
    Ok(text.lines().filter_map(TcpTableRow::read).collect())
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
