//! As which user does the process run that has accepted a connection? The kernel's tables of sockets say so
//! of processes of this machine (`proc_pid_net(5)`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One for each family of addresses.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ApiConnectionEnds {
    pub(super) ours: SocketAddr,
    pub(super) theirs: SocketAddr,
}

/// The number of the user whose process has accepted it; `None` if that is not on this machine, or has not
/// accepted it yet. The user who listens may be another: a service manager listens as root for each service.
pub(super) fn user_of_peer(ends: ApiConnectionEnds) -> Option<u32> {
    TABLES.iter().find_map(|table| user_in(&std::fs::read_to_string(table).ok()?, ends))
}

fn user_in(table: &str, ends: ApiConnectionEnds) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (local, remote) = (address(fields.nth(1)?)?, address(fields.next()?)?);
        if !is_same(local, ends.theirs) || !is_same(remote, ends.ours) {
            return None;
        }
        let (user, inode) = (fields.nth(4)?, fields.nth(1)?);
        // A connection that waits to be accepted has no inode, and seems to be root's.
        if inode == "0" { None } else { user.parse().ok() }
    })
}

/// A socket that takes both families writes an address of version 4 within one of version 6.
fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// `0100007F:2328`: words of four bytes in the order of this machine, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let word = |index: usize| u32::from_str_radix(words.get(8 * index..8 * index + 8)?, 16).ok();
    let ip: IpAddr = match words.len() {
        8 => Ipv4Addr::from(word(0)?.to_ne_bytes()).into(),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?.to_ne_bytes());
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?).into())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_known_once_it_is_accepted() {
        for listen in ["127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(listen).expect("a free port");
            let port = listener.local_addr().expect("it is bound").port();
            let to = if listen.starts_with("[::1") { "::1" } else { "127.0.0.1" };
            let stream = TcpStream::connect((to, port)).expect("it listens");
            let ends = ApiConnectionEnds {
                ours: stream.local_addr().expect("it is bound"),
                theirs: stream.peer_addr().expect("it is connected"),
            };
            assert_eq!(user_of_peer(ends), None, "{listen}: it is not accepted yet");
            let accepted = listener.accept().expect("one waits");
            assert_eq!(user_of_peer(ends), Some(geteuid().as_raw()), "{listen}");
            drop(accepted);
        }
    }

    #[test]
    fn of_many_connections_the_right_end_of_the_right_one_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:2328 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 12 2 0 20 4 31 11 -1
   2: 0100007F:9C40 0100007F:2328 01 00000000:00000000 00:00000000 00000000  1001        0 13 2 0 20 4 30 11 -1
   3: 0100007F:2328 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 2 0 20 4 30 11 -1
";
        // The table is written as a machine with the least byte first writes it.
        if cfg!(target_endian = "big") {
            return;
        }
        let theirs = ([127, 0, 0, 1], 9000).into();
        let of = |port| user_in(table, ApiConnectionEnds { ours: ([127, 0, 0, 1], port).into(), theirs });
        assert_eq!((of(40_000), of(40_001), of(40_002)), (Some(1000), None, None));
    }
}
